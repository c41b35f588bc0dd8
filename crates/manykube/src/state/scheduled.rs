//! What is known of a stop that is to come: who waits to do it, and for how long.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use model::Home;
use serde_json::{Map, Value, json};

pub fn pid_file(home: &Home, profile: &str) -> PathBuf {
    home.profile(profile).join("pid")
}

pub fn waiting(home: &Home, profile: &str) -> Option<u32> {
    std::fs::read_to_string(pid_file(home, profile)).ok()?.trim().parse().ok()
}

/// minikube's `ScheduledStop`.
pub fn record(stop: Option<(i64, Duration)>) -> Value {
    stop.map_or(Value::Null, |(began, after)| {
        let nanos = i64::try_from(after.as_nanos()).unwrap_or(i64::MAX);
        json!({ "InitiationTime": began, "Duration": nanos })
    })
}

/// As Go prints a duration; `None` when no stop is scheduled.
pub fn time_to_stop(config: &Map<String, Value>) -> Option<String> {
    let stop = config.get("ScheduledStop")?.as_object()?;
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
    fn the_record_counts_down() {
        let now = Timestamp::now().as_second();
        let mut config = Map::new();
        assert_eq!(time_to_stop(&config), None);
        config.insert("ScheduledStop".into(), record(Some((now - 10, Duration::from_secs(310)))));
        let left = time_to_stop(&config).expect("a time");
        assert!(left == "5m0s" || left == "4m59s", "{left}");
        config.insert("ScheduledStop".into(), record(None));
        assert_eq!(time_to_stop(&config), None);
    }

    #[test]
    fn durations_are_gos() {
        for (seconds, want) in [(0, "0s"), (59, "59s"), (60, "1m0s"), (3_725, "1h2m5s")] {
            assert_eq!(go_seconds(seconds), want);
        }
    }
}
