//! Files of the node that follow from its specification.

use std::fmt::Write;

use anyhow::Result;
use model::node_spec::{LOG_DIR, NodeSpec};

pub fn write(spec: &NodeSpec) -> Result<()> {
    fs_err::create_dir_all(LOG_DIR)?;
    fs_err::write("/etc/hosts", hosts(spec))?;
    fs_err::write("/etc/hostname", format!("{}\n", spec.machine))?;
    fs_err::write("/etc/resolv.conf", resolv_conf(spec))?;
    let id = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    if id.trim().is_empty() {
        let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        fs_err::write("/etc/machine-id", random.replace('-', ""))?;
    }
    // minikube's place for certificates, and kubeadm's: commands by hand find them without a flag.
    let pki = std::path::Path::new("/etc/kubernetes/pki");
    if spec.control_plane && !pki.exists() {
        fs_err::create_dir_all("/etc/kubernetes")?;
        fs_err::os::unix::fs::symlink("/var/lib/minikube/certs", pki)?;
    }
    Ok(())
}

fn hosts(spec: &NodeSpec) -> String {
    let mut text = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n".to_owned();
    let _ = writeln!(text, "{}\t{}", spec.network.address.addr(), spec.machine);
    for entry in &spec.hosts {
        let _ = writeln!(text, "{}\t{}", entry.ip, entry.name);
    }
    text
}

/// CoreDNS does not start without any server to forward to; the host at least says no at once.
fn resolv_conf(spec: &NodeSpec) -> String {
    let servers = if spec.network.dns.is_empty() { &[spec.network.gateway][..] } else { &spec.network.dns };
    servers.iter().map(|ip| format!("nameserver {ip}\n")).collect()
}
