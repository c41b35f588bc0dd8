//! The versions of the programs that a node has.

use anyhow::Result;

use super::cluster as common;
use crate::core;
use crate::ctx::Ctx;

/// minikube's list, in its order; what a node does not have says `error`, as there.
const PROGRAMS: &str =
    "docker dockerd cri-dockerd containerd crio podman crictl buildctl ctr runc crun kubeadm kubelet kubectl";

/// One line for each of `$@`: its name, a tab, and the first line of what it says.
const SCRIPT: &str = r#"
for program; do
    case $program in kubeadm) option='version -o short' ;; kubectl) option='version --client' ;; *) option=--version ;; esac
    said=$($program $option 2>/dev/null) || said=error
    printf '%s\t%s\n' "$program" "$(printf '%s\n' "$said" | head -n 1)"
done
"#;

pub fn ask(ctx: &Ctx) -> Result<Vec<(String, String)>> {
    let cluster = common::load(ctx)?;
    let node = common::node(&cluster, None)?;
    let mut argv = ["/bin/sh", "-c", SCRIPT, "versions"].map(str::to_owned).to_vec();
    argv.extend(PROGRAMS.split(' ').map(str::to_owned));
    let output = ctx.run(async {
        common::require_running(ctx, &cluster).await?;
        core::read_command(ctx, &cluster, node, argv).await
    })?;
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

fn parse(text: &str) -> Vec<(String, String)> {
    let pair =
        |line: &str| line.split_once('\t').map(|(name, said)| (name.to_owned(), said.trim().to_owned()));
    text.lines().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_line() {
        let out = std::process::Command::new("/bin/sh")
            .args(["-c", SCRIPT, "versions", "sh-that-is-not-there", "grep"])
            .output()
            .expect("run a shell");
        let got = parse(&String::from_utf8_lossy(&out.stdout));
        assert_eq!(got[0], ("sh-that-is-not-there".to_owned(), "error".to_owned()));
        assert!(got[1].1.contains("grep"), "{got:?}");
    }
}
