//! What is known of a stop that is to come: who waits to do it, and for how long.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use model::Home;
use serde_json::{Map, Value, json};

use super::atomic;

pub fn pid_file(home: &Home, profile: &str) -> PathBuf {
    home.profile(profile).join("pid")
}

pub fn waiting(home: &Home, profile: &str) -> Option<u32> {
    std::fs::read_to_string(pid_file(home, profile)).ok()?.trim().parse().ok()
}

/// A file of its own: a schedule comes and goes while other commands change the configuration.
fn file(home: &Home, profile: &str) -> PathBuf {
    home.profile(profile).join("scheduled-stop.json")
}

/// When the cluster will be stopped, or that it will not. In the form of minikube's `ScheduledStop`.
pub fn set(home: &Home, profile: &str, stop: Option<(i64, Duration)>) -> std::io::Result<()> {
    let Some((began, after)) = stop else { return atomic::remove(&file(home, profile)) };
    let nanos = i64::try_from(after.as_nanos()).unwrap_or(i64::MAX);
    let record = json!({ "InitiationTime": began, "Duration": nanos });
    atomic::write(&file(home, profile), record.to_string().as_bytes(), 0o600)
}

/// As Go prints a duration; `None` when no stop is scheduled.
pub fn time_to_stop(home: &Home, profile: &str, config: &Map<String, Value>) -> Option<String> {
    let own = std::fs::read(file(home, profile)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    // Of an earlier version, whose process still waits.
    let older = || config.get("ScheduledStop").filter(|_| waiting(home, profile).is_some()).cloned();
    let stop: Value = own.or_else(older)?;
    let nanos = stop.get("Duration")?.as_i64()?;
    let end = stop.get("InitiationTime")?.as_i64()?.saturating_add(nanos / 1_000_000_000);
    let left = end.saturating_sub(Timestamp::now().as_second()).max(0);
    Some(go_seconds(left))
}

pub fn go_seconds(seconds: i64) -> String {
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (h, m) {
        (0, 0) => format!("{s}s"),
        (0, m) => format!("{m}m{s}s"),
        (h, m) => format!("{h}h{m}m{s}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_counts_down_and_leaves_the_configuration_alone() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        std::fs::create_dir_all(home.profile("demo")).unwrap();
        std::fs::write(home.profile_config("demo"), "as it was").unwrap();
        let now = Timestamp::now().as_second();
        let mut config = Map::new();
        let left = |config: &Map<String, Value>| time_to_stop(&home, "demo", config);
        assert_eq!(left(&config), None);
        set(&home, "demo", Some((now - 10, Duration::from_secs(310)))).unwrap();
        assert!(left(&config).is_some_and(|left| left == "5m0s" || left == "4m59s"));
        set(&home, "demo", None).unwrap();
        assert_eq!(left(&config), None);
        assert_eq!(std::fs::read(home.profile_config("demo")).unwrap(), b"as it was");
        // An earlier version kept it there.
        config
            .insert("ScheduledStop".into(), json!({ "InitiationTime": now, "Duration": 60_000_000_000_i64 }));
        assert_eq!(left(&config), None, "its process is gone");
        std::fs::write(pid_file(&home, "demo"), "1").unwrap();
        assert!(left(&config).is_some());
    }

    #[test]
    fn durations_are_gos() {
        for (seconds, want) in [(0, "0s"), (59, "59s"), (60, "1m0s"), (3_725, "1h2m5s")] {
            assert_eq!(go_seconds(seconds), want);
        }
    }
}
