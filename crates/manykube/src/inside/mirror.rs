//! What of a home in a volume is needed here: which profiles there are, and how to speak to their API.
//!
//! It comes from the engine's host, which is not this one: only what is expected is taken, and it only replaces what
//! came the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use model::{DriverKind, Home, config_file, names};

use super::mark::Mark;
use crate::ctx::Ctx;
use crate::state::{atomic, handout};

/// Takes what a command has handed out: new profiles come, and of those that were `known` before it ran go that are gone.
/// Another command may have brought one in the meantime.
pub fn update(ctx: &Ctx, own: &Mark, known: &BTreeSet<String>, archive: Option<&[u8]>) -> Result<()> {
    let Some(archive) = archive else { return Ok(()) };
    let handed = Handed::read(archive).context("read what the engine handed out")?;
    let _lock = lock(&ctx.home)?;
    for name in take(&ctx.home, own, &handed)? {
        ctx.warn(format!(
            "The engine at {} has a cluster \"{name}\" too, which is not the one of that name here",
            own.address.host
        ));
    }
    // Written last: without them what was handed out is not whole, as on a full disk.
    if handed.images.is_none() {
        return Ok(());
    }
    let gone = known.iter().filter(|name| !handed.profiles.contains_key(*name));
    for name in gone.filter(|name| own.is_on(&ctx.home, name)) {
        if own.is_anothers_at_its_place(&ctx.home, name) {
            ctx.warn(format!(
                "Another engine than before answers at {}: the cluster \"{name}\", which it does not have, is forgotten here",
                own.address.host
            ));
        }
        forget_profile(&ctx.home, name)?;
    }
    Ok(())
}

/// The names of those that are not the engine's here.
fn take<'a>(home: &Home, own: &Mark, handed: &'a Handed) -> Result<Vec<&'a str>> {
    if let Some(images) = &handed.images {
        put(&images_of(home, own), images)?;
    }
    let mut others = Vec::new();
    for (name, files) in &handed.profiles {
        if !files.get("config.json").is_some_and(|text| is_containers(name, text)) {
            continue;
        }
        if !own.put(home, name)? {
            others.push(name.as_str());
            continue;
        }
        for (file, data) in files {
            put(&home.profile(name).join(file), data)?;
        }
    }
    Ok(others)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Handed {
    images: Option<Vec<u8>>,
    profiles: BTreeMap<String, BTreeMap<&'static str, Vec<u8>>>,
}

impl Handed {
    fn read(archive: &[u8]) -> Result<Handed> {
        let mut handed = Handed::default();
        for entry in tar::Archive::new(archive).entries()? {
            let mut entry = entry?;
            let Some(slot) = Slot::of(&entry.path()?).filter(|_| entry.header().entry_type().is_file())
            else {
                continue;
            };
            let mut data = Vec::new();
            entry.read_to_end(&mut data)?;
            match slot {
                Slot::Images => handed.images = Some(data),
                Slot::Profile(name, file) => {
                    handed.profiles.entry(name).or_default().insert(file, data);
                }
            }
        }
        Ok(handed)
    }
}

/// What a file of the archive is.
#[derive(Debug, PartialEq, Eq)]
enum Slot {
    Images,
    Profile(String, &'static str),
}

impl Slot {
    fn of(path: &Path) -> Option<Slot> {
        let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
        match parts?.as_slice() {
            [_, handout::IMAGES] => Some(Slot::Images),
            [_, handout::PROFILES, name, file] if names::is_valid_profile(name) => {
                let file = handout::OF_PROFILE.into_iter().find(|known| known == file)?;
                Some(Slot::Profile((*name).to_owned(), file))
            }
            _ => None,
        }
    }
}

/// By another driver its commands would run here, with what somebody there has written.
fn is_containers(name: &str, text: &[u8]) -> bool {
    let file = std::str::from_utf8(text).ok().and_then(|text| config_file::parse(text).ok());
    file.is_some_and(|file| file.cluster.driver == DriverKind::Docker && file.cluster.name == name)
}

fn lock(home: &Home) -> Result<File> {
    let dir = home.root().join("locks");
    fs_err::create_dir_all(&dir)?;
    let path = dir.join("elsewhere.lock");
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let file = file.with_context(|| format!("open {}", path.display()))?;
    file.lock().with_context(|| format!("lock {}", path.display()))?;
    Ok(file)
}

fn put(path: &Path, data: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == data) {
        return Ok(());
    }
    Ok(atomic::write(path, data, 0o600)?)
}

