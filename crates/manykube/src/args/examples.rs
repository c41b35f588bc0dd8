//! Command lines that work, shown by `--help` and in docs/cli.md. A test parses every one of them.

use clap::Command;

/// The command's words, and lines without the tool's name.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "start",
        &[
            "start --ha",
            "start --nodes=5 --control-planes=3 -p big",
            "start --cpus=2 --memory=4g --kubernetes-version=1.36",
            "start -f cluster.yaml",
            "start --dry-run",
        ],
    ),
    ("stop", &["stop", "stop --all", "stop --schedule=30m", "stop --cancel-scheduled"]),
    ("delete", &["delete", "delete -p big", "delete --all --purge"]),
    ("pause", &["pause", "pause -A", "pause -n kube-system"]),
    ("unpause", &["unpause", "unpause -A"]),
    (
        "status",
        &[
            "status",
            "status -o json",
            "status -f {{.Host}}",
            "status -o json -l cluster",
            "status -n m02 -w=5s",
        ],
    ),
    ("profile", &["profile", "profile big", "profile list -o json"]),
    ("profile list", &["profile list", "profile list -o json", "profile list --light"]),
    ("node", &["node list", "node add --control-plane", "node stop m02"]),
    ("node add", &["node add", "node add --count=3", "node add gpu --cpus=1 --memory=2g --labels=tier=gpu"]),
    ("node start", &["node start m02", "node start --all"]),
    ("node stop", &["node stop m02", "node stop --all"]),
    ("node delete", &["node delete m02"]),
    ("node set", &["node set m02 --memory=3g --labels=tier-"]),
    ("node list", &["node list"]),
    ("worker", &["worker create w1", "worker start w1", "worker logs -f"]),
    ("ip", &["ip", "ip -n m02"]),
    ("ssh", &["ssh", "ssh -n m02", "ssh -- ps -ef"]),
    ("ssh-key", &["ssh-key", "ssh-key -n m02"]),
    ("ssh-host", &["ssh-host", "ssh-host -n m02 --append-known"]),
    ("cp", &["cp app.tar /home/docker/app.tar", "cp m02:/etc/hosts hosts.txt", "cp m02:/tmp/a m03:/tmp/"]),
    ("kubectl", &["kubectl -- get pods -A", "kubectl --ssh -- get nodes"]),
    ("service", &["service web --url", "service --all -n shop --url"]),
    ("service list", &["service list", "service list -n default -o json"]),
    ("tunnel", &["tunnel"]),
    ("addons", &["addons list", "addons enable registry", "addons disable registry"]),
    ("addons list", &["addons list", "addons list -o json"]),
    (
        "addons enable",
        &["addons enable registry", "addons enable metrics-server --images=MetricsServer=r.example/ms:v1"],
    ),
    ("addons disable", &["addons disable registry"]),
    ("addons images", &["addons images metrics-server"]),
    ("addons open", &["addons open dashboard --url"]),
    ("addons configure", &["addons configure registry"]),
    ("dashboard", &["dashboard", "dashboard --url --port=36195"]),
    (
        "logs",
        &["logs", "logs --node=m02 -n 200", "logs --file=cluster.log", "logs --problems", "logs --audit"],
    ),
    ("update-context", &["update-context -p big"]),
    ("image", &["image build -t app:v1 .", "image load app.tar", "image ls --format=table"]),
    ("docker-env", &["docker-env --all", "docker-env -n m02 --shell=fish"]),
    ("mount", &["mount ./data:/data"]),
    ("cache", &["cache list"]),
    ("driver", &["driver list"]),
    ("node-image", &["node-image list", "node-image build --kubernetes-version=1.36"]),
    ("config", &["config set memory 4g", "config get memory", "config unset memory", "config view"]),
    ("config defaults", &["config defaults kubernetes-version -o json"]),
    ("version", &["version", "version --short", "version -o json", "version --components"]),
    ("completion", &["completion bash"]),
    ("options", &["options"]),
    ("podman-env", &["podman-env --unset"]),
    ("license", &["license", "license -d ."]),
];

/// Puts the examples at the end of every command's help.
pub fn add(command: Command, tool: &str) -> Command {
    below(command, "", tool)
}

fn below(command: Command, path: &str, tool: &str) -> Command {
    let text = of(path, tool);
    let command = if text.is_empty() { command } else { command.after_help(text) };
    let path = path.to_owned();
    command.mut_subcommands(|sub| {
        let inner = format!("{path} {}", sub.get_name()).trim().to_owned();
        below(sub, &inner, tool)
    })
}

fn of(path: &str, tool: &str) -> String {
    let Some((_, lines)) = EXAMPLES.iter().find(|(p, _)| *p == path) else { return String::new() };
    let lines: Vec<String> = lines.iter().map(|l| format!("  {tool} {}", quoted(l))).collect();
    format!("Examples:\n{}", lines.join("\n"))
}

/// As one would type it: braces and dollars mean something to shells.
fn quoted(line: &str) -> String {
    let word = |w: &str| if w.contains('{') { format!("'{w}'") } else { w.to_owned() };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_parses_and_every_command_with_one_exists() {
        let root = crate::args::definition("manykube");
        for (path, lines) in EXAMPLES {
            let found = path.split(' ').try_fold(&root, |c, word| c.find_subcommand(word));
            assert!(found.is_some(), "there is no command {path}");
            for line in *lines {
                assert!(line.starts_with(path.split(' ').next().unwrap_or_default()), "{line}");
                let words = std::iter::once("manykube").chain(line.split(' '));
                assert!(root.clone().try_get_matches_from(words).is_ok(), "{line}");
            }
        }
    }
}
