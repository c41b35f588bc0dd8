//! Fills the image's containerd store: the containerd that was just built runs here, on a private root.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::net::UnixStream;
use tokio::process::Command;

use super::command::{Running, Shell};

const START: Duration = Duration::from_secs(30);
const STOP: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// The namespace in containerd that Kubernetes uses.
const NAMESPACE: &str = "k8s.io";
/// Marks an image as known to the kubelet's side of containerd, which would otherwise add an alias
/// `sha256:…` for each, that `docker images` then shows.
const MANAGED: &str = "io.cri-containerd.image=managed";
/// The kubelet never collects a pinned image.
const PINNED: &str = "io.cri-containerd.pinned=pinned";

/// What to import and where to.
pub struct Import<'a> {
    /// Directory of `containerd` and `ctr`.
    pub programs: PathBuf,
    /// The OCI archive.
    pub archive: PathBuf,
    /// containerd's root directory.
    pub root: PathBuf,
    /// All that must be there in the end.
    pub references: &'a [String],
    pub pinned: &'a str,
}

/// Imports and unpacks all images; nothing runs or is mounted afterwards.
pub async fn import(shell: &Shell, import: &Import<'_>) -> Result<()> {
    // A socket's path may have 108 characters at most, so it does not go below the cache.
    let private = tempfile::Builder::new().prefix("manykube-import-").tempdir()?;
    let socket = private.path().join("sock");
    let file = private.path().join("config.toml");
    fs_err::create_dir_all(&import.root)?;
    fs_err::write(&file, config(&import.root, private.path(), &socket))?;
    // Unpacking mounts; in a mount namespace of its own nothing of it outlives the process.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(import.programs.join("containerd"));
    let mut daemon = shell.start(command.arg("--config").arg(&file))?;
    answers(&mut daemon, &socket).await?;

    let ctr = |arguments: &[&str]| {
        let mut command = Command::new(import.programs.join("ctr"));
        command.arg("--address").arg(&socket).args(["--namespace", NAMESPACE, "images"]).args(arguments);
        command
    };
    let archive = import.archive.to_string_lossy();
    shell.run(&mut ctr(&["import", "--label", MANAGED, "--snapshotter", "overlayfs", &archive])).await?;
    shell.run(&mut ctr(&["label", import.pinned, MANAGED, PINNED])).await?;
    complete(&shell.read(&mut ctr(&["check", "--snapshotter", "overlayfs"])).await?, import.references)?;
    daemon.stop(STOP).await?;
    forget_identity(&import.root)
}

async fn answers(daemon: &mut Running, socket: &Path) -> Result<()> {
    let deadline = Instant::now() + START;
    loop {
        let Err(error) = UnixStream::connect(socket).await else { return Ok(()) };
        if let Some(status) = daemon.child.try_wait()? {
            bail!("the containerd that fills the image store ended: {status}; see the build's log");
        }
        if Instant::now() > deadline {
            return Err(error).context("the containerd that fills the image store does not answer");
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Only what an import needs is switched on.
fn config(root: &Path, private: &Path, socket: &Path) -> String {
    let disabled =
        ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"];
    format!(
        "version = 3\nroot = {root:?}\nstate = {:?}\ndisabled_plugins = {disabled:?}\n[grpc]\naddress = {socket:?}\n",
        private.join("state")
    )
}

/// Reads `ctr images check`: every reference must be complete and unpacked.
fn complete(text: &str, references: &[String]) -> Result<()> {
    for reference in references {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(reference));
        match line {
            None => bail!("containerd does not have {reference} after the import"),
            Some(line) if !line.contains(" complete ") || !line.trim_end().ends_with("true") => {
                bail!("containerd has {reference} only in part after the import: {line}")
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Every node's containerd must make an identity of its own.
fn forget_identity(root: &Path) -> Result<()> {
    for entry in fs_err::read_dir(root)? {
        let uuid = entry?.path().join("uuid");
        if uuid.exists() {
            fs_err::remove_file(uuid)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_complete_when_all_is_there_and_unpacked() {
        let head = "REF TYPE DIGEST STATUS SIZE UNPACKED\n";
        let line = |name: &str, status: &str, unpacked: bool| {
            format!("{name} application/x sha256:1 {status} (3/3) 1.0 MiB/1.0 MiB {unpacked}\n")
        };
        let wanted = ["a:1".to_owned(), "b:1".to_owned()];
        assert!(
            complete(
                &format!("{head}{}{}", line("a:1", "complete", true), line("b:1", "complete", true)),
                &wanted
            )
            .is_ok()
        );
        for bad in
            [line("b:1", "complete", false), line("b:1", "incomplete", true), line("b:10", "complete", true)]
        {
            assert!(
                complete(&format!("{head}{}{bad}", line("a:1", "complete", true)), &wanted).is_err(),
                "{bad}"
            );
        }
    }
}
