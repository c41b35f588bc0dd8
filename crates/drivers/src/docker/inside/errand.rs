//! From the user's terminal to the command in the container and back.

use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use anyhow::{Context, Result};
use bollard::Docker as Client;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::models::ContainerWaitResponse;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, ResizeContainerTTYOptionsBuilder, StartContainerOptions,
    WaitContainerOptions,
};
use futures::{Stream, StreamExt as _};
use model::{Fault, Reason};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use super::seek::Sought;
use super::signals::Signals;
use super::{Engine, Errand, Input, Place, container, image};
use crate::docker::container::{create, remove};
use crate::docker::engine::ANSWER;
use crate::terminal::Raw;

/// For an engine to take a signal.
const PATIENCE: Duration = Duration::from_secs(5);

/// The engine lets go of a terminal when it reads these keys; nobody types them.
const NO_KEYS: &str = "ctrl-^,ctrl-@,ctrl-^,ctrl-@";

/// How a command ended.
pub struct Outcome {
    pub code: u8,
    /// What it printed, if that was to be kept.
    pub said: Vec<u8>,
    /// The archive of what was to be fetched.
    pub fetched: Option<Vec<u8>>,
}

impl Engine {
    /// Until it ends.
    pub async fn run(&self, errand: Errand) -> Result<Outcome> {
        let tty = !errand.keep && has_terminal(&errand.input);
        let id = unless_interrupted(BEFORE, self.make(&errand, tty)).await?;
        match self.carry_out(&id, errand, tty).await {
            Ok(Some(outcome)) => self.clear(&id).await.map(|()| outcome),
            // It would not take that either. The next command finds that we are gone.
            Ok(None) => Err(silent().into()),
            Err(error) => {
                let _ = timeout(ANSWER, self.clear(&id)).await;
                Err(error)
            }
        }
    }

    async fn make(&self, errand: &Errand, tty: bool) -> Result<String> {
        let client = &self.client;
        let engine = match errand.home {
            Place::Same(_) if self.address.is_socket() => None,
            _ => Some(self.sought().await?),
        };
        container::sweep(client).await;
        let body = container::body(errand, image::ensure(client).await?, tty, engine)?;
        let made = create(client, None, body).await;
        made.context("make a container for the command")
    }

    /// Who does not want to wait for that leaves it to the next command.
    async fn clear(&self, id: &str) -> Result<()> {
        let mut signals = Signals::listen().context("listen to signals")?;
        tokio::select! {
            removed = remove(&self.client, id) => removed,
            _ = signals.next() => Ok(()),
        }
    }

    /// `None` when it was to end and the engine did not answer.
    async fn carry_out(&self, id: &str, errand: Errand, tty: bool) -> Result<Option<Outcome>> {
        let Errand { home, luggage, input, keep, .. } = errand;
        unless_interrupted(BEFORE, async {
            if let Place::There { volume, send, .. } = &home {
                self.put(id, &volume.path, send.clone()).await?;
            }
            self.send(id, &luggage).await
        })
        .await?;
        let Some((code, said)) = self.attend(id, input, keep, tty).await? else { return Ok(None) };
        let fetched = match &home {
            Place::There { fetch, .. } => unless_interrupted(AFTER, self.get(id, fetch)).await?,
            Place::Same(_) => None,
        };
        if code == 0 {
            unless_interrupted(AFTER, self.fetch(id, &luggage)).await?;
        }
        Ok(Some(Outcome { code, said, fetched }))
    }

    async fn sought(&self) -> Result<Sought> {
        let info = self.client.info().await.context("ask the engine who it is")?;
        let id = info.id.context("the engine has no id")?;
        Ok(Sought { id, host: self.address.host.clone() })
    }

    /// Starts the container and stays with it. `None` when it was to end and the engine did not answer.
    async fn attend(&self, id: &str, input: Input, keep: bool, tty: bool) -> Result<Option<(u8, Vec<u8>)>> {
        let client = &self.client;
        let options = AttachContainerOptionsBuilder::default().stream(true).stdout(true).stderr(true);
        let options = options.stdin(input.is_some()).detach_keys(NO_KEYS).build();
        // Before it runs: one that comes as it starts is not lost.
        let signals = Signals::listen().context("listen to signals")?;
        let AttachContainerResults { output, input: to } = unless_interrupted(BEFORE, async {
            client.attach_container(id, Some(options)).await.context("attach to the container")
        })
        .await?;
        unless_interrupted(AS_IT_BEGAN, async {
            let started = client.start_container(id, None::<StartContainerOptions>).await;
            started.context("start the container of the command")
        })
        .await?;
        let _raw = (tty && input.is_some()).then(Raw::enter);
        // For itself: whoever does not read what is printed keeps no signal from the command.
        let mut passing = tokio::spawn(pass_on(signals, client.clone(), id.to_owned(), tty));
        let feeding = tokio::spawn(feed(input, to));
        let ended = tokio::select! {
            ended = end(client, id, output, keep) => Some(ended),
            _ = &mut passing => None,
        };
        passing.abort();
        // A read of the terminal cannot be given up: it ends with the runtime.
        feeding.abort();
        ended.transpose()
    }
}

