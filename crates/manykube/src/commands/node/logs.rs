//! The logs of one node, or of all, with the node's name where there are several.

use anyhow::Result;
use futures::future::try_join_all;
use model::node_spec::LOG_DIR;
use model::status::Host;
use model::{Cluster, Node, Reason};

use super::args::LogsArgs;
use super::{Among, common};
use crate::commands::logs::{self, View};
use crate::core;
use crate::ctx::Ctx;

pub fn run(ctx: &Ctx, args: &LogsArgs, among: Among) -> Result<u8> {
    let cluster = common::load(ctx)?;
    let nodes = match args.name.get()? {
        Some(name) => vec![among.find(ctx, &cluster, name, Reason::NodeRetrieve)?],
        None => among.of(&cluster),
    };
    ctx.run(async {
        let running = running(ctx, &cluster, nodes).await?;
        if args.view.follow {
            follow(ctx, &cluster, &running, &args.view).await
        } else {
            show(ctx, &cluster, &running, &args.view).await
        }
    })
}

/// Those that can be asked. Who is named, or alone, must be; of many, those that are down are said.
async fn running(ctx: &Ctx, cluster: &Cluster, nodes: Vec<Node>) -> Result<Vec<Node>> {
    let seen = core::observe(ctx, cluster).await?;
    let state = |node: &Node| {
        let place = cluster.nodes.iter().position(|n| n.name == node.name);
        place.and_then(|i| seen.get(i)).map_or(Host::Nonexistent, |s| s.host)
    };
    let (up, down): (Vec<Node>, Vec<Node>) = nodes.into_iter().partition(|n| state(n) == Host::Running);
    match down.first() {
        Some(node) if up.is_empty() => Err(common::node_not_running(cluster, node, state(node)).into()),
        _ => {
            down.iter().for_each(|n| ctx.warn(common::node_not_running(cluster, n, state(n)).message));
            Ok(up)
        }
    }
}

async fn show(ctx: &Ctx, cluster: &Cluster, nodes: &[Node], view: &View) -> Result<u8> {
    let all = try_join_all(nodes.iter().map(|n| logs::collect(ctx, cluster, n, view.length))).await?;
    let several = nodes.len() > 1;
    let mut text = String::new();
    for (node, sections) in nodes.iter().zip(all) {
        let machine = cluster.machine(node);
        let sections = sections.into_iter();
        let sections: Vec<(String, String)> = sections
            .map(|(name, body)| (if several { format!("{machine}: {name}") } else { name }, body))
            .collect();
        text += &if view.problems { logs::problems(&sections) } else { logs::show(&sections) };
    }
    view.output(&text)?;
    Ok(0)
}

/// What the kubelet and the system's pods on the node write from now on; pods that come later are not
/// followed. `--pid`: a pipe outlives the shell that is killed when we end.
const FOLLOW: &str = r#"
set -- "$3" "$1" "$2"/kubelet.log /var/log/pods/kube-system_*/*/*.log
prefix=$1 n=$2; shift 2
for log in "$@"; do shift; [ -f "$log" ] && set -- "$@" "$log"; done
if [ -n "$prefix" ]; then tail --pid=$$ -n "$n" -F "$@" 2>/dev/null | sed -u "s/^/$prefix: /" 2>/dev/null
else exec tail -n "$n" -F "$@" 2>/dev/null; fi
"#;

async fn follow(ctx: &Ctx, cluster: &Cluster, nodes: &[Node], view: &View) -> Result<u8> {
    let tails = nodes.iter().map(|node| {
        let prefix = if nodes.len() > 1 { cluster.machine(node) } else { String::new() };
        let lines = view.length.to_string();
        let argv = ["/bin/sh", "-c", FOLLOW, "logs", &lines, LOG_DIR, &prefix].map(str::to_owned);
        core::exec(ctx, cluster, node, argv.to_vec(), false)
    });
    tokio::select! {
        // They end with their nodes.
        codes = try_join_all(tails) => Ok(u8::from(codes?.iter().any(|code| *code != 0))),
        () = ctx.cancel.cancelled() => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn following_prints_the_end_of_the_file_and_what_comes() {
        for (prefix, want) in [("", ["two", "three"]), ("demo-m02", ["demo-m02: two", "demo-m02: three"])] {
            let dir = tempfile::tempdir().unwrap();
            let log = dir.path().join("kubelet.log");
            std::fs::write(&log, "one\ntwo\n").unwrap();
            let mut tail = Command::new("setsid")
                .args(["/bin/sh", "-c", FOLLOW, "logs", "1"])
                .arg(dir.path())
                .arg(prefix)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines().map_while(Result::ok);
            // With more than one file tail says which it is.
            let mut next = || lines.find(|l| !l.contains("==>") && !l.trim_end_matches(": ").is_empty());
            assert_eq!(next().as_deref(), Some(want[0]));
            let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
            std::io::Write::write_all(&mut file, b"three\n").unwrap();
            assert_eq!(next().as_deref(), Some(want[1]));
            let group = nix::unistd::Pid::from_raw(i32::try_from(tail.id()).unwrap());
            nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL).unwrap();
            tail.wait().unwrap();
        }
    }
}
