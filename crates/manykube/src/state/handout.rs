//! What a command that runs for somebody elsewhere leaves for them: see `inside::mirror`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use model::Home;

use super::{atomic, profile};

/// Names the directory, which is one command's alone; set where it is wanted.
pub const VARIABLE: &str = "MANYKUBE_HANDOUT";
/// The names of the node images, one in a line.
pub const IMAGES: &str = "images";
pub const PROFILES: &str = "profiles";
/// The certificate of the authority too, but not its key.
pub const OF_PROFILE: [&str; 4] = ["config.json", "client.crt", "client.key", CA];

const CA: &str = "ca.crt";
const PREFIX: &str = "handout-";
/// It is fetched as soon as its command has ended; then nobody can remove it but the next one.
const OLD: Duration = Duration::from_secs(3600);

pub fn new_name() -> String {
    format!("{PREFIX}{}", uuid::Uuid::new_v4())
}

pub fn write(home: &Home) -> Result<()> {
    let Some(dir) = crate::host::env(VARIABLE).map(PathBuf::from) else { return Ok(()) };
    sweep(&dir, OLD);
    let images = image::Store::new(home.cache()).list().unwrap_or_default();
    let names: String = images.iter().map(|image| format!("{}\n", image.name)).collect();
    write_to(&dir, home, &names)
}

fn write_to(dir: &Path, home: &Home, images: &str) -> Result<()> {
    for (name, _) in profile::list(home)? {
        let to = dir.join(PROFILES).join(&name);
        for file in OF_PROFILE {
            let from = match file {
                CA => bootstrap::pki::authority::certificate_of(home, &name),
                file => home.profile(&name).join(file),
            };
            copy(&from, &to.join(file))?;
        }
    }
    Ok(atomic::write(&dir.join(IMAGES), images.as_bytes(), 0o600)?)
}

/// What is not there is not handed out.
fn copy(from: &Path, to: &Path) -> Result<()> {
    match std::fs::read(from) {
        Ok(data) => Ok(atomic::write(to, &data, 0o600)?),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Removes those that were fetched, or never will be, beside this one.
fn sweep(dir: &Path, old: Duration) {
    let is_name = |name: &str| name.strip_prefix(PREFIX).is_some_and(|id| uuid::Uuid::try_parse(id).is_ok());
    let own = dir.file_name().and_then(|name| name.to_str());
    let Some(parent) = dir.parent().filter(|_| own.is_some_and(is_name)) else { return };
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let age = entry.metadata().ok().and_then(|m| m.modified().ok()?.elapsed().ok());
        if name.to_str().is_some_and(|name| is_name(name) && own != Some(name))
            && age.is_some_and(|a| a >= old)
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_has_the_authority_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("home"), None);
        std::fs::create_dir_all(home.profile("demo")).unwrap();
        std::fs::write(home.root().join(CA), "ca").unwrap();
        std::fs::write(home.root().join("ca.key"), "secret").unwrap();
        std::fs::write(home.profile_config("demo"), "{}").unwrap();
        let to = dir.path().join("out");
        write_to(&to, &home, "v1\n").unwrap();
        let read = |name: &str| std::fs::read_to_string(to.join(name)).ok();
        assert_eq!(read("profiles/demo/ca.crt").as_deref(), Some("ca"));
        assert_eq!(read("profiles/demo/config.json").as_deref(), Some("{}"));
        assert_eq!(read("images").as_deref(), Some("v1\n"));
        assert_eq!(read("profiles/demo/client.key"), None);
        assert!(!to.join("ca.key").exists());
        std::fs::write(home.profile("demo").join(CA), "its own").unwrap();
        std::fs::write(home.profile("demo").join("ca.key"), "secret").unwrap();
        write_to(&to, &home, "v1\n").unwrap();
        assert_eq!(read("profiles/demo/ca.crt").as_deref(), Some("its own"));
        assert!(!to.join("profiles/demo/ca.key").exists());
    }

    #[test]
    fn only_old_handouts_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (own, other) = (at(&new_name()), at(&new_name()));
        let all = [&own, &other, &at(".manykube"), &at("handout-mine")];
        all.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
        sweep(&own, OLD);
        assert!(all.iter().all(|dir| dir.exists()), "none is old");
        sweep(&at("handout-mine"), Duration::ZERO);
        assert!(all.iter().all(|dir| dir.exists()), "the directory is none of ours");
        sweep(&own, Duration::ZERO);
        let left: Vec<bool> = all.iter().map(|dir| dir.exists()).collect();
        assert_eq!(left, [true, false, true, true]);
    }
}
