//! `logs`: everything about a cluster that helps to find a fault, in one text.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use model::node_spec::LOG_DIR;
use model::{Cluster, Node};

use super::{cluster as common, print};
use crate::core;
use crate::ctx::Ctx;
use crate::state::audit;
use crate::table;

/// How logs are shown.
#[derive(Debug, Clone, clap::Args)]
pub struct View {
    /// How many lines of each log
    #[arg(short = 'n', long, default_value_t = 60, value_name = "LINES")]
    pub length: u32,
    /// Write to a file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Go on printing what is logged
    #[arg(short, long)]
    pub follow: bool,
    /// Only lines that look like problems
    #[arg(long)]
    pub problems: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub view: View,
    /// Only the audit log
    #[arg(long)]
    pub audit: bool,
    /// Only the log of the last start
    #[arg(long)]
    pub last_start_only: bool,
    /// The node; the primary one if left out
    #[arg(long)]
    pub node: Option<String>,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let lines = usize::try_from(args.view.length).unwrap_or(usize::MAX);
    let text = if args.audit {
        audit_section(ctx, lines)
    } else if args.last_start_only {
        last_start(ctx, usize::MAX)
    } else {
        return all(ctx, args, lines);
    };
    args.view.output(&text)?;
    Ok(0)
}

fn all(ctx: &Ctx, args: &Args, lines: usize) -> Result<u8> {
    let cluster = common::load(ctx)?;
    let node = common::node(&cluster, args.node.as_deref())?;
    if args.view.follow {
        let tail =
            ["tail", "-n", &lines.to_string(), "-F", &format!("{LOG_DIR}/kubelet.log")].map(str::to_owned);
        let code = ctx.run(async {
            common::require_running(ctx, &cluster).await?;
            core::exec(ctx, &cluster, node, tail.to_vec(), false).await
        })?;
        return Ok(u8::try_from(code).unwrap_or(1));
    }
    let collected = ctx.run(async {
        common::require_running(ctx, &cluster).await?;
        collect(ctx, &cluster, node, args.view.length).await
    });
    let (sections, failed) = match collected {
        Ok(sections) => (sections, None),
        Err(e) => (Vec::new(), Some(e)),
    };
    args.view.output(&if args.view.problems {
        problems(&sections)
    } else {
        audit_section(ctx, lines) + &last_start(ctx, lines) + &show(&sections)
    })?;
    failed.map_or(Ok(0), Err)
}

impl View {
    pub fn output(&self, text: &str) -> Result<()> {
        match &self.file {
            Some(file) => std::fs::write(file, text).with_context(|| format!("write {}", file.display())),
            None => {
                print(text);
                Ok(())
            }
        }
    }
}

/// The last lines of every log of a node, by name.
pub async fn collect(ctx: &Ctx, cluster: &Cluster, node: &Node, lines: u32) -> Result<Vec<(String, String)>> {
    let argv = ["/bin/sh", "-c", SCRIPT, "logs", &lines.to_string(), LOG_DIR].map(str::to_owned);
    let output = core::read_command(ctx, cluster, node, argv.to_vec()).await?;
    Ok(sections(&String::from_utf8_lossy(&output.stdout)))
}

pub fn show(sections: &[(String, String)]) -> String {
    sections.iter().map(|(name, body)| format!("==> {name} <==\n{body}\n")).collect()
}

fn audit_section(ctx: &Ctx, lines: usize) -> String {
    let headers = ["Command", "Args", "Profile", "User", "Version", "Start Time", "End Time"];
    let rows: Vec<Vec<String>> = audit::rows(&ctx.home, lines).into_iter().map(Vec::from).collect();
    format!("==> Audit <==\n{}\n", table::render(&headers, &rows))
}

fn last_start(ctx: &Ctx, lines: usize) -> String {
    let text = std::fs::read_to_string(ctx.home.logs().join("lastStart.txt")).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    format!("==> Last Start <==\n{}\n\n", all[all.len().saturating_sub(lines)..].join("\n"))
}

