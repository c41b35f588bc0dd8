//! The program that nodes run as their init.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use model::Home;

/// What tells this program from an older one: to read it whole for that would take longer than most commands.
pub fn version() -> Result<String> {
    let own = fs_err::metadata("/proc/self/exe")?;
    let modified = own.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Ok(format!("{}-{modified}", own.len()))
}

/// A copy of this program for the nodes: the command itself may be replaced while they run.
pub fn program(home: &Home) -> Result<PathBuf> {
    let dir = home.root().join("bin");
    let program = dir.join(format!("agent-{}", version()?));
    if !program.exists() {
        fs_err::create_dir_all(&dir)?;
        // Always the same name, so that what a dead one left is used up; locked, because two may come.
        let half = program.with_extension("new");
        let mut file = std::fs::File::options().create(true).truncate(false).write(true).open(&half)?;
        file.lock().with_context(|| format!("lock {}", half.display()))?;
        if program.exists() {
            // The one who had the lock has renamed the file that we hold, or left us an empty one.
            let _ = std::fs::remove_file(&half);
            return Ok(program);
        }
        file.set_len(0)?;
        std::io::copy(&mut fs_err::File::open("/proc/self/exe")?, &mut file)?;
        fs_err::set_permissions(&half, PermissionsExt::from_mode(0o755))?;
        // All nodes hang on it: half of it after a power cut would be found and believed.
        file.sync_all()?;
        drop(file);
        fs_err::rename(&half, &program)?;
    }
    Ok(program)
}
