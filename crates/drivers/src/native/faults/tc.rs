//! Packets that come late, at both ends of a machine's cable. tc comes from the node image, as nft does.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use model::injected::Slowness;
use model::{Fault, Reason};

use crate::native::borrowed::in_image;

/// What `netem` put there goes.
pub fn nothing(link: &str) -> Vec<String> {
    words(&["qdisc", "del", "dev", link, "root"])
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|w| (*w).to_owned()).collect()
}

pub fn netem(link: &str, slowness: Slowness) -> Vec<String> {
    let mut line = words(&["qdisc", "replace", "dev", link, "root", "netem", "limit", "10000", "delay"]);
    line.push(format!("{}us", slowness.delay_us));
    if slowness.jitter_us > 0 {
        line.push(format!("{}us", slowness.jitter_us));
    }
    line
}

/// Runs the image's tc, in this network namespace or in that of a process.
pub fn run(image_rootfs: &Path, inside: Option<u32>, args: &[String]) -> Result<()> {
    use std::os::unix::process::CommandExt;
    let network = inside.map(|pid| fs_err::File::open(format!("/proc/{pid}/ns/net"))).transpose()?;
    let mut command = Command::new("/usr/sbin/tc");
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // SAFETY: setns is async-signal-safe; nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            if let Some(network) = &network {
                nix::sched::setns(network.file(), nix::sched::CloneFlags::CLONE_NEWNET)?;
            }
            Ok(())
        });
    }
    in_image(&mut command, image_rootfs)?;
    let output = command.output().with_context(|| format!("run tc of {}", image_rootfs.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("qdisc kind is unknown") {
        return Err(Fault::new(
            Reason::HostUnsupported,
            "Packets cannot be delayed here: this kernel has no netem (CONFIG_NET_SCH_NETEM).",
        )
        .advice("Use --loss alone, which needs none, or load it where there is one: modprobe sch_netem")
        .into());
    }
    bail!("tc refused: {}", said.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_in_tcs_words() {
        let line = netem("eth0", Slowness { delay_us: 50_000, jitter_us: 500, loss: 0 }).join(" ");
        assert_eq!(line, "qdisc replace dev eth0 root netem limit 10000 delay 50000us 500us");
    }
}
