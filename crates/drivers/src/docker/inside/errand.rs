//! From the user's terminal to the command in the container and back.

use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;

use anyhow::{Context, Result};
use bollard::Docker as Client;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::models::ContainerWaitResponse;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptions, KillContainerOptionsBuilder,
    ResizeContainerTTYOptionsBuilder, StartContainerOptions, WaitContainerOptions,
};
use futures::{Stream, StreamExt as _};
use model::{Fault, Reason};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::signal::unix::{SignalKind, signal};

use super::seek::Sought;
use super::{Engine, Errand, Input, Place, container, image};
use crate::terminal::Raw;

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
        let client = &self.client;
        let tty = !errand.keep && has_terminal(&errand.input);
        let engine = match errand.home {
            Place::Same(_) if self.address.is_socket() => None,
            _ => Some(self.sought().await?),
        };
        container::sweep(client).await;
        let body = container::body(&errand, image::ensure(client).await?, tty, engine)?;
        let made = client.create_container(None::<CreateContainerOptions>, body).await;
        let id = made.context("make a container for the command")?.id;
        let done = async {
            unless_interrupted(async {
                if let Place::There { volume, send, .. } = &errand.home {
                    self.put(&id, &volume.path, send.clone()).await?;
                }
                self.send(&id, &errand.luggage).await
            })
            .await?;
            let (code, said) = self.attend(&id, errand.input, errand.keep, tty).await?;
            let fetched = match &errand.home {
                Place::There { fetch, .. } => self.get(&id, fetch).await?,
                Place::Same(_) => None,
            };
            if code == 0 {
                unless_interrupted(self.fetch(&id, &errand.luggage)).await?;
            }
            Ok(Outcome { code, said, fetched })
        };
        let done = done.await;
        crate::docker::container::remove(client, &id).await?;
        done
    }

    async fn sought(&self) -> Result<Sought> {
        let info = self.client.info().await.context("ask the engine who it is")?;
        let id = info.id.context("the engine has no id")?;
        Ok(Sought { id, host: self.address.host.clone() })
    }

    /// Starts the container and stays with it.
    async fn attend(&self, id: &str, input: Input, keep: bool, tty: bool) -> Result<(u8, Vec<u8>)> {
        let client = &self.client;
        let options = AttachContainerOptionsBuilder::default().stream(true).stdout(true).stderr(true);
        let options = options.stdin(input.is_some()).detach_keys(NO_KEYS).build();
        let attached = client.attach_container(id, Some(options)).await;
        let AttachContainerResults { output, input: to } = attached.context("attach to the container")?;
        let started = client.start_container(id, None::<StartContainerOptions>).await;
        started.context("start the container of the command")?;
        let _raw = (tty && input.is_some()).then(Raw::enter);
        let passing = tokio::spawn(pass_on(client.clone(), id.to_owned(), tty));
        let feeding = tokio::spawn(feed(input, to));
        let said = print(output, keep).await;
        // Asked now: one that has ended already says so as well.
        let code = exit_code(client.wait_container(id, None::<WaitContainerOptions>)).await;
        passing.abort();
        // A read of the terminal cannot be given up: it ends with the runtime.
        feeding.abort();
        Ok((code?, said))
    }
}

/// While the command runs, signals are the command's; before and after that they are for us.
async fn unless_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        done = work => done,
        _ = interrupt.recv() => Err(interrupted().into()),
        _ = terminate.recv() => Err(interrupted().into()),
    }
}

fn interrupted() -> Fault {
    Fault::new(Reason::Interrupted, "Interrupted while files were on their way: nothing was changed")
        .advice("Run the same command again")
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

/// Signals, and the size of the terminal.
async fn pass_on(client: Client, id: String, tty: bool) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::window_change()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut resized)] = kinds.map(signal) else { return };
    if tty {
        resize(&client, &id).await;
    }
    loop {
        let name = tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
            _ = resized.recv() => {
                if tty {
                    resize(&client, &id).await;
                }
                continue;
            }
        };
        let options = KillContainerOptionsBuilder::default().signal(name).build();
        let _ = client.kill_container(&id, Some(options)).await;
    }
}

async fn resize(client: &Client, id: &str) {
    let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout()) else { return };
    let options = ResizeContainerTTYOptionsBuilder::default();
    let options = options.h(size.ws_row.into()).w(size.ws_col.into()).build();
    let _ = client.resize_container_tty(id, options).await;
}
