//! Reads back `events.json`: what the last command did to a profile.

use model::Home;
use model::status::{History, HistoryEntry};
use serde_json::Value;

pub fn load(home: &Home, profile: &str) -> Option<History> {
    let path = home.profile_events(profile);
    let text = std::fs::read_to_string(&path).ok()?;
    let modified = std::fs::metadata(&path).and_then(|m| m.modified()).ok()?;
    let age_seconds = modified.elapsed().map_or(0, |age| age.as_secs());
    Some(History { entries: parse(&text), age_seconds })
}

/// Lines that are no events (a last one cut off by a crash) are skipped.
fn parse(text: &str) -> Vec<HistoryEntry> {
    text.lines().filter_map(|line| entry(&serde_json::from_str(line).ok()?)).collect()
}

fn entry(event: &Value) -> Option<HistoryEntry> {
    let data = |key: &str| event["data"][key].as_str().unwrap_or_default().to_owned();
    match event["type"].as_str()?.rsplit('.').next()? {
        "step" => Some(HistoryEntry::Step { name: data("name"), message: data("message") }),
        "error" => {
            Some(HistoryEntry::Error { exit_code: data("exitcode").parse().ok(), message: data("message") })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::json::Events;
    use crate::report::steps::start;
    use crate::report::{Event, Style};

    #[test]
    fn what_was_recorded_is_read_back() {
        let mut events = Events::default();
        let fatal = Event::Fatal { id: "X".into(), code: 80, message: "m".into(), advice: None };
        let mut text: String = [Event::step(start::INITIAL_SETUP, Style::Happy, "hello"), fatal]
            .iter()
            .filter_map(|e| events.line(e))
            .collect();
        text += "{\"cut off";
        assert_eq!(
            parse(&text),
            [
                HistoryEntry::Step { name: "Initial Minikube Setup".into(), message: "hello".into() },
                HistoryEntry::Error { exit_code: Some(80), message: "m".into() },
            ]
        );
    }
}