const BEFORE: &str = "Interrupted before the command began: nothing was changed";
const AS_IT_BEGAN: &str = "Interrupted as the command began: it was ended";
const AFTER: &str = "Interrupted while files were on their way back: the command itself was done";

/// While the command runs, signals are the command's; before and after that they are for us.
async fn unless_interrupted<T>(message: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut signals = Signals::listen().context("listen to signals")?;
    tokio::select! {
        done = work => done,
        _ = signals.next() => {
            Err(Fault::new(Reason::Interrupted, message).advice("Run the same command again").into())
        }
    }
}

fn silent() -> Fault {
    let message = "Interrupted, but the Docker engine does not answer: the command may go on there";
    Fault::new(Reason::Interrupted, message).advice("Run the same command again when the engine answers")
}

/// A terminal of the container's has one stream out, so both must be one here; and it is no way for data.
fn has_terminal(input: &Input) -> bool {
    let in_hand = match input {
        Input::Nothing => true,
        Input::Ours => std::io::stdin().is_terminal(),
        Input::Bytes(_) | Input::Stream(_) => false,
    };
    in_hand && std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

async fn exit_code(ended: impl Stream<Item = Result<ContainerWaitResponse, Error>>) -> Result<u8> {
    let mut ended = std::pin::pin!(ended);
    let code = match ended.next().await {
        Some(Ok(answer)) => answer.status_code,
        Some(Err(Error::DockerContainerWaitError { code, .. })) => code,
        Some(Err(e)) => return Err(e).context("wait for the command's container"),
        None => anyhow::bail!("the engine did not say how the command ended"),
    };
    Ok(u8::try_from(code).unwrap_or(1))
}

/// How it ended, and what it printed if that is kept.
async fn end(
    client: &Client,
    id: &str,
    output: impl Stream<Item = Result<LogOutput, Error>> + Unpin,
    keep: bool,
) -> Result<(u8, Vec<u8>)> {
    let said = print(output, keep).await;
    // Asked now: one that has ended already says so as well.
    let code = exit_code(client.wait_container(id, None::<WaitContainerOptions>)).await?;
    Ok((code, said))
}

/// A reader that went away is no error: the command goes on, as it would here.
async fn print(mut output: impl Stream<Item = Result<LogOutput, Error>> + Unpin, keep: bool) -> Vec<u8> {
    let mut kept = Vec::new();
    while let Some(Ok(part)) = output.next().await {
        let _ = match part {
            LogOutput::StdErr { message } => std::io::stderr().write_all(&message),
            LogOutput::StdOut { message } | LogOutput::Console { message } if keep => {
                kept.extend_from_slice(&message);
                Ok(())
            }
            LogOutput::StdOut { message } | LogOutput::Console { message } => {
                let mut stdout = std::io::stdout();
                stdout.write_all(&message).and_then(|()| stdout.flush())
            }
            LogOutput::StdIn { .. } => Ok(()),
        };
    }
    kept
}

/// Who stops reading has read enough.
async fn feed(input: Input, mut to: impl AsyncWrite + Unpin) {
    let _ = match input {
        Input::Nothing => return,
        Input::Ours => match std::io::stdin().as_fd().try_clone_to_owned() {
            Ok(own) => tokio::io::copy(&mut tokio::fs::File::from_std(own.into()), &mut to).await.map(drop),
            Err(e) => Err(e),
        },
        Input::Bytes(bytes) => to.write_all(&bytes).await,
        Input::Stream(mut from) => tokio::io::copy(&mut from, &mut to).await.map(drop),
    };
    let _ = to.shutdown().await;
}

/// Signals, and the size of the terminal. It ends when a signal does not come through: nobody but us could end then.
async fn pass_on(mut signals: Signals, client: Client, id: String, tty: bool) {
    let Ok(mut resized) = signal(SignalKind::window_change()) else { return std::future::pending().await };
    if tty {
        resize(&client, &id).await;
    }
    loop {
        let name = tokio::select! {
            name = signals.next() => name,
            _ = resized.recv() => {
                if tty {
                    resize(&client, &id).await;
                }
                continue;
            }
        };
        match timeout(PATIENCE, container::signal(&client, &id, name)).await {
            // That it has ended is an answer, too.
            Ok(Ok(()) | Err(Error::DockerResponseServerError { .. })) => {}
            _ => return,
        }
    }
}

async fn resize(client: &Client, id: &str) {
    let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout()) else { return };
    let options = ResizeContainerTTYOptionsBuilder::default();
    let options = options.h(size.ws_row.into()).w(size.ws_col.into()).build();
    let _ = timeout(PATIENCE, client.resize_container_tty(id, options)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_engine_that_takes_no_signal_keeps_nobody() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = format!("tcp://{}", listener.local_addr().unwrap());
        drop(listener);
        let client = Client::connect_with_http(&host, 5, bollard::API_DEFAULT_VERSION).unwrap();
        let signals = Signals::listen().unwrap();
        let passing = pass_on(signals, client, "id".to_owned(), false);
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
        timeout(2 * PATIENCE, passing).await.expect("it ends");
    }
}
