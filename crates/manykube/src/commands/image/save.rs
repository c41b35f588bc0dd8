//! `image save`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use model::{Home, Reason};
use tempfile::NamedTempFile;
use tokio::process::Command;

use super::args::SaveArgs;
use super::{cluster, name, nobody_has, stores};
use crate::core::containers as images;
use crate::ctx::Ctx;

pub fn run(ctx: &Ctx, args: &SaveArgs) -> Result<()> {
    let name = name(&args.image)?;
    ctx.run(save(ctx, args, &name))
}

/// Into the nodes, and from there into the host's cache.
pub fn load_and_keep(ctx: &Ctx, name: &str) -> Result<()> {
    ctx.run(async {
        super::load::load_named(ctx, name).await?;
        let args = SaveArgs { image: name.to_owned(), ..SaveArgs::default() };
        save(ctx, &args, name).await
    })
}

async fn save(ctx: &Ctx, args: &SaveArgs, name: &str) -> Result<()> {
    let cluster = cluster(ctx)?;
    let stores = stores(ctx, &cluster, &[]).await?;
    if args.remote {
        let pushed = images::push(ctx, &stores, name).await?;
        return if pushed { Ok(()) } else { Err(nobody_has(Reason::ImageSave, name).into()) };
    }
    let save_to = async |to: &mut dyn Write| match images::save(ctx, &stores, name, &mut Box::new(to)).await {
        Ok(false) => Err(nobody_has(Reason::ImageSave, name).into()),
        saved => saved.map(drop),
    };
    if args.daemon {
        let mut file = NamedTempFile::new().context("make a temporary file")?;
        save_to(&mut file).await?;
        return into_engine(file.path()).await;
    }
    let path = match args.file.as_deref() {
        Some("-") => return save_to(&mut std::io::stdout()).await,
        Some(file) => PathBuf::from(file),
        None => cached(&ctx.home, name),
    };
    let dir = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if args.file.is_none() {
        fs_err::create_dir_all(dir)?;
    }
    // The file is whole, or it is not there.
    let mut file = NamedTempFile::new_in(dir).with_context(|| format!("write to {}", dir.display()))?;
    save_to(&mut file).await?;
    std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o644))?;
    file.persist(&path).with_context(|| format!("write {}", path.display()))?;
    Ok(())
}

/// Where the image of that name is kept on the host.
pub fn cached(home: &Home, name: &str) -> PathBuf {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    home.cache().join("images").join(architecture).join(name.replace(':', "_"))
}

async fn into_engine(file: &Path) -> Result<()> {
    let mut docker = Command::new("docker");
    docker.args(["image", "load", "--input"]).arg(file);
    docker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = docker.output().await.context("run docker")?;
    if !output.status.success() {
        bail!("the Docker engine did not take it: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
