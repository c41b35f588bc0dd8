//! `cp`: a file from here to a node, from a node to here, or from node to node.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use drivers::machine::files;
use model::{Cluster, Fault, Node, Reason};

use super::cluster as common;
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
        Ok(())
    })?;
    let mut from = open(ctx, &cluster, &source)?;
    let metadata = from.metadata().with_context(|| format!("look at {}", args.source))?;
    if metadata.is_dir() {
        return Err(is_directory(&args.source).into());
    }
    let mut to = create(ctx, &cluster, &source, &target, metadata.permissions().mode() & 0o777)?;
    std::io::copy(&mut from, &mut to).with_context(|| format!("copy {} to {}", args.source, args.target))?;
    Ok(0)
}

fn machine(cluster: &Cluster, name: &str) -> Result<String, Fault> {
    common::node(cluster, Some(name)).map(|n: &Node| cluster.machine(n))
}

fn open(ctx: &Ctx, cluster: &Cluster, side: &Side<'_>) -> Result<File> {
    let missing = || Fault::new(Reason::PathMissing, format!("There is no file {}", side.path));
    match side.node {
        Some(node) => Ok(files::open(&ctx.home, &machine(cluster, node)?, side.path)?.ok_or_else(missing)?),
        None => match File::open(side.path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(missing().into()),
            opened => opened.with_context(|| format!("open {}", side.path)),
        },
    }
}

/// A target that is a directory gets the source's name.
fn create(ctx: &Ctx, cluster: &Cluster, source: &Side<'_>, target: &Side<'_>, mode: u32) -> Result<File> {
    let machine = target.node.map(|node| machine(cluster, node)).transpose()?;
    let is_dir = target.path.ends_with('/')
        || match &machine {
            Some(machine) => files::is_dir(&ctx.home, machine, target.path)?,
            None => Path::new(target.path).is_dir(),
        };
    let name = Path::new(source.path).file_name().context("the source has no name")?;
    let path = if is_dir { Path::new(target.path).join(name) } else { target.path.into() };
    if let Some(machine) = machine {
        return files::create(&ctx.home, &machine, &path.to_string_lossy(), mode);
    }
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        fs_err::create_dir_all(parent)?;
    }
    Ok(fs_err::File::create(&path)?.into_parts().0)
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
