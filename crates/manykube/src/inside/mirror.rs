//! What of a home in a volume is needed here: which profiles there are, and how to speak to their API.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};
use model::Home;

use crate::ctx::Ctx;
use crate::state::{atomic, handout};

/// The directory in the volume.
pub const HANDOUT: &str = "handout";
/// In a profile's directory: it is a copy of one that is elsewhere.
const MARK: &str = "elsewhere";

/// Takes what a command has handed out: new profiles come, those that are gone go.
pub fn update(ctx: &Ctx, archive: Option<&[u8]>) -> Result<()> {
    let Some(archive) = archive else { return Ok(()) };
    let home = &ctx.home;
    let mut there = BTreeSet::new();
    for entry in tar::Archive::new(archive).entries().context("read what the engine handed out")? {
        let mut entry = entry?;
        let Some(path) = below(&entry.path()?).filter(|_| entry.header().entry_type().is_file()) else {
            continue;
        };
        let mut data = Vec::new();
        entry.read_to_end(&mut data)?;
        if let Ok(rest) = path.strip_prefix("profiles")
            && let Some(Component::Normal(name)) = rest.components().next()
        {
            there.insert(name.to_owned());
            atomic::write(&home.profiles().join(name).join(MARK), b"", 0o600)?;
        }
        let mode = entry.header().mode().unwrap_or(0o600) & 0o777;
        atomic::write(&home.root().join(path), &data, mode)?;
    }
    for entry in std::fs::read_dir(home.profiles()).into_iter().flatten().flatten() {
        if entry.path().join(MARK).exists() && !there.contains(&entry.file_name()) {
            let name = entry.file_name().to_string_lossy().into_owned();
            crate::commands::forget_kubectl(&name)?;
            super::door::forget(home, &name)?;
            fs_err::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// A path of the archive without its first part, if it stays below.
fn below(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components();
    parts.next()?;
    let rest = parts.as_path();
    let safe = rest.components().all(|part| matches!(part, Component::Normal(_)));
    (safe && rest.components().next().is_some()).then(|| rest.to_owned())
}

/// The volume is a new one: nothing of what we know is true.
pub fn forget(home: &Home) -> Result<()> {
    match std::fs::remove_file(home.root().join(handout::IMAGES)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e).context("forget the engine's images"),
        _ => Ok(()),
    }
}

pub fn has_image(home: &Home, name: &str) -> bool {
    let known = std::fs::read_to_string(home.root().join(handout::IMAGES)).unwrap_or_default();
    known.lines().any(|line| line == name)
}

/// The user's settings, as an archive that is unpacked over the volume.
pub fn settings(ctx: &Ctx) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |path: &str, data: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, path, data)
    };
    let file = ctx.home.config_file();
    if let Ok(data) = std::fs::read(&file) {
        add(&format!(".{}/config/config.json", ctx.tool), &data)?;
    }
    Ok(tar.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lands_outside() {
        assert_eq!(below(Path::new("handout/ca.crt")), Some(PathBuf::from("ca.crt")));
        assert_eq!(below(Path::new("handout")), None);
        assert_eq!(below(Path::new("handout/../../etc/passwd")), None);
    }
}
