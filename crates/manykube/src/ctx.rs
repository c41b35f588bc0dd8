//! What every command gets: where things lie, which profile is meant, how to report, when to give up.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, Result};
use model::{Fault, Home, Reason};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::report::{Event, Recorder, Reporter};

/// How long a cancelled command may take to come to a consistent end.
const GRACE: Duration = Duration::from_secs(30);

pub struct Ctx {
    pub home: Home,
    pub profile: String,
    /// The name we were called by: `manykube` or `minikube`. Messages say what the user would type.
    pub tool: &'static str,
    /// Cancelled by Ctrl-C and SIGTERM.
    pub cancel: CancellationToken,
    pub reporter: Box<dyn Reporter>,
    pub recorder: Recorder,
}

impl Ctx {
    pub fn emit(&self, event: Event) {
        tracing::info!("{}", event.log_line());
        self.recorder.event(&event);
        self.reporter.event(&event);
    }

    pub fn warn(&self, message: impl Into<String>) {
        self.emit(Event::Warning(message.into()));
    }

    /// The options that mean this profile again: `-p demo`, or nothing for the default one.
    pub fn profile_option(&self) -> String {
        if self.profile == crate::args::DEFAULT_PROFILE {
            String::new()
        } else {
            format!(" -p {}", self.profile)
        }
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
                    Err(anyhow::anyhow!("did not come to an end within {} s", GRACE.as_secs()))
                }
            }
        });
        runtime.shutdown_background();
        match result {
            // What failed because of the cancellation is not the reason.
            Err(_) if self.cancel.is_cancelled() => Err(self.interrupted().into()),
            other => other,
        }
    }

    fn interrupted(&self) -> Fault {
        Fault::new(Reason::Interrupted, "Interrupted").advice(format!(
            "Run '{}' to carry on, or '{}' to remove what is there",
            self.hint("start"),
            self.hint("delete")
        ))
    }
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
