//! CloudEvents, one per line: what `-o json` prints and what `events.json` keeps.

use serde_json::{Map, Value, json};

use super::event::Event;
use super::plain::at_node;
use super::steps::Step;

/// Turns events into lines. Numbers of steps only ever rise: several phases may share one of minikube's steps.
/// Number 0 begins anew, for the next of several clusters.
#[derive(Debug, Default)]
pub struct Events {
    last_step: Option<u8>,
}

impl Events {
    pub fn line(&mut self, event: &Event) -> Option<String> {
        self.envelope(event).map(|v| v.to_string() + "\n")
    }

    fn envelope(&mut self, event: &Event) -> Option<Value> {
        let (kind, data) = match event {
            Event::Step { step, message, .. } => ("step", self.step(*step, message)?),
            Event::PhaseStarted { phase, step: Some(step) } => {
                ("step", self.step(*step, &format!("{phase} ..."))?)
            }
            Event::Info { message, .. } => ("info", json!({ "message": message })),
            Event::StepFinished { step, node, .. } => {
                ("info", json!({ "message": format!("{}{step}", at_node(node)) }))
            }
            Event::StepProgress { step, done, total, .. } => {
                let part = *done as f64 / (*total).max(1) as f64;
                ("download.progress", json!({ "artifact": step, "progress": format!("{part:.2}") }))
            }
            Event::Warning(message) => ("warning", json!({ "message": message })),
            Event::StepFailed { step, node, message, .. } => {
                ("error", json!({ "message": format!("{}{step}: {message}", at_node(node)) }))
            }
            Event::Fatal { id, code, message, advice } => (
                "error",
                json!({
                    "advice": advice.as_deref().unwrap_or_default(),
                    "exitcode": code.to_string(),
                    "issues": "",
                    "message": message,
                    "name": id,
                    "url": "",
                }),
            ),
            Event::PhaseStarted { step: None, .. }
            | Event::PhaseFinished { .. }
            | Event::StepStarted { .. } => return None,
        };
        Some(cloud_event(kind, data))
    }

    fn step(&mut self, step: Step, message: &str) -> Option<Value> {
        if step.number > 0 && self.last_step.is_some_and(|last| step.number <= last) {
            return None;
        }
        self.last_step = Some(step.number);
        Some(json!({
            "currentstep": step.number.to_string(),
            "message": message,
            "name": step.name,
            "totalsteps": step.total.to_string(),
        }))
    }
}

pub fn cloud_event(kind: &str, data: Value) -> Value {
    let mut event = Map::new();
    event.insert("specversion".into(), "1.0".into());
    event.insert("id".into(), uuid::Uuid::new_v4().to_string().into());
    event.insert("source".into(), "https://minikube.sigs.k8s.io/".into());
    event.insert("type".into(), format!("io.k8s.sigs.minikube.{kind}").into());
    event.insert("datacontenttype".into(), "application/json".into());
    event.insert("data".into(), data);
    Value::Object(event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::steps::start;
    use crate::report::style::Style;

    fn data(events: &mut Events, event: &Event) -> Option<(String, String)> {
        let line = events.line(event)?;
        assert!(line.ends_with('\n') && !line.trim_end().contains('\n'));
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["specversion"], "1.0");
        assert_eq!(value["id"].as_str().unwrap().len(), 36);
        assert!(value["data"].as_object().unwrap().values().all(Value::is_string));
        Some((value["type"].as_str().unwrap().rsplit('.').next().unwrap().into(), value["data"].to_string()))
    }

    #[test]
    fn golden_lines() {
        let mut e = Events::default();
        let step = Event::step(start::SELECTING_DRIVER, Style::Sparkle, "Using the native driver");
        assert_eq!(
            data(&mut e, &step).unwrap(),
            (
                "step".into(),
                r#"{"currentstep":"1","message":"Using the native driver","name":"Selecting Driver","totalsteps":"19"}"#
                    .into()
            )
        );
        let fatal = Event::Fatal { id: "MK_USAGE".into(), code: 14, message: "m".into(), advice: None };
        assert_eq!(
            data(&mut e, &fatal).unwrap(),
            (
                "error".into(),
                r#"{"advice":"","exitcode":"14","issues":"","message":"m","name":"MK_USAGE","url":""}"#
                    .into()
            )
        );
        assert_eq!(
            data(&mut e, &Event::info(Style::Normal, "hi")).unwrap(),
            ("info".into(), r#"{"message":"hi"}"#.into())
        );
    }

    #[test]
    fn step_numbers_rise_strictly() {
        let mut e = Events::default();
        let phase = |p: &str, step| Event::PhaseStarted { phase: p.into(), step: Some(step) };
        assert!(data(&mut e, &phase("Boot", start::STARTING_NODE)).is_some());
        assert!(data(&mut e, &phase("Boot more", start::STARTING_NODE)).is_none());
        assert!(data(&mut e, &phase("Prepare", start::PREPARING_KUBERNETES)).is_some());
        assert!(data(&mut e, &phase("Boot again", start::STARTING_NODE)).is_none());
    }
}
