//! Puts a node's root file system together: the Debian root, the programs, and a few files.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use super::recipe::CNI;
use crate::clone;

/// (component, program, directory in the node). The layout is that of kind's node images.
fn programs() -> Vec<(&'static str, &'static str, &'static str)> {
    let mut all = vec![
        ("kubernetes", "kubeadm", "usr/bin"),
        ("kubernetes", "kubelet", "usr/bin"),
        ("kubernetes", "kubectl", "usr/bin"),
        ("containerd", "containerd", "usr/local/bin"),
        ("containerd", "containerd-shim-runc-v2", "usr/local/bin"),
        ("containerd", "ctr", "usr/local/bin"),
        ("etcd", "etcdctl", "usr/local/bin"),
        ("runc", "runc", "usr/local/sbin"),
        ("docker", "dockerd", "usr/local/bin"),
        ("docker", "docker-proxy", "usr/local/bin"),
        ("docker", "buildctl", "usr/local/bin"),
    ];
    all.extend(CNI.iter().map(|plugin| ("cni", plugin.rsplit('/').next().unwrap_or(plugin), "opt/cni/bin")));
    all
}

/// Must be there and empty: a node mounts something over each.
const MOUNT_POINTS: [&str; 4] = ["proc", "sys", "dev", "run"];

/// Left by the package manager: not used in a node, or about the machine that built the image.
const LEFTOVERS: [&str; 11] = [
    "etc/apt",
    "var/lib/apt",
    "var/cache/apt",
    "var/cache/debconf",
    "var/cache/ldconfig",
    "var/log",
    "var/backups",
    "var/lib/dpkg/status-old",
    "var/lib/dpkg/diversions-old",
    "var/lib/systemd",
    "boot",
];

/// Makes the tree in `rootfs`, which must not exist yet.
pub fn assemble(
    debian: &Path,
    component: &dyn Fn(&str) -> PathBuf,
    kubernetes: &str,
    rootfs: &Path,
) -> Result<()> {
    clone::copy(debian, rootfs)?;
    for path in LEFTOVERS {
        remove(&rootfs.join(path))?;
    }
    for path in MOUNT_POINTS {
        remove(&rootfs.join(path))?;
        directory(rootfs, path, 0o755)?;
    }
    for path in ["var/log", "etc/cni/net.d", "opt/cni/bin", "usr/local/bin", "usr/local/sbin", "kind"] {
        directory(rootfs, path, 0o755)?;
    }
    for (from, program, to) in programs() {
        let (source, target) = (component(from).join(program), rootfs.join(to).join(program));
        fs_err::copy(&source, &target)?;
        fs_err::set_permissions(&target, PermissionsExt::from_mode(0o755))?;
    }
    package_database(rootfs).context("moving the package database out of /var")?;
    small_files(rootfs, kubernetes)?;
    host_keys(rootfs).context("removing SSH's host keys")?;
    user(rootfs).context("adding the user docker")
}

/// Debian's package made keys: with them all nodes of all images would be the same host.
fn host_keys(rootfs: &Path) -> Result<()> {
    for entry in fs_err::read_dir(rootfs.join("etc/ssh"))? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b"ssh_host_") {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// dpkg's database describes the root, so it belongs to the root and not to `/var`, which every node has a
/// copy of: it is three quarters of the files that would have to be copied.
fn package_database(rootfs: &Path) -> Result<()> {
    let (old, new) = (rootfs.join("var/lib/dpkg"), rootfs.join("usr/lib/sysimage/dpkg"));
    directory(rootfs, "usr/lib/sysimage", 0o755)?;
    fs_err::rename(&old, new)?;
    symlink("../../usr/lib/sysimage/dpkg", old)?;
    Ok(())
}

/// Files with a fixed content. Some are empty because a node fills them: an image must not carry the name
/// servers or the identity of the machine that built it.
fn small_files(rootfs: &Path, kubernetes: &str) -> Result<()> {
    for empty in ["etc/machine-id", "etc/resolv.conf", "etc/hostname"] {
        remove(&rootfs.join(empty))?;
        fs_err::write(rootfs.join(empty), "")?;
    }
    fs_err::write(rootfs.join("kind/version"), kubernetes)?;
    let version = json!({"iso_version": "manykube", "kubernetes_version": kubernetes, "commit": ""});
    fs_err::write(rootfs.join("version.json"), format!("{version}\n"))?;
    // Where scripts written for minikube look.
    let binaries = format!("var/lib/minikube/binaries/{kubernetes}");
    directory(rootfs, &binaries, 0o755)?;
    for program in ["kubectl", "kubeadm", "kubelet"] {
        symlink(format!("/usr/bin/{program}"), rootfs.join(&binaries).join(program))?;
    }
    Ok(())
}

/// The user that `ssh` logs in as, who may become root.
fn user(rootfs: &Path) -> Result<()> {
    append(rootfs, "etc/passwd", "docker:x:1000:1000:,,,:/home/docker:/bin/bash\n")?;
    append(rootfs, "etc/group", "docker:x:1000:\n")?;
    let path = rootfs.join("etc/shadow");
    fs_err::write(&path, shadow(&fs_err::read_to_string(rootfs.join("etc/passwd"))?))?;
    fs_err::set_permissions(&path, PermissionsExt::from_mode(0o640))?;
    let sudoers = rootfs.join("etc/sudoers.d/docker");
    fs_err::write(&sudoers, "docker ALL=(ALL) NOPASSWD:ALL\n")?;
    fs_err::set_permissions(&sudoers, PermissionsExt::from_mode(0o440))?;
    directory(rootfs, "home/docker", 0o755)?;
    std::os::unix::fs::chown(rootfs.join("home/docker"), Some(1000), Some(1000))?;
    Ok(())
}

/// Nobody has a password. PAM, which sudo asks, wants everybody in this file all the same; Debian writes it
/// only when its installer runs.
fn shadow(passwd: &str) -> String {
    let names = passwd.lines().filter_map(|line| line.split(':').next());
    names.map(|name| format!("{name}:*:20000:0:99999:7:::\n")).collect()
}

fn append(rootfs: &Path, path: &str, line: &str) -> Result<()> {
    let path = rootfs.join(path);
    let text = fs_err::read_to_string(&path)?;
    fs_err::write(&path, text + line)?;
    Ok(())
}

fn directory(rootfs: &Path, path: &str, mode: u32) -> Result<()> {
    let path = rootfs.join(path);
    fs_err::create_dir_all(&path)?;
    fs_err::set_permissions(&path, PermissionsExt::from_mode(mode))?;
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match fs_err::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs_err::remove_dir_all(path)?,
        Ok(_) => fs_err::remove_file(path)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_in_shadow_and_nobody_has_a_password() {
        let text = shadow("root:x:0:0:root:/root:/bin/bash\ndocker:x:1000:1000::/home/docker:/bin/bash\n");
        assert_eq!(text, "root:*:20000:0:99999:7:::\ndocker:*:20000:0:99999:7:::\n");
    }

    #[test]
    fn every_program_has_one_place() {
        let mut places: Vec<_> =
            programs().into_iter().map(|(_, program, dir)| format!("{dir}/{program}")).collect();
        let all = places.len();
        places.sort();
        places.dedup();
        assert_eq!(places.len(), all);
        assert!(places.contains(&"opt/cni/bin/host-local".to_owned()));
    }
}
