//! `image save`.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use model::{Home, Reason};
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
    let Some(saved) = images::save(ctx, &stores, name).await? else {
        return Err(nobody_has(Reason::ImageSave, name).into());
    };
    if args.daemon {
        return into_engine(&saved).await;
    }
    match args.file.as_deref() {
        Some("-") => {
            std::io::copy(&mut fs_err::File::open(saved.path())?, &mut std::io::stdout().lock())
                .context("write to standard output")?;
            Ok(())
        }
        Some(file) => saved.move_to(&PathBuf::from(file)),
        None => {
            let path = cached(&ctx.home, name);
            path.parent().map_or(Ok(()), fs_err::create_dir_all)?;
            saved.move_to(&path)
        }
    }
}

/// Where the image of that name is kept on the host.
pub fn cached(home: &Home, name: &str) -> PathBuf {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    home.cache().join("images").join(architecture).join(name.replace(':', "_"))
}

async fn into_engine(saved: &images::Saved) -> Result<()> {
    let mut docker = Command::new("docker");
    docker.args(["image", "load", "--input"]).arg(saved.path());
    docker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = docker.output().await.context("run docker")?;
    if !output.status.success() {
        bail!("the Docker engine did not take it: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
