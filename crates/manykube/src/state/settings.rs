//! `config/config.json`: settings that outlive a command, and the active profile.

use std::io::ErrorKind;

use model::{Fault, Home, Reason};
use serde_json::{Map, Value};

use super::atomic;

pub type Settings = Map<String, Value>;

pub fn load(home: &Home) -> Result<Settings, Fault> {
    let path = home.config_file();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        // A home that cannot be is named as such by who makes it.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Settings::new());
        }
        Err(e) => return Err(bad(home, &e.to_string())),
    };
    if text.trim().is_empty() {
        return Ok(Settings::new());
    }
    serde_json::from_str(&text).map_err(|e| bad(home, &e.to_string()))
}

fn bad(home: &Home, why: &str) -> Fault {
    Fault::new(Reason::ConfigLoad, format!("Unable to load {}: {why}", home.config_file().display()))
        .advice("Mend or remove the file")
}

/// Sets one key, or removes it.
pub fn set(home: &Home, key: &str, value: Option<Value>) -> Result<(), Fault> {
    let mut settings = load(home)?;
    match value {
        Some(value) => drop(settings.insert(key.to_owned(), value)),
        None if !settings.contains_key(key) => return Ok(()),
        None => drop(settings.shift_remove(key)),
    }
    let mut text = Vec::new();
    let indent = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, indent);
    let written = serde::Serialize::serialize(&settings, &mut serializer);
    let path = home.config_file();
    written
        .map_err(std::io::Error::other)
        .and_then(|()| atomic::write(&path, &text, 0o644))
        .map_err(|e| Fault::new(Reason::SaveProfile, format!("Unable to save {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        assert!(load(&home).unwrap().is_empty());
        set(&home, "profile", None).unwrap();
        assert!(!home.config_file().exists());
        set(&home, "memory", Some("4g".into())).unwrap();
        set(&home, "profile", Some("demo".into())).unwrap();
        let text = std::fs::read_to_string(home.config_file()).unwrap();
        assert_eq!(text, "{\n    \"memory\": \"4g\",\n    \"profile\": \"demo\"\n}");
        set(&home, "memory", None).unwrap();
        assert_eq!(load(&home).unwrap().len(), 1);
        std::fs::write(home.config_file(), "{nope").unwrap();
        assert_eq!(load(&home).unwrap_err().reason.exit_code(), 38);
    }
}
