//! SSH keys of a machine: the one that it lets in, where minikube has it, and the one it is known by.

use std::path::PathBuf;

use anyhow::Result;
use bootstrap::pki::ssh_pair;
use model::Home;
use model::node_spec::{NodeFile, SSH_AUTHORIZED_KEYS, SSH_HOST_KEY};

use super::channel::Machines;
use crate::state::atomic;

pub fn private_key(home: &Home, machine: &str) -> PathBuf {
    home.machine(machine).join("id_rsa")
}

/// What the machine is known by, in the form of `known_hosts` without the address.
pub fn host_key(home: &Home, machine: &str) -> PathBuf {
    home.machine(machine).join("ssh_host.pub")
}

/// Makes what is missing. What the machine needs comes first: our own file says that all is there.
pub async fn keys(home: &Home, driver: &Machines, machine: &str) -> Result<()> {
    let (private, public) = (private_key(home, machine), home.machine(machine).join("id_rsa.pub"));
    if private.exists() {
        return Ok(());
    }
    let (guest, host) = (ssh_pair(&format!("docker@{machine}"))?, ssh_pair(machine)?);
    let files = [(SSH_HOST_KEY, 0o600, &host.private), (SSH_AUTHORIZED_KEYS, 0o644, &guest.public)];
    let files = files.map(|(path, mode, text)| NodeFile::new(path, mode, text.as_bytes()));
    driver.write(home, machine, &files).await?;
    atomic::write(&host_key(home, machine), host.public.as_bytes(), 0o644)?;
    atomic::write(&public, guest.public.as_bytes(), 0o644)?;
    Ok(atomic::write(&private, guest.private.as_bytes(), 0o600)?)
}
