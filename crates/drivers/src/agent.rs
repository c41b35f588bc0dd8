//! The program that nodes run as their init.

use std::collections::BTreeSet;
use std::io::{BufReader, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use anyhow::Result;
use model::Home;

const OWN: &str = "/proc/self/exe";

/// What tells this program from an older one: to read it whole for that would take longer than most commands.
pub fn version() -> Result<String> {
    let own = fs_err::metadata(OWN)?;
    let modified = own.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Ok(format!("{}-{modified}", own.len()))
}

/// A copy of this program for the nodes: the command itself may be replaced while they run.
pub fn program(home: &Home) -> Result<PathBuf> {
    static CHECKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let program = home.root().join("bin").join(format!("agent-{}", version()?));
    // Once for all machines that a command boots.
    let mut checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
    if !checked.contains(&program) || !program.exists() {
        place(Path::new(OWN), &program)?;
        checked.insert(program.clone());
    }
    Ok(program)
}

/// All nodes hang on it, and root runs it: a copy that differs is replaced.
fn place(own: &Path, program: &Path) -> Result<()> {
    if !is_same(own, program) {
        base::atomic::replace(program, &fs_err::read(own)?, 0o755)?;
    }
    Ok(())
}

fn is_same(own: &Path, program: &Path) -> bool {
    let Ok(found) = std::fs::symlink_metadata(program) else { return false };
    let (Ok(mut own), Ok(mut program)) = (std::fs::File::open(own), std::fs::File::open(program)) else {
        return false;
    };
    found.is_file() && found.permissions().mode() & 0o022 == 0 && same_content(&mut own, &mut program)
}

fn same_content(one: &mut impl Read, other: &mut impl Read) -> bool {
    const PART: usize = 1 << 20;
    let (mut one, mut other) = (BufReader::with_capacity(PART, one), BufReader::with_capacity(PART, other));
    let (mut here, mut there) = (Vec::new(), Vec::new());
    loop {
        here.clear();
        there.clear();
        let part = PART as u64;
        let read = (
            one.by_ref().take(part).read_to_end(&mut here),
            other.by_ref().take(part).read_to_end(&mut there),
        );
        match read {
            (Ok(0), Ok(0)) => return true,
            (Ok(_), Ok(_)) if here == there => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_another_one_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (own, program) = (dir.path().join("own"), dir.path().join("bin/agent"));
        std::fs::write(&own, vec![7; 3 << 20]).unwrap();
        place(&own, &program).unwrap();
        assert!(is_same(&own, &program));
        let mut other = vec![7; 3 << 20];
        other[2 << 20] = 8;
        std::fs::write(&program, other).unwrap();
        assert!(!is_same(&own, &program));
        place(&own, &program).unwrap();
        assert!(is_same(&own, &program));
        std::fs::remove_file(&program).unwrap();
        std::os::unix::fs::symlink(&own, &program).unwrap();
        assert!(!is_same(&own, &program));
        place(&own, &program).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o775)).unwrap();
        assert!(!is_same(&own, &program));
    }
}
