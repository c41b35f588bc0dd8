//! A colour terminal: one live line per node and step with its elapsed time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::Reporter;
use super::event::Event;
use super::plain::{Lines, at_node};

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

pub struct Terminal {
    lines: Lines,
    bars: MultiProgress,
    live: Mutex<HashMap<(String, String), ProgressBar>>,
}

impl Terminal {
    pub fn new() -> Terminal {
        Terminal { lines: Lines { emoji: true }, bars: MultiProgress::new(), live: Mutex::default() }
    }

    fn begin(&self, step: &str, node: &str) {
        let bar = self.bars.add(ProgressBar::new_spinner());
        // The template is a constant: it parses, or the plain spinner is shown.
        if let Ok(style) = ProgressStyle::with_template("    {spinner} {msg} [{elapsed}]") {
            bar.set_style(style);
        }
        bar.set_message(format!("{}{step}", at_node(node)));
        bar.enable_steady_tick(TICK);
        self.live.lock().unwrap_or_else(PoisonError::into_inner).insert((step.into(), node.into()), bar);
    }

    fn advance(&self, step: &str, node: &str, done: u64, total: u64) {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = live.get(&(step.to_owned(), node.to_owned())) {
            let (done, total) = (image::human_size(done), image::human_size(total));
            bar.set_message(format!("{}{step}: {done} of {total}", at_node(node)));
        }
    }

    fn end(&self, step: &str, node: &str) {
        let bar = self
            .live
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&(step.to_owned(), node.to_owned()));
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    }
}

impl Reporter for Terminal {
    fn event(&self, event: &Event) {
        match event {
            Event::StepStarted { step, node, .. } => self.begin(step, node),
            Event::StepProgress { step, node, done, total } => {
                return self.advance(step, node, *done, *total);
            }
            Event::StepFinished { step, node, .. } | Event::StepFailed { step, node, .. } => {
                self.end(step, node);
            }
            Event::Fatal { .. } => {
                self.live.lock().unwrap_or_else(PoisonError::into_inner).drain().for_each(|(_, bar)| {
                    bar.finish_and_clear();
                });
            }
            _ => {}
        }
        let text = self.lines.text(event);
        self.bars.suspend(|| super::write(&text));
    }
}
