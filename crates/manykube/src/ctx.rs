//! What every command gets: where things lie, which profile is meant, how to report, when to give up.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, Result};
use model::{Fault, Home, Reason};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::report::{Event, Recorder, Reporter};

/// How long a cancelled command may take to come to an end of its own. What is cut off then is what a
/// crash would cut off, so nothing is lost by it.
const GRACE: Duration = Duration::from_millis(1500);

pub struct Ctx {
    pub home: Home,
    pub profile: String,
    /// The one when none is named.
    pub default_profile: String,
    /// The name we were called by: `manykube` or `minikube`. Messages say what the user would type.
    pub tool: &'static str,
    /// The command's words without its options, `node add m02`: what to run again.
    pub called: String,
    /// Cancelled by Ctrl-C and SIGTERM.
    pub cancel: CancellationToken,
    /// How long to wait for another command that changes the same profile; without end unless said.
    pub lock_timeout: Option<Duration>,
    pub reporter: Box<dyn Reporter>,
    pub recorder: Recorder,
}

impl Ctx {
    /// The same command, for another cluster.
    pub fn of_profile(&self, profile: &str) -> Ctx {
        Ctx {
            home: self.home.clone(),
            profile: profile.to_owned(),
            default_profile: self.default_profile.clone(),
            tool: self.tool,
            called: self.called.clone(),
            lock_timeout: self.lock_timeout,
            cancel: self.cancel.clone(),
            reporter: crate::report::reporter(crate::report::Output::Text),
            recorder: Recorder::default(),
        }
    }

    pub fn emit(&self, event: Event) {
        // How far something is, is of no use to who reads the log afterwards.
        if !matches!(event, Event::StepProgress { .. }) {
            tracing::info!("{}", event.log_line());
        }
        self.recorder.event(&event);
        self.reporter.event(&event);
    }

    pub fn warn(&self, message: impl Into<String>) {
        self.emit(Event::Warning(message.into()));
    }

    /// The options that mean this profile again: `-p demo`, or nothing for the default one.
    pub fn profile_option(&self) -> String {
        if self.profile == self.default_profile { String::new() } else { format!(" -p {}", self.profile) }
    }

    /// A command line of ours for this profile, to be shown to the user.
    pub fn hint(&self, command: &str) -> String {
        format!("{} {command}{}", self.tool, self.profile_option())
    }

    /// Runs `work` on a runtime made for it. The first Ctrl-C cancels and lets `work` come to an end, the second ends at once.
    pub fn run<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("start the runtime")?;
        let result = runtime.block_on(async {
            tokio::spawn(watch_signals(self.cancel.clone()));
            tokio::select! {
                result = work => result,
                () = async { self.cancel.cancelled().await; tokio::time::sleep(GRACE).await } => {
                    Err(anyhow::anyhow!("did not come to an end within {} ms", GRACE.as_millis()))
                }
            }
        });
        runtime.shutdown_background();
        match result {
            // What failed because of the cancellation is not the reason.
            Err(e) if self.cancel.is_cancelled() => Err(self.interrupted(&e).into()),
            other => other,
        }
    }

    fn interrupted(&self, error: &anyhow::Error) -> Fault {
        let message = match error.downcast_ref() {
            Some(engine::Failure::Cancelled { phase }) => format!("Interrupted while {}", in_passing(phase)),
            _ => "Interrupted".to_owned(),
        };
        let advice = if self.called.starts_with("delete") {
            format!("What is removed is gone, the rest is as it was: run '{}' again", self.hint("delete"))
        } else {
            format!(
                "What was done stays, the rest is not begun: run '{}' again to carry on, '{}' to have the whole cluster \
                 running, or '{}' to remove it",
                self.hint(&self.called),
                self.hint("start"),
                self.hint("delete")
            )
        };
        Fault::new(Reason::Interrupted, message).advice(advice)
    }
}

/// "Booting machines" in the middle of a sentence.
fn in_passing(phase: &str) -> String {
    let mut letters = phase.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

async fn watch_signals(cancel: CancellationToken) {
    let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    for first in [true, false] {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
        }
        if first {
            cancel.cancel();
        } else {
            std::process::exit(i32::from(Reason::Interrupted.exit_code()));
        }
    }
}
