use std::time::Duration;

/// What happens while a plan runs. Terminal, plain and JSON output are listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    PhaseStarted { phase: String, index: usize, total: usize },
    PhaseFinished { phase: String, elapsed: Duration },
    StepStarted { phase: String, step: String, node: Option<String> },
    StepFinished { phase: String, step: String, node: Option<String>, elapsed: Duration },
    StepFailed { phase: String, step: String, node: Option<String>, elapsed: Duration, message: String },
}
