//! What a command that runs for somebody elsewhere leaves for them: see `inside::mirror`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use model::Home;

use super::{atomic, profile};

/// Names the directory; set where it is wanted.
pub const VARIABLE: &str = "MANYKUBE_HANDOUT";
/// The names of the node images, one in a line.
pub const IMAGES: &str = "config/images-elsewhere";

const OF_PROFILE: [&str; 3] = ["config.json", "client.crt", "client.key"];

pub fn write(home: &Home) -> Result<()> {
    let Some(dir) = crate::host::env(VARIABLE).map(PathBuf::from) else { return Ok(()) };
    let _ = std::fs::remove_dir_all(&dir);
    fs_err::create_dir_all(&dir)?;
    copy(home.root(), &dir, "ca.crt")?;
    for (name, _) in profile::list(home)? {
        for file in OF_PROFILE {
            copy(home.root(), &dir, &format!("profiles/{name}/{file}"))?;
        }
    }
    let images = image::Store::new(home.cache()).list().unwrap_or_default();
    let names: String = images.iter().map(|image| format!("{}\n", image.name)).collect();
    Ok(atomic::write(&dir.join(IMAGES), names.as_bytes(), 0o600)?)
}

/// What is not there is not handed out.
fn copy(from: &Path, to: &Path, name: &str) -> Result<()> {
    match std::fs::read(from.join(name)) {
        Ok(data) => Ok(atomic::write(&to.join(name), &data, 0o600)?),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e.into()),
    }
}
