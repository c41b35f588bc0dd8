//! `kubectl`: the one of the cluster's own version, out of its node image.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use model::{Cluster, Fault, Reason};

use super::cluster as common;
use crate::core;
use crate::ctx::Ctx;
use crate::inside::door;
use crate::state::{owner, profile};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Run it in the control plane, as its administrator
    #[arg(long)]
    pub ssh: bool,
    /// kubectl's arguments, after --
    #[arg(value_name = "ARGS")]
    pub command: Vec<String>,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let file = profile::load(&ctx.home, &ctx.profile)?;
    if args.ssh {
        return in_node(ctx, &args.command);
    }
    let version = match &file {
        Some(file) => file.cluster.kubernetes_version.clone(),
        None => image::default_version().to_owned(),
    };
    let path = program(ctx, &version)?;
    if let Some(file) = &file {
        open_door(ctx, &file.cluster)?;
    }
    let words = with_cluster(&args.command, &ctx.profile, file.is_some());
    // Replaces this process: signals, streams and the exit code are kubectl's own.
    let error = std::process::Command::new(&path).args(words).exec();
    Err(error).with_context(|| format!("run {}", path.display()))
}

/// What it was started with may have ended, as by a reboot. Not all that kubectl does needs it.
fn open_door(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    if door::address(&ctx.home, &cluster.name).is_none() || owner::is_own(&ctx.home).is_err() {
        return Ok(());
    }
    match ctx.run(door::look_after(ctx, cluster)) {
        Err(error) if ctx.cancel.is_cancelled() => return Err(error),
        Err(error) => ctx.warn(format!("{error:#}")),
        Ok(_) => {}
    }
    Ok(())
}

pub fn program(ctx: &Ctx, version: &str) -> Result<PathBuf> {
    let found = image::Store::new(ctx.home.cache()).find(version)?;
    let path = found.map(|i| i.rootfs().join("usr/bin/kubectl")).filter(|p| p.exists());
    let missing = || {
        Fault::new(Reason::ImageUnusable, format!("There is no kubectl {version}: its node image is missing"))
            .advice(format!("Run '{} node-image build --kubernetes-version {version}'", ctx.tool))
    };
    Ok(path.ok_or_else(missing)?)
}

fn in_node(ctx: &Ctx, words: &[String]) -> Result<u8> {
    let cluster = common::load(ctx)?;
    let node = common::node(&cluster, None)?;
    let argv = ["kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf"]
        .into_iter()
        .map(str::to_owned)
        .chain(words.iter().cloned())
        .collect();
    let code = ctx.run(async {
        common::require_running(ctx, &cluster).await?;
        core::exec(ctx, &cluster, node, argv, false).await
    })?;
    Ok(u8::try_from(code).unwrap_or(1))
}

/// Our cluster, whatever the current context is: `--cluster` goes before the first option, so that
/// plugins and sub-commands still come first. One that the user names wins.
fn with_cluster(words: &[String], profile: &str, exists: bool) -> Vec<String> {
    let mut words = words.to_vec();
    let named = |w: &String| {
        ["--cluster", "--context"]
            .iter()
            .any(|f| w == f || w.strip_prefix(f).is_some_and(|r| r.starts_with('=')))
    };
    if exists && !words.iter().any(named) {
        let at = words.iter().position(|w| w.starts_with('-')).unwrap_or(words.len());
        words.insert(at, format!("--cluster={profile}"));
    }
    words
}

/// Called under the name `kubectl`: the arguments that mean the same, with the profile that `--context` names.
pub fn as_kubectl(words: Vec<std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let mut profile = None;
    for (i, word) in words.iter().enumerate() {
        let Some(text) = word.to_str() else { continue };
        match text.strip_prefix("--context") {
            Some("") => profile = words.get(i + 1).cloned(),
            Some(rest) => profile = rest.strip_prefix('=').map(Into::into).or(profile),
            None if text == "--" => break,
            None => {}
        }
    }
    let mut argv: Vec<std::ffi::OsString> = vec!["manykube".into(), "kubectl".into()];
    if let Some(profile) = profile {
        argv.extend(["--profile".into(), profile]);
    }
    argv.push("--".into());
    argv.extend(words);
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_cluster_is_inserted_before_the_first_option() {
        for (line, want) in [
            ("get pods -A", "get pods --cluster=demo -A"),
            ("get pods", "get pods --cluster=demo"),
            ("exec -it p -- ls -l", "exec --cluster=demo -it p -- ls -l"),
            ("exec p -- ls", "exec p --cluster=demo -- ls"),
            ("get pods --context=x", "get pods --context=x"),
            ("get pods --cluster x", "get pods --cluster x"),
            ("", "--cluster=demo"),
        ] {
            assert_eq!(with_cluster(&words(line), "demo", true), words(want), "{line}");
        }
        assert_eq!(with_cluster(&words("version"), "demo", false), words("version"));
    }

    #[test]
    fn under_its_own_name() {
        let os = |line: &str| words(line).into_iter().map(Into::into).collect::<Vec<std::ffi::OsString>>();
        assert_eq!(as_kubectl(os("get pods")), os("manykube kubectl -- get pods"));
        assert_eq!(
            as_kubectl(os("get pods --context=x")),
            os("manykube kubectl --profile x -- get pods --context=x")
        );
        assert_eq!(as_kubectl(os("--context x get")), os("manykube kubectl --profile x -- --context x get"));
    }
}