/// Collects all in one go: `$1` lines of each, services' logs below `$2`. A record separator stands before each name.
const SCRIPT: &str = r#"
n=$1; dir=$2
section() { printf '\036%s\n' "$1"; }
section kernel; uname -a; . /etc/os-release 2>/dev/null && echo "$PRETTY_NAME"
section dmesg; dmesg 2>&1 | tail -n "$n"
for log in "$dir"/*.log; do
    [ -f "$log" ] || continue
    name=${log##*/}; section "${name%.log}"; tail -n "$n" "$log"
done
section 'container status'; ctr -n k8s.io tasks ls 2>&1 | tail -n "$n"
for log in /var/log/pods/*/*/*.log; do
    [ -f "$log" ] || continue
    container=${log%/*}; pod=${container%/*}; uid=${pod##*_}
    section "${container##*/} [$(printf %.13s "$uid")]"; tail -n "$n" "$log"
done
if [ -r /etc/kubernetes/admin.conf ]; then
    section 'describe nodes'; kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 5s describe nodes 2>&1
fi
"#;

/// The script's output by section, sorted by name.
fn sections(text: &str) -> Vec<(String, String)> {
    let mut list: Vec<_> = text
        .split('\u{1e}')
        .skip(1)
        .filter_map(|part| part.split_once('\n'))
        .map(|(name, body)| (name.to_owned(), body.to_owned()))
        .collect();
    list.sort_by(|a, b| a.0.cmp(&b.0));
    list
}

fn is_problem(line: &str) -> bool {
    // klog's error and fatal lines, containerd's levels, and what ends a process.
    let klog = |l: &str| {
        l.split_whitespace()
            .any(|w| w.len() == 5 && w.starts_with(['E', 'F']) && w[1..].bytes().all(|b| b.is_ascii_digit()))
    };
    ["level=error", "level=fatal", "panic:", "Out of memory", "No space left on device"]
        .iter()
        .any(|p| line.contains(p))
        || klog(line)
}

pub fn problems(sections: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, body) in sections.iter().filter(|(name, _)| !name.ends_with("describe nodes")) {
        let found: Vec<&str> = body.lines().filter(|l| is_problem(l)).collect();
        if !found.is_empty() {
            text += &format!("X Problems detected in {name}:\n");
            found.iter().for_each(|line| text += &format!("  {line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_sorted_by_name() {
        let got = sections("noise\n\u{1e}kubelet\na\nb\n\u{1e}containerd\nc\n");
        assert_eq!(got, [("containerd".into(), "c\n".into()), ("kubelet".to_owned(), "a\nb\n".to_owned())]);
        assert!(sections("").is_empty());
    }

    #[test]
    fn problems_are_found_in_klog_and_logrus_lines() {
        for (line, want) in [
            ("E1115 10:00:00.1 1 reflector.go:1] nope", true),
            ("2026-11-15T10:00:00Z stderr F E1115 10:00:00.1 nope", true),
            ("time=\"x\" level=error msg=y", true),
            ("I1115 10:00:00.1 1 fine", false),
            ("Error words alone are common", false),
        ] {
            assert_eq!(is_problem(line), want, "{line}");
        }
    }

    #[test]
    fn the_script_is_valid_and_prints_sections() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("kubelet.log"), "one\ntwo\nthree\n").unwrap();
        let out = std::process::Command::new("/bin/sh")
            .args(["-c", SCRIPT, "logs", "2"])
            .arg(dir.path())
            .output()
            .unwrap();
        let got = sections(&String::from_utf8_lossy(&out.stdout));
        let kubelet = got.iter().find(|(n, _)| n == "kubelet").unwrap();
        assert_eq!(kubelet.1, "two\nthree\n");
        assert!(got.iter().any(|(n, b)| n == "kernel" && b.contains("Linux")));
    }
}