fn forget_profile(home: &Home, name: &str) -> Result<()> {
    crate::commands::forget_kubectl(home, name)?;
    super::door::forget(home, name)?;
    Ok(fs_err::remove_dir_all(home.profile(name))?)
}

/// The volume is gone, and with it all that was known of it.
pub fn forget_all(home: &Home, own: &Mark) -> Result<()> {
    let _lock = lock(home)?;
    own.all(home).iter().try_for_each(|name| forget_profile(home, name))?;
    forget(home, own)
}

/// The names of the engine's node images, one in a line. Its id is its own word, and may be no name for a file.
fn images_of(home: &Home, own: &Mark) -> PathBuf {
    home.root().join("config").join(format!("images-{}", names::tagged("", &own.engine)))
}

/// The volume is a new one: it has no images yet.
pub fn forget(home: &Home, own: &Mark) -> Result<()> {
    match std::fs::remove_file(images_of(home, own)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e).context("forget the engine's images"),
        _ => Ok(()),
    }
}

pub fn has_image(home: &Home, own: &Mark, name: &str) -> bool {
    let known = std::fs::read_to_string(images_of(home, own)).unwrap_or_default();
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
    use std::os::unix::fs::PermissionsExt as _;

    use drivers::docker::Address;

    use super::*;
    use crate::commands::start::desired::tests::sample;

    fn far() -> Mark {
        Mark { engine: "1".into(), address: Address { host: "ssh://far".into(), certs: None } }
    }

    fn config(name: &str, driver: DriverKind) -> String {
        let cluster = model::Cluster { driver, ..sample(name) };
        config_file::render_text(&cluster, None)
    }

    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, data) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(data.len() as u64);
            header.set_mode(0o4777);
            // Not by `append_data`, which would not write a path that leads out.
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            tar.append(&header, data.as_bytes()).unwrap();
        }
        tar.into_inner().unwrap()
    }

    #[test]
    fn only_what_is_expected_has_a_place() {
        let of = |path: &str| Slot::of(Path::new(path));
        assert_eq!(of("handout-1/images"), Some(Slot::Images));
        assert_eq!(of("x/profiles/demo/ca.crt"), Some(Slot::Profile("demo".into(), "ca.crt")));
        for path in [
            "x/ca.crt",
            "x/bin/agent-1-2",
            "x/profiles/demo/elsewhere",
            "x/profiles/demo/pki/sa.key",
            "x/profiles/../config.json",
            "x/profiles/./config.json",
            "x/../profiles/demo/ca.crt",
            "/profiles/demo",
            "images",
            "x",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn links_are_left_and_so_are_modes() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "x/profiles/demo/ca.crt", "/etc/passwd").unwrap();
        assert_eq!(Handed::read(&tar.into_inner().unwrap()).unwrap(), Handed::default());

        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        let good = config("demo", DriverKind::Docker);
        let handed = archive(&[("x/profiles/demo/config.json", &good), ("x/profiles/demo/ca.crt", "ca")]);
        assert!(take(&home, &far(), &Handed::read(&handed).unwrap()).unwrap().is_empty());
        for file in ["config.json", "ca.crt"] {
            let mode = std::fs::metadata(home.profile("demo").join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o600, "{file}");
        }
        assert!(!home.root().join("ca.crt").exists());
    }

    #[test]
    fn what_is_here_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        std::fs::create_dir_all(home.profile("mine")).unwrap();
        std::fs::write(home.profile_config("mine"), "mine").unwrap();
        let (mine, far_one) = (config("mine", DriverKind::Docker), config("far", DriverKind::Docker));
        let native = config("root", DriverKind::Native);
        let handed = archive(&[
            ("x/profiles/mine/config.json", &mine),
            ("x/profiles/far/config.json", &far_one),
            ("x/profiles/root/config.json", &native),
            ("x/profiles/other/config.json", &far_one),
            ("x/images", "v1.2.3-abc\n"),
        ]);
        let handed = Handed::read(&handed).unwrap();
        assert_eq!(take(&home, &far(), &handed).unwrap(), ["mine"]);
        assert_eq!(std::fs::read_to_string(home.profile_config("mine")).unwrap(), "mine");
        assert_eq!(far().all(&home), ["far".to_owned()].into());
        assert!(!home.profile("root").exists() && !home.profile("other").exists());
        let other = Mark { engine: "2".into(), ..far() };
        assert!(has_image(&home, &far(), "v1.2.3-abc") && !has_image(&home, &other, "v1.2.3-abc"));
        forget(&home, &far()).unwrap();
        assert!(!has_image(&home, &far(), "v1.2.3-abc"));
    }
}
