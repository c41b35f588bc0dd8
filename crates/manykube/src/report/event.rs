//! What happens while a command runs. Commands, core and engine say it with these; reporters show it.

use std::time::Duration;

use super::elapsed;
use super::plain::at_node;
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
    /// How far a step is, for steps that can tell.
    StepProgress {
        step: String,
        node: String,
        done: u64,
        total: u64,
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

    /// For the log, which keeps all of them.
    pub fn log_line(&self) -> String {
        let time = |t: &Duration| elapsed::human(*t);
        match self {
            Event::Step { step, message, .. } => format!("step {} ({}): {message}", step.number, step.name),
            Event::Info { message, .. } => format!("info: {message}"),
            Event::Warning(message) => format!("warning: {message}"),
            Event::Fatal { id, code, message, .. } => format!("exiting with {code} due to {id}: {message}"),
            Event::PhaseStarted { phase, .. } => format!("phase {phase}: started"),
            Event::PhaseFinished { phase, elapsed } => format!("phase {phase}: done, {}", time(elapsed)),
            Event::StepStarted { phase, step, node } => {
                format!("phase {phase}: {}{step}: started", at_node(node))
            }
            Event::StepProgress { step, node, done, total } => {
                format!("{}{step}: {done} of {total}", at_node(node))
            }
            Event::StepFinished { phase, step, node, elapsed } => {
                format!("phase {phase}: {}{step}: done, {}", at_node(node), time(elapsed))
            }
            Event::StepFailed { phase, step, node, elapsed, message } => {
                format!("phase {phase}: {}{step}: failed after {}: {message}", at_node(node), time(elapsed))
            }
        }
    }
}
