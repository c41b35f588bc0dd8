//! Files of a machine that does not run, as they lie in its directory. What the node left there is not trusted: no link
//! of it leads out of the directory, and only plain files are opened.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use model::Home;
use model::node_spec::NodeFile;
use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat2};
use rustix::io::Errno;

use super::Paths;

/// The longest file that is read as a whole.
const LONGEST: u64 = 16 << 20;
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// A file of the node; `None` where there is none that can be read.
pub fn read(home: &Home, machine: &str, path: &str) -> Option<Vec<u8>> {
    let file = open(&Paths::new(home, machine), path).ok()?;
    let mut data = Vec::new();
    file.take(LONGEST).read_to_end(&mut data).ok()?;
    Some(data)
}

pub fn exists(home: &Home, machine: &str, path: &str) -> bool {
    open(&Paths::new(home, machine), path).is_ok()
}

/// Whether a directory of the node has anything in it.
pub fn has_entries(home: &Home, machine: &str, dir: &str) -> bool {
    let (root, below) = place(&Paths::new(home, machine), dir);
    let opened = open_root(&root).and_then(|root| at(&root, &below, DIRECTORY));
    let entries = opened.and_then(Dir::new);
    entries.is_ok_and(|entries| entries.flatten().any(|e| !matches!(e.file_name().to_bytes(), b"." | b"..")))
}

/// Replaces a file of a machine that does not run, as a whole.
pub fn write(home: &Home, machine: &str, file: &NodeFile) -> Result<()> {
    let paths = Paths::new(home, machine);
    ensure!(paths.running().is_none(), "machine {machine} runs: its files cannot be replaced from outside");
    put(&paths, file, |path| base::atomic::replace(path, &file.data, file.mode))
}

/// Removes a file of a machine that does not run, if there is one.
pub fn remove(home: &Home, machine: &str, path: &str) -> Result<()> {
    let (root, below) = place(&Paths::new(home, machine), path);
    let name = below.file_name().context("a path without a name")?;
    let parent =
        open_root(&root).and_then(|root| at(&root, below.parent().unwrap_or(Path::new("")), DIRECTORY));
    match parent {
        Ok(parent) => Ok(base::atomic::remove(&by_descriptor(&parent).join(name))?),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(e) => Err(e).with_context(|| format!("remove {machine}:{path}")),
    }
}

/// Writes a file of a machine that is being made, or that does not run. The caller makes it durable.
pub(super) fn put_quickly(paths: &Paths, file: &NodeFile) -> Result<()> {
    put(paths, file, |path| {
        // Never through what is there: it may be a link, or a file that others have as well.
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut options = std::fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::mode(options.write(true).create_new(true), 0o600);
        let opened = options.open(path)?;
        std::io::Write::write_all(&mut &opened, &file.data)?;
        opened.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(file.mode))
    })
}

fn put(paths: &Paths, file: &NodeFile, write: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
    let (root, below) = place(paths, &file.path);
    let root = open_root(&root).with_context(|| format!("open {}", root.display()))?;
    let name = below.file_name().context("a path without a name")?;
    let parent = below.parent().unwrap_or(Path::new(""));
    let dir = make_dirs(&root, parent).with_context(|| format!("make the directory of {}", file.path))?;
    write(&by_descriptor(&dir).join(name)).with_context(|| format!("write {}", file.path))
}

/// Where a path of the node lies: below /var, or among the changes against the image.
fn place(paths: &Paths, path: &str) -> (PathBuf, PathBuf) {
    match path.strip_prefix("/var/") {
        Some(in_var) => (paths.var(), in_var.into()),
        None => (paths.upper(), path.trim_start_matches('/').into()),
    }
}

fn open(paths: &Paths, path: &str) -> Result<File> {
    let (root, below) = place(paths, path);
    // A pipe would be waited for, a device is the host's.
    let fd = at(&open_root(&root)?, &below, OFlags::RDONLY | OFlags::NONBLOCK)?;
    if FileType::from_raw_mode(fstat(&fd)?.st_mode) != FileType::RegularFile {
        bail!("{path} is no file");
    }
    Ok(File::from(fd))
}

fn open_root(root: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(root, DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn at(root: &OwnedFd, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    openat2(root, below, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// A path that means this directory, whatever its name means by now.
fn by_descriptor(dir: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()))
}

fn make_dirs(root: &OwnedFd, below: &Path) -> Result<OwnedFd> {
    let mut dir = at(root, Path::new(""), DIRECTORY)?;
    let mut so_far = PathBuf::new();
    for part in below.components() {
        let Component::Normal(name) = part else { bail!("{} is not a plain path", below.display()) };
        so_far.push(name);
        dir = match at(root, &so_far, DIRECTORY) {
            Err(Errno::NOENT) => {
                mkdirat(&dir, name, Mode::from_raw_mode(0o755))?;
                at(root, &so_far, DIRECTORY)?
            }
            opened => opened?,
        };
    }
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn machine() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        for part in ["root/etc", "var/lib", "outside"] {
            std::fs::create_dir_all(dir.path().join("machines/m").join(part)).unwrap();
        }
        let home = Home::new(dir.path(), None);
        (dir, home)
    }

    #[test]
    fn no_link_of_a_node_leads_out_of_it() {
        let (dir, home) = machine();
        let at = dir.path().join("machines/m");
        std::fs::write(at.join("outside/secret"), "host").unwrap();
        for link in ["root/etc/manykube", "var/lib/minikube"] {
            symlink(at.join("outside"), at.join(link)).unwrap();
        }
        symlink(at.join("outside/secret"), at.join("root/etc/peers.json")).unwrap();
        symlink("../../outside/secret", at.join("var/lib/up")).unwrap();
        for path in ["/etc/manykube/secret", "/var/lib/minikube/secret", "/etc/peers.json", "/var/lib/up"] {
            assert_eq!(read(&home, "m", path), None, "{path}");
        }
        for path in ["/etc/manykube/new", "/var/lib/minikube/new", "/etc/peers.json", "/var/lib/up"] {
            // The link may be replaced by a file; what it led to stays.
            let _ = write(&home, "m", &NodeFile::new(path, 0o600, "node"));
            let _ = remove(&home, "m", path);
        }
        assert_eq!(std::fs::read_to_string(at.join("outside/secret")).unwrap(), "host");
        assert_eq!(std::fs::read_dir(at.join("outside")).unwrap().count(), 1, "nothing came to the host");
    }

    #[test]
    fn files_of_a_machine_that_is_off() {
        let (dir, home) = machine();
        let file = NodeFile::new("/var/lib/minikube/etcd/member/wal/0.wal", 0o600, "x");
        assert!(!has_entries(&home, "m", "/var/lib/minikube/etcd/member/wal"));
        write(&home, "m", &file).unwrap();
        assert!(has_entries(&home, "m", "/var/lib/minikube/etcd/member/wal"));
        assert_eq!(read(&home, "m", &file.path).unwrap(), b"x");
        put_quickly(&Paths::new(&home, "m"), &NodeFile::new("/etc/a/b", 0o640, "y")).unwrap();
        let mode = std::fs::metadata(dir.path().join("machines/m/root/etc/a/b")).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o640);
        assert!(exists(&home, "m", "/etc/a/b"));
        remove(&home, "m", "/etc/a/b").unwrap();
        remove(&home, "m", "/etc/a/b").unwrap();
        assert!(!exists(&home, "m", "/etc/a/b"));
        assert!(!exists(&home, "m", "/etc"), "a directory is no file");
    }
}
