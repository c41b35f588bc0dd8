//! Files that are either as they were or as they are to be, whatever happens in between.

use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use engine::crash;

/// Writes beside the file, makes it durable, and renames.
pub fn write(path: &Path, data: &[u8], mode: u32) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs_err::create_dir_all(dir)?;
    sweep(path);
    let place = format!("write/{}", name(path));
    crash::place(&place, "before");
    // Named after us, so that whoever comes after our death knows whose it was.
    let temp = dir.join(format!(".{}.{}{SUFFIX}", name(path), std::process::id()));
    let temp = tempfile::TempPath::try_from_path(temp)?;
    let mut file = new_file(&temp, mode)?;
    file.write_all(data)?;
    keep_owner(path, &temp);
    file.sync_all()?;
    crash::place(&place, "midway");
    temp.persist(path).map_err(|e| e.error)?;
    // The rename itself is durable only when the directory is.
    fs_err::File::open(dir)?.sync_all()?;
    crash::place(&place, "after");
    Ok(())
}

const SUFFIX: &str = ".new";

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn new_file(path: &Path, mode: u32) -> io::Result<std::fs::File> {
    let file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    // The umask has no say, as it had none before.
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    Ok(file)
}

/// Removes what a writer of this file left that died half-way.
pub fn sweep(path: &Path) {
    let dir = path.parent().unwrap_or(Path::new("."));
    left_in(dir)
        .into_iter()
        .filter(|(of, _)| *of == name(path))
        .for_each(|(_, at)| drop(std::fs::remove_file(at)));
}

/// As [`sweep`], for all files of a directory.
pub fn sweep_all(dir: &Path) {
    left_in(dir).into_iter().for_each(|(_, at)| drop(std::fs::remove_file(at)));
}

/// Halves of dead writers: of which file, and where.
fn left_in(dir: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let half = entry.file_name().into_string().ok()?;
            let (of, pid) = half.strip_prefix('.')?.strip_suffix(SUFFIX)?.rsplit_once('.')?;
            let pid: u32 = pid.parse().ok()?;
            let dead = !Path::new("/proc").join(pid.to_string()).exists();
            dead.then(|| (of.to_owned(), entry.path()))
        })
        .collect()
}

/// A file stays its owner's. A new one that is made by sudo in the caller's own directory is theirs.
fn keep_owner(path: &Path, temp: &Path) {
    let dir = path.parent().unwrap_or(Path::new("."));
    let Ok(like) = std::fs::metadata(path).or_else(|_| std::fs::metadata(dir)) else { return };
    // Only root may give files away, and only root needs to.
    let _ = std::os::unix::fs::chown(temp, Some(like.uid()), Some(like.gid()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_leaves_nothing_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/file");
        write(&path, b"one", 0o600).unwrap();
        write(&path, b"two", 0o600).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path().join("sub")).unwrap().count(), 1);
    }

    #[test]
    fn halves_of_the_dead_are_removed_and_of_the_living_not() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        // No process has this number: it is above what the kernel gives.
        let dead = at(".config.json.4294967295.new");
        let (living, other) = (at(".config.json.1.new"), at(".config.json.new"));
        for half in [&dead, &living, &other] {
            std::fs::write(half, "").unwrap();
        }
        sweep(&at("events.json"));
        assert!(dead.exists());
        write(&at("config.json"), b"x", 0o600).unwrap();
        assert!(!dead.exists() && living.exists() && other.exists());
    }
}
