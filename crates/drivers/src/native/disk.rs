//! A machine's disk of its own in the machine: opened while the host's devices can be, put in place when `/`
//! is the node's.

use std::io::{ErrorKind, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen, move_mount,
};

use super::loop_device;
use crate::lock;
use crate::machine::Paths;

/// An end takes this long at most to let go of the disk.
const IN_USE: Duration = Duration::from_secs(10);

/// Directory of the disk, its place in the node, mode: what a kubelet calls nodefs, and etcd's data. The images
/// of all nodes are one copy on the host's disk and stay there.
const PLACES: [(&str, &str, u32); 3] = [
    ("kubelet", "/var/lib/kubelet", 0o755),
    ("logs", "/var/log/pods", 0o755),
    ("etcd", "/var/lib/minikube/etcd", 0o700),
];
/// Where the whole of it is seen for a moment.
const WHOLE: &str = "/run/disk";

/// Mounted, but nowhere yet. `None` for a machine that shares the host's disk.
pub struct Disk {
    tree: OwnedFd,
    /// It is to be full on purpose.
    full: bool,
}

/// In the launcher's own cgroup: in that of a machine no disk can be opened.
pub fn open(paths: &Paths) -> Result<Option<Disk>> {
    if !paths.has_disk() {
        return Ok(None);
    }
    let file = fs_err::OpenOptions::new().read(true).write(true).open(paths.disk())?;
    lock(file.file()).with_context(|| format!("take {}", paths.disk().display()))?;
    let device = loop_device::attach(file.file())?;
    let source = device.path.to_str().context("a device whose name is no text")?;
    let mounted = || {
        let made = fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(made.as_fd(), "source", source)?;
        fsconfig_create(made.as_fd())?;
        fsmount(made.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NOATIME)
    };
    let tree = mounted().with_context(|| format!("mount {} by {source}", paths.disk().display()))?;
    Ok(Some(Disk { tree, full: paths.is_to_be_full() }))
}

/// Two mounts of one disk would ruin it. The device keeps the file open, and with it the lock, until the last who looks
/// into the machine that was has let go.
fn lock(file: &std::fs::File) -> Result<()> {
    lock::within(IN_USE, file).map_err(|e| match e.kind() {
        ErrorKind::WouldBlock => {
            anyhow!("it is still in use since the last boot: end what was begun in the node then (ssh, cp)")
        }
        _ => e.into(),
    })
}

impl Disk {
    pub fn put(self) -> Result<()> {
        let whole = Path::new(WHOLE);
        fs_err::create_dir_all(whole)?;
        move_mount(self.tree.as_fd(), "", CWD, whole, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .context("show the node its disk")?;
        for (name, place, mode) in PLACES {
            let (own, place) = (whole.join(name), Path::new(place));
            fs_err::create_dir_all(&own)?;
            fs_err::set_permissions(&own, std::fs::Permissions::from_mode(mode))?;
            if name == "kubelet" && !self.full {
                remove(&own.join(model::node_spec::FILL_NAME))?;
            }
            fs_err::create_dir_all(place)?;
            refresh(place, &own)?;
            mount(Some(&own), place, None::<&str>, MsFlags::MS_BIND, None::<&str>)
                .with_context(|| format!("show the disk at {}", place.display()))?;
        }
        umount2(whole, MntFlags::MNT_DETACH).context("hide the rest of the disk")?;
        Ok(fs_err::remove_dir(whole)?)
    }
}

fn remove(file: &Path) -> Result<()> {
    match fs_err::remove_file(file) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e.into()),
        _ => Ok(()),
    }
}

/// The host writes a node's files below the place that the disk covers. What is newer there is taken over;
/// what the node wrote since (a certificate that its kubelet renewed) stays.
fn refresh(from: &Path, to: &Path) -> Result<()> {
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let found = entry.metadata()?;
        if found.is_dir() {
            fs_err::create_dir_all(&target)?;
            fs_err::set_permissions(&target, found.permissions())?;
            refresh(&source, &target)?;
        } else if found.is_file() {
            let modified = found.modified()?;
            if std::fs::symlink_metadata(&target).is_ok_and(|t| t.modified().is_ok_and(|t| t >= modified)) {
                continue;
            }
            // Beside its place first: what is there may be a link, and nobody is to find half of it.
            let new = target.with_extension("new");
            match fs_err::copy(&source, &new) {
                // Where there is no room for both, the new one takes the blocks of the old one.
                Err(e) if e.kind() == ErrorKind::StorageFull && target.is_file() => {
                    fs_err::rename(&target, &new)?;
                    overwrite(&source, &new)?;
                }
                copied => drop(copied?),
            }
            fs_err::OpenOptions::new().write(true).open(&new)?.file().set_modified(modified)?;
            fs_err::rename(&new, &target)?;
        }
    }
    Ok(())
}

/// Without giving blocks back first.
fn overwrite(source: &Path, target: &Path) -> Result<()> {
    let text = fs_err::read(source)?;
    let mut file = fs_err::OpenOptions::new().write(true).open(target)?;
    file.write_all(&text)?;
    Ok(file.set_len(text.len() as u64)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_wrote_since_is_taken_over() {
        let (host, disk) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |dir: &tempfile::TempDir, name: &str| dir.path().join(name);
        std::fs::create_dir(at(&host, "pki")).unwrap();
        for (name, text) in [("config.yaml", "one"), ("pki/current.pem", "ours")] {
            std::fs::write(at(&host, name), text).unwrap();
        }
        refresh(host.path(), disk.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(at(&disk, name)).unwrap();
        assert_eq!((read("config.yaml").as_str(), read("pki/current.pem").as_str()), ("one", "ours"));

        // The kubelet renews its certificate: a link to a new file.
        std::fs::write(at(&disk, "pki/renewed.pem"), "theirs").unwrap();
        std::fs::remove_file(at(&disk, "pki/current.pem")).unwrap();
        std::os::unix::fs::symlink("renewed.pem", at(&disk, "pki/current.pem")).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
        std::fs::write(at(&host, "config.yaml"), "two").unwrap();
        std::fs::File::options()
            .write(true)
            .open(at(&host, "config.yaml"))
            .unwrap()
            .set_modified(later)
            .unwrap();
        refresh(host.path(), disk.path()).unwrap();
        assert_eq!((read("config.yaml").as_str(), read("pki/current.pem").as_str()), ("two", "theirs"));
    }

    #[test]
    fn the_new_takes_the_place_of_the_old() {
        let dir = tempfile::tempdir().unwrap();
        let (source, target) = (dir.path().join("a"), dir.path().join("b"));
        for (old, new) in [("longer", "new"), ("new", "longer")] {
            std::fs::write(&source, new).unwrap();
            std::fs::write(&target, old).unwrap();
            overwrite(&source, &target).unwrap();
            assert_eq!(std::fs::read_to_string(&target).unwrap(), new);
        }
    }
}
