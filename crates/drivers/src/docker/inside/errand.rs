//! From the user's terminal to the command in the container and back.

use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;

use anyhow::{Context, Result};
use bollard::Docker as Client;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptions, KillContainerOptionsBuilder,
    ResizeContainerTTYOptionsBuilder, StartContainerOptions, WaitContainerOptionsBuilder,
};
use futures::{Stream, StreamExt as _};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::signal::unix::{SignalKind, signal};

use super::{Engine, Errand, Input, container, image};
use crate::terminal::Raw;

/// The engine lets go of a terminal when it reads these keys; nobody types them.
const NO_KEYS: &str = "ctrl-^,ctrl-@,ctrl-^,ctrl-@";

impl Engine {
    /// Until it ends; its exit code.
    pub async fn run(&self, errand: &Errand) -> Result<u8> {
        let client = &self.client;
        let tty = has_terminal(&errand.input);
        let body = container::body(errand, image::ensure(client).await?, tty)?;
        let made = client.create_container(None::<CreateContainerOptions>, body).await;
        let id = made.context("make a container for the command")?.id;
        let options = AttachContainerOptionsBuilder::default().stream(true).stdout(true).stderr(true);
        let options = options.stdin(errand.input != Input::Nothing).detach_keys(NO_KEYS).build();
        let attached = client.attach_container(&id, Some(options)).await;
        let AttachContainerResults { output, input } = attached.context("attach to the container")?;
        let options = WaitContainerOptionsBuilder::default().condition("next-exit").build();
        let ended = client.wait_container(&id, Some(options));
        let started = client.start_container(&id, None::<StartContainerOptions>).await;
        started.context("start the container of the command")?;
        let _raw = (tty && errand.input == Input::Ours).then(Raw::enter);
        let passing = tokio::spawn(pass_on(client.clone(), id, tty));
        let feeding = tokio::spawn(feed(errand.input.clone(), input));
        print(output).await;
        let code = exit_code(ended).await;
        passing.abort();
        // A read of the terminal cannot be given up: it ends with the runtime.
        feeding.abort();
        code
    }
}

/// A terminal of the container's has one stream out, so both must be one here; and it is no way for data.
fn has_terminal(input: &Input) -> bool {
    let in_hand = match input {
        Input::Nothing => true,
        Input::Ours => std::io::stdin().is_terminal(),
        Input::Bytes(_) => false,
    };
    in_hand && std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

async fn exit_code(
    ended: impl Stream<Item = Result<bollard::models::ContainerWaitResponse, Error>>,
) -> Result<u8> {
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
async fn print(mut output: impl Stream<Item = Result<LogOutput, Error>> + Unpin) {
    while let Some(Ok(part)) = output.next().await {
        let _ = match part {
            LogOutput::StdErr { message } => std::io::stderr().write_all(&message),
            LogOutput::StdOut { message } | LogOutput::Console { message } => {
                let mut stdout = std::io::stdout();
                stdout.write_all(&message).and_then(|()| stdout.flush())
            }
            LogOutput::StdIn { .. } => Ok(()),
        };
    }
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
