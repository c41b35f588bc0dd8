//! How a command tells what it does: events go in, and a terminal, a pipe or a program can read them.

pub mod elapsed;
pub mod event;
pub mod json;
pub mod plain;
pub mod steps;
pub mod style;
mod terminal;

use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

pub use event::Event;
pub use steps::Step;
pub use style::Style;

use plain::{Lines, Text};

pub trait Reporter: Send + Sync {
    fn event(&self, event: &Event);
}

/// What `-o` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Output {
    #[default]
    Text,
    Json,
}

pub fn reporter(output: Output) -> Box<dyn Reporter> {
    match output {
        Output::Json => Box::new(Json(Mutex::default())),
        Output::Text if style::in_style() => Box::new(terminal::Terminal::new()),
        Output::Text => Box::new(Plain),
    }
}

struct Plain;

impl Reporter for Plain {
    fn event(&self, event: &Event) {
        write(&Lines { emoji: false }.text(event));
    }
}

struct Json(Mutex<json::Events>);

impl Reporter for Json {
    fn event(&self, event: &Event) {
        let line = self.0.lock().unwrap_or_else(PoisonError::into_inner).line(event);
        write(&Text { stdout: line.unwrap_or_default(), stderr: String::new() });
    }
}

/// A reader that went away is no reason to stop half-way.
fn write(text: &Text) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.stdout.as_bytes()).and_then(|()| stdout.flush());
    drop(stdout);
    let _ = std::io::stderr().write_all(text.stderr.as_bytes());
}

/// Keeps steps and errors in the profile's `events.json`, from which `status` tells what is under way.
/// Written at once, not later: a start whose "Done" was lost would look unfinished for ever.
#[derive(Default)]
pub struct Recorder(Mutex<Recording>);

#[derive(Default)]
struct Recording {
    events: json::Events,
    /// What was said before the file was opened.
    pending: String,
    file: Option<std::fs::File>,
}

impl Recorder {
    /// Begins a new record of this profile.
    pub fn open(&self, path: &Path) -> std::io::Result<()> {
        let mut recording = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = fs_err::File::create(path)?.into_parts().0;
        file.write_all(std::mem::take(&mut recording.pending).as_bytes())?;
        recording.file = Some(file);
        engine::crash::place("events", "after");
        Ok(())
    }

    pub fn event(&self, event: &Event) {
        if !matches!(
            event,
            Event::Step { .. }
                | Event::PhaseStarted { .. }
                | Event::Fatal { .. }
                | Event::StepFailed { .. }
                | Event::Warning(_)
        ) {
            return;
        }
        let mut recording = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(line) = recording.events.line(event) else { return };
        match &mut recording.file {
            // A record that cannot be kept must not stop the work it is about.
            Some(file) => drop(file.write_all(line.as_bytes())),
            None => recording.pending += &line,
        }
    }
}
