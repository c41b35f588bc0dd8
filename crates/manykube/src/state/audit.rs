//! `logs/audit.json`: who ran what, and when. One CloudEvent per line, the last thousand.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jiff::Zoned;
use model::Home;
use serde_json::{Value, json};

use super::{atomic, settings};
use crate::report::json::cloud_event;

const MAX_ENTRIES: u64 = 1000;
/// Go's RFC822, which minikube writes.
const TIME: &str = "%d %b %y %H:%M %Z";

/// What somebody typed may be nobody else's business.
const MODE: u32 = 0o600;
const HIDDEN: &str = "***";

pub struct Entry {
    pub command: String,
    pub args: String,
    pub profile: String,
    pub user: String,
    pub start: Zoned,
}

impl Entry {
    fn event(&self, end: &Zoned, version: &str) -> Value {
        cloud_event(
            "audit",
            json!({
                "args": self.args,
                "command": self.command,
                "endTime": end.strftime(TIME).to_string(),
                "id": uuid::Uuid::new_v4().to_string(),
                "profile": self.profile,
                "startTime": self.start.strftime(TIME).to_string(),
                "user": self.user,
                "version": version,
            }),
        )
    }

    /// A log that cannot be written is no reason for a command to fail.
    pub fn append(&self, home: &Home, version: &str) {
        let path = home.logs().join("audit.json");
        let line = self.event(&Zoned::now(), version).to_string() + "\n";
        let most = settings::load(home).ok().and_then(|s| s.get("MaxAuditEntries")?.as_u64());
        let _ = append(&path, &line, usize::try_from(most.unwrap_or(MAX_ENTRIES)).unwrap_or(usize::MAX));
    }
}

/// The command line without the values of flags that are secrets by their names: kubectl's --token, --password,
/// --from-literal and the like, and what is handed to a build.
pub fn without_secrets(words: &[String]) -> String {
    let is_secret = |flag: &str| {
        let name = flag.trim_start_matches('-').to_ascii_lowercase();
        let named = ["token", "password", "secret", "literal", "build-arg", "build-env", "build-opt"];
        flag.starts_with("--") && named.iter().any(|part| name.contains(part))
    };
    let mut hide = false;
    let word = |word: &String| {
        if std::mem::take(&mut hide) && !word.starts_with("--") {
            return HIDDEN.to_owned();
        }
        match word.split_once('=') {
            Some((flag, _)) if is_secret(flag) => format!("{flag}={HIDDEN}"),
            None if is_secret(word) => {
                hide = true;
                word.clone()
            }
            _ => word.clone(),
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn append(path: &Path, line: &str, most: usize) -> std::io::Result<()> {
    let old = std::fs::read_to_string(path).unwrap_or_default();
    if let Some(kept) = trimmed(&old, most) {
        atomic::write(path, kept.as_bytes(), MODE)?;
    }
    let mut file = std::fs::OpenOptions::new().append(true).create(true).mode(MODE).open(path)?;
    file.write_all(line.as_bytes())
}

/// The last lines, when there are so many that the next one would be too much.
fn trimmed(text: &str, most: usize) -> Option<String> {
    let excess = (text.lines().count() + 1).checked_sub(most.max(1)).filter(|n| *n > 0)?;
    Some(text.lines().skip(excess).flat_map(|l| [l, "\n"]).collect())
}

/// The rows of the table that `logs` shows, oldest first.
pub fn rows(home: &Home, count: usize) -> Vec<[String; 7]> {
    let text = std::fs::read_to_string(home.logs().join("audit.json")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..]
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|event| {
            ["command", "args", "profile", "user", "version", "startTime", "endTime"]
                .map(|key| event["data"][key].as_str().unwrap_or_default().to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_kept() {
        let words: Vec<String> =
            "-- create secret generic x --from-literal=a=b --token abc --password --v=3 get --as me"
                .split(' ')
                .map(str::to_owned)
                .collect();
        assert_eq!(
            without_secrets(&words),
            "-- create secret generic x --from-literal=*** --token *** --password --v=3 get --as me"
        );
        let words =
            "build . --build-arg KEY=x --build-env=KEY=x --build-opt build-arg:KEY=x -t a:1".split(' ');
        let words: Vec<String> = words.map(str::to_owned).collect();
        assert_eq!(without_secrets(&words), "build . --build-arg *** --build-env=*** --build-opt *** -t a:1");
    }

    #[test]
    fn the_log_keeps_the_last_thousand() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        std::fs::create_dir(home.logs()).unwrap();
        let many: String = (0..1000).map(|i| format!("{{\"n\":{i}}}\n")).collect();
        std::fs::write(home.logs().join("audit.json"), many).unwrap();
        let entry = Entry {
            command: "start".into(),
            args: "-p demo".into(),
            profile: "demo".into(),
            user: "testUser".into(),
            start: Zoned::now(),
        };
        entry.append(&home, "v0.1.0");
        let text = std::fs::read_to_string(home.logs().join("audit.json")).unwrap();
        assert_eq!(text.lines().count(), 1000);
        assert!(text.starts_with("{\"n\":1}"));
        assert!(text.contains("testUser") && text.contains("\"io.k8s.sigs.minikube.audit\""));
        assert_eq!(rows(&home, 1)[0][0], "start");
    }
}
