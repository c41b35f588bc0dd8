//! `image build`: BuildKit in one node, whose client runs here and sends only what the build asks for. The
//! other nodes take the result from there.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result};
use model::{Cluster, Fault, Node, Reason};
use tokio::process::Command;

use super::args::BuildArgs;
use super::{cluster, later, name, stores};
use crate::commands::cluster as common;
use crate::core::local_socket::LocalSocket;
use crate::core::{self, containers as images, docker};
use crate::ctx::Ctx;
use crate::state::lock::ProfileLock;

/// Borrowed from the node image, as all programs that the host need not have.
const CLIENT: &str = "usr/local/bin/buildctl";

pub fn run(ctx: &Ctx, args: &BuildArgs) -> Result<()> {
    let tag = args.tag.as_deref().filter(|t| !t.is_empty()).map(name).transpose()?;
    ctx.run(build(ctx, args, tag.as_deref()))
}

async fn build(ctx: &Ctx, args: &BuildArgs, tag: Option<&str>) -> Result<()> {
    let context = Context::open(args)?;
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let cluster = cluster(ctx)?;
    let stores = stores(ctx, &cluster, &args.node).await?;
    let node = builder(&cluster, &stores)?;
    let engine = LocalSocket::open(docker::ensure(ctx, &cluster, node).await?, docker::socket())?;
    // The image's, never the node's: a pod that writes to the node's files would have its program run here.
    let mut client = Command::new(core::image_of(ctx, &cluster, node)?.rootfs().join(CLIENT));
    client.args(arguments(&engine.path(), args, tag, &context)).stdin(Stdio::null()).kill_on_drop(true);
    let status = client.status().await.context("run buildctl")?;
    if !status.success() {
        let message = format!("The build on {} failed", cluster.machine(node));
        return Err(Fault::new(Reason::ImageBuild, message).into());
    }
    let Some(tag) = tag else { return Ok(()) };
    images::built(ctx, &cluster, &stores, &cluster.machine(node), tag).await?;
    if args.push {
        images::push(ctx, &stores, tag).await?;
    }
    later(ctx, &stores);
    Ok(())
}

/// The first of those that are meant, and run.
fn builder<'a>(cluster: &'a Cluster, stores: &images::Stores) -> Result<&'a Node, Fault> {
    common::node(cluster, stores.running.first().map(|s| s.name.as_str()))
}

/// What the build is made of.
#[derive(Debug)]
enum Context {
    Dir(PathBuf),
    /// Fetched by BuildKit: a Git repository or an archive.
    Url(String),
    /// An archive that was given, unpacked.
    Unpacked(tempfile::TempDir),
}

impl Context {
    fn open(args: &BuildArgs) -> Result<Context> {
        let path = args.path.as_str();
        if path.contains("://") || path.starts_with("git@") {
            return Ok(Context::Url(path.to_owned()));
        }
        if path == "-" {
            return Context::unpack(&mut std::io::stdin().lock());
        }
        let found = std::fs::metadata(path)
            .map_err(|e| Fault::new(Reason::PathMissing, format!("Cannot read {path}: {e}")))?;
        if !found.is_dir() {
            return Context::unpack(&mut fs_err::File::open(path)?);
        }
        let context = Context::Dir(PathBuf::from(path));
        let file = context.dockerfile(args).unwrap_or_default();
        if !file.is_file() {
            let message = format!("There is no {}", file.display());
            return Err(Fault::new(Reason::PathMissing, message).advice("Name it with -f").into());
        }
        Ok(context)
    }

    fn unpack(source: &mut dyn std::io::Read) -> Result<Context> {
        let dir = tempfile::tempdir().context("make a temporary directory")?;
        containers::archive::unpack(source, dir.path())
            .map_err(|e| Fault::new(Reason::ImageBuild, format!("The build context is no archive: {e:#}")))?;
        Ok(Context::Unpacked(dir))
    }

    fn dir(&self) -> Option<&Path> {
        match self {
            Context::Dir(dir) => Some(dir),
            Context::Unpacked(dir) => Some(dir.path()),
            Context::Url(_) => None,
        }
    }

    /// Relative to the context, as in minikube.
    fn dockerfile(&self, args: &BuildArgs) -> Option<PathBuf> {
        let name = args.file.as_deref().filter(|f| !f.is_empty()).unwrap_or("Dockerfile");
        Some(self.dir()?.join(name))
    }
}

fn arguments(socket: &Path, args: &BuildArgs, tag: Option<&str>, context: &Context) -> Vec<String> {
    let mut all = vec![format!("--addr=unix://{}", socket.display())];
    all.extend(["build", "--progress=plain", "--frontend=dockerfile.v0"].map(str::to_owned));
    match (context.dir(), context.dockerfile(args)) {
        (Some(dir), Some(file)) => {
            let holder = file.parent().unwrap_or(dir);
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            all.push(format!("--local=context={}", dir.display()));
            all.push(format!("--local=dockerfile={}", holder.display()));
            all.push(format!("--opt=filename={name}"));
        }
        _ => {
            if let Context::Url(url) = context {
                all.push(format!("--opt=context={url}"));
            }
            if let Some(file) = &args.file {
                all.push(format!("--opt=filename={file}"));
            }
        }
    }
    // An image that the node has is not asked for elsewhere, as with docker.
    all.push("--opt=image-resolve-mode=local".to_owned());
    all.extend(args.build_arg.iter().chain(&args.build_env).map(|a| format!("--opt=build-arg:{a}")));
    all.extend(args.build_opt.iter().map(|o| option(o)));
    let named = tag.map(|t| format!(",name={t}")).unwrap_or_default();
    all.push(format!("--output=type=moby{named}"));
    all
}

/// `docker build`'s words, in those of BuildKit.
fn option(text: &str) -> String {
    let text = text.trim_start_matches("--");
    match text.split_once('=') {
        Some(("build-arg", value)) => format!("--opt=build-arg:{value}"),
        Some(("label", value)) => format!("--opt=label:{value}"),
        Some(("network", value)) => format!("--opt=force-network-mode={value}"),
        Some(("no-cache", "true")) | None if text.starts_with("no-cache") => "--no-cache".to_owned(),
        _ => format!("--opt={text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dockers_options_are_buildkits() {
        assert_eq!(option("build-arg=A=b"), "--opt=build-arg:A=b");
        assert_eq!(option("no-cache"), "--no-cache");
        assert_eq!(option("--target=x"), "--opt=target=x");
    }

    #[test]
    fn the_file_is_looked_for_in_the_context() {
        let dir = tempfile::tempdir().unwrap();
        let args = |path: &str, file: Option<&str>| BuildArgs {
            path: path.to_owned(),
            file: file.map(str::to_owned),
            ..BuildArgs::default()
        };
        let path = dir.path().display().to_string();
        let error = Context::open(&args(&path, None)).unwrap_err();
        assert_eq!(error.downcast_ref::<Fault>().map(|f| f.reason), Some(Reason::PathMissing));
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/Containerfile"), "FROM scratch\n").unwrap();
        let args = args(&path, Some("d/Containerfile"));
        let context = Context::open(&args).unwrap();
        let all = arguments(Path::new("/tmp/x/socket"), &args, Some("docker.io/library/a:1"), &context);
        assert_eq!(all[0], "--addr=unix:///tmp/x/socket");
        assert!(
            all.contains(&format!("--local=dockerfile={path}/d"))
                && all.contains(&format!("--local=context={path}"))
        );
        assert!(all.contains(&"--opt=filename=Containerfile".to_owned()));
        assert_eq!(all.last().unwrap(), "--output=type=moby,name=docker.io/library/a:1");
    }
}
