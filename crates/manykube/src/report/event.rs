//! What happens while a command runs. Commands, core and engine say it with these; reporters show it.

use std::time::Duration;

use super::steps::Step;
use super::style::Style;

#[derive(Debug, Clone)]
pub enum Event {
    /// One of minikube's numbered steps begins.
    Step {
        step: Step,
        style: Style,
        message: String,
    },
    /// Something to know.
    Info {
        style: Style,
        message: String,
    },
    Warning(String),
    /// The command ends here, with this exit code.
    Fatal {
        id: String,
        code: u8,
        message: String,
        advice: Option<String>,
    },

    /// A phase of a plan: its steps run at the same time. `step` is minikube's number for it, if it has one.
    PhaseStarted {
        phase: String,
        step: Option<Step>,
    },
    PhaseFinished {
        phase: String,
        elapsed: Duration,
    },
    /// A step of a plan on one node (the machine's name; empty when it concerns no node).
    StepStarted {
        phase: String,
        step: String,
        node: String,
    },
    StepFinished {
        phase: String,
        step: String,
        node: String,
        elapsed: Duration,
    },
    StepFailed {
        phase: String,
        step: String,
        node: String,
        elapsed: Duration,
        message: String,
    },
}

impl Event {
    pub fn step(step: Step, style: Style, message: impl Into<String>) -> Event {
        Event::Step { step, style, message: message.into() }
    }

    pub fn info(style: Style, message: impl Into<String>) -> Event {
        Event::Info { style, message: message.into() }
    }
}
