//! Lines of text: for pipes and files, and the messages of the terminal reporter.

use super::elapsed;
use super::event::Event;
use super::style::Style;

/// Where a text goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub stdout: String,
    pub stderr: String,
}

/// Formats events; `emoji` chooses the prefixes.
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    pub emoji: bool,
}

impl Lines {
    pub fn line(self, style: Style, message: &str) -> String {
        let prefix = if self.emoji { style.emoji() } else { style.ascii() };
        format!("{prefix}{message}\n")
    }

    pub fn text(self, event: &Event) -> Text {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        match event {
            Event::Step { style, message, .. } | Event::Info { style, message } => {
                stdout = self.line(*style, message);
            }
            Event::Warning(message) => stderr = self.line(Style::Warning, message),
            Event::Fatal { id, message, advice, .. } => {
                stdout.push('\n');
                stderr = self.line(Style::Fatal, &format!("Exiting due to {id}: {message}"));
                if let Some(advice) = advice {
                    stderr += &self.line(Style::Tip, &format!("Suggestion: {advice}"));
                }
            }
            Event::PhaseStarted { phase, step } => {
                let style = step.map_or(Style::Network, Style::of_step);
                stdout = self.line(style, &format!("{phase} ..."));
            }
            Event::PhaseFinished { .. } | Event::StepStarted { .. } | Event::StepProgress { .. } => {}
            Event::StepFinished { step, node, elapsed: time, .. } => {
                let at = at_node(node);
                stdout = self.line(Style::Option, &format!("{at}{step} ({})", elapsed::human(*time)));
            }
            // Why is said by the fatal error that follows.
            Event::StepFailed { step, node, elapsed: time, .. } => {
                let text = format!("{}{step}: failed after {}", at_node(node), elapsed::human(*time));
                stderr = self.line(Style::Warning, &text);
            }
        }
        Text { stdout, stderr }
    }
}

pub fn at_node(node: &str) -> String {
    if node.is_empty() { String::new() } else { format!("{node}: ") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::report::steps::start;

    fn both(event: &Event) -> (String, String) {
        let text = Lines { emoji: false }.text(event);
        (text.stdout, text.stderr)
    }

    #[test]
    fn prefixes_are_minikubes() {
        let out = |s: &str| (s.to_owned(), String::new());
        assert_eq!(both(&Event::step(start::DONE, Style::Ready, "Done!")), out("* Done!\n"));
        assert_eq!(both(&Event::info(Style::Option, "x")), out("  - x\n"));
        assert_eq!(both(&Event::info(Style::Indent, "x")), out("  x\n"));
        assert_eq!(both(&Event::Warning("careful".into())).1, "! careful\n");
    }

    #[test]
    fn a_fatal_error_is_one_line_with_its_reason() {
        let fatal = Event::Fatal {
            id: "MK_USAGE".into(),
            code: 14,
            message: "no".into(),
            advice: Some("yes".into()),
        };
        assert_eq!(both(&fatal), ("\n".into(), "X Exiting due to MK_USAGE: no\n* Suggestion: yes\n".into()));
    }

    #[test]
    fn steps_of_a_plan() {
        let done = Event::StepFinished {
            phase: "Boot".into(),
            step: "boot machine".into(),
            node: "demo-m02".into(),
            elapsed: Duration::from_millis(1250),
        };
        assert_eq!(both(&done).0, "  - demo-m02: boot machine (1.2s)\n");
        assert_eq!(Lines { emoji: true }.text(&done).stdout, "    ▪ demo-m02: boot machine (1.2s)\n");
    }
}
