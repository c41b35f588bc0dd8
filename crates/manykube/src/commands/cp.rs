//! `cp`: a file from here to a node, from a node to here, or from node to node.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use model::{Cluster, Fault, Reason};
use tokio::io::AsyncRead;

use super::cluster as common;
use crate::core;
use crate::ctx::Ctx;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What to copy: PATH here, or NODE:PATH
    pub source: String,
    /// Where to: NODE:PATH, PATH here if the source is a node's, else an absolute path in the primary node
    pub target: String,
}

/// One side of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side<'a> {
    pub node: Option<&'a str>,
    pub path: &'a str,
}

impl<'a> Side<'a> {
    /// A prefix is a node's name if it has no slash and what follows is an absolute path.
    pub fn parse(text: &'a str) -> Side<'a> {
        match text.split_once(':') {
            Some((node, path)) if !node.is_empty() && !node.contains('/') && path.starts_with('/') => {
                Side { node: Some(node), path }
            }
            _ => Side { node: None, path: text },
        }
    }
}

fn usage(message: &str) -> Fault {
    Fault::new(Reason::Usage, message).advice("For example: cp file.txt m02:/home/docker/file.txt")
}

pub fn is_directory(path: &str) -> Fault {
    Fault::new(Reason::Usage, format!("{path} is a directory"))
        .advice("cp copies single files: pack it with tar first")
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let (source, mut target) = (Side::parse(&args.source), Side::parse(&args.target));
    if source.path.is_empty() || target.path.is_empty() {
        return Err(usage("Both paths of cp must be given").into());
    }
    let cluster = common::load(ctx)?;
    let primary = cluster.machine(common::node(&cluster, None)?);
    if source.node.is_none() && target.node.is_none() {
        if !target.path.starts_with('/') {
            return Err(usage("The target of cp must be an absolute path in the node").into());
        }
        target.node = Some(&primary);
    }
    ctx.run(async {
        let seen = common::require_running(ctx, &cluster).await?;
        for node in [source.node, target.node].into_iter().flatten() {
            let node = common::node(&cluster, Some(node))?;
            common::require_node(&cluster, node, &seen)?;
        }
        copy(ctx, &cluster, &source, &target)
            .await
            .with_context(|| format!("copy {} to {}", args.source, args.target))
    })?;
    Ok(0)
}

/// The agent of the node on that side, if it is a node's.
async fn agent(ctx: &Ctx, cluster: &Cluster, side: &Side<'_>) -> Result<Option<protocol::Node>> {
    let Some(name) = side.node else { return Ok(None) };
    let machine = cluster.machine(common::node(cluster, Some(name))?);
    Ok(Some(core::driver_of(ctx, &machine).node(&machine).await?))
}

/// What is read, and its mode.
type Source = (Box<dyn AsyncRead + Send + Unpin>, u32);

async fn copy(ctx: &Ctx, cluster: &Cluster, source: &Side<'_>, target: &Side<'_>) -> Result<()> {
    let (mut data, mode) = open(agent(ctx, cluster, source).await?.as_ref(), source.path).await?;
    let to = agent(ctx, cluster, target).await?;
    let path = place(to.as_ref(), source.path, target.path).await?;
    if let Some(node) = to {
        return Ok(node.put_stream(&path.to_string_lossy(), mode, data).await?);
    }
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        fs_err::create_dir_all(parent)?;
    }
    let mut file = tokio::fs::File::from_std(fs_err::File::create(&path)?.into_parts().0);
    tokio::io::copy(&mut data, &mut file).await?;
    Ok(tokio::io::AsyncWriteExt::flush(&mut file).await?)
}

async fn open(node: Option<&protocol::Node>, path: &str) -> Result<Source> {
    let missing = || Fault::new(Reason::PathMissing, format!("There is no file {path}"));
    if let Some(node) = node {
        let found = node.get(path).await?.ok_or_else(missing)?;
        if found.info.directory {
            return Err(is_directory(path).into());
        }
        return Ok((found.data, found.info.mode & 0o777));
    }
    let file = match std::fs::File::open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(missing().into()),
        opened => opened.with_context(|| format!("open {path}"))?,
    };
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(is_directory(path).into());
    }
    Ok((Box::new(tokio::fs::File::from_std(file)), metadata.permissions().mode() & 0o777))
}

/// A target that is a directory gets the source's name.
async fn place(node: Option<&protocol::Node>, source: &str, target: &str) -> Result<PathBuf> {
    let is_dir = target.ends_with('/')
        || match node {
            Some(node) => node.get(target).await?.is_some_and(|found| found.info.directory),
            None => Path::new(target).is_dir(),
        };
    let name = Path::new(source).file_name().context("the source has no name")?;
    Ok(if is_dir { Path::new(target).join(name) } else { target.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_named_before_an_absolute_path() {
        for (text, node, path) in [
            ("m02:/tmp/x", Some("m02"), "/tmp/x"),
            ("demo-m02:/x", Some("demo-m02"), "/x"),
            ("a/b:/x", None, "a/b:/x"),
            ("file:name", None, "file:name"),
            (":/x", None, ":/x"),
            ("/etc/hosts", None, "/etc/hosts"),
            ("m02:", None, "m02:"),
        ] {
            assert_eq!(Side::parse(text), Side { node, path }, "{text}");
        }
    }
}
