//! The channel into a container: an exec of the engine, whose streams are the agent's.

use std::time::Duration;

use base::Stream;
use bollard::Docker as Client;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use futures::StreamExt as _;
use model::node_spec::AGENT_PATH;
use tokio::time::timeout;
use tokio_util::io::StreamReader;

use super::container;
use crate::driver::NoStream;

/// What an engine takes to begin, also on a busy host.
const BEGIN: Duration = Duration::from_secs(20);
/// Bytes that are read at once; the engine's frames have 32 KiB.
const AT_ONCE: usize = 128 << 10;

pub async fn connect(client: &Client, machine: &str) -> Result<Stream, NoStream> {
    let silent = |why: String| NoStream::Silent { machine: machine.to_owned(), why };
    let begun = timeout(BEGIN, begin(client, machine)).await;
    let begun =
        begun.map_err(|_| silent(format!("the engine began nothing within {} s", BEGIN.as_secs())))?;
    match begun {
        Ok(StartExecResults::Attached { output, input }) => {
            let output = output.filter_map(|part| std::future::ready(data(part)));
            Ok(Box::new(tokio::io::join(StreamReader::new(output), input)))
        }
        Ok(StartExecResults::Detached) => Err(silent("the engine gave no streams".to_owned())),
        Err(error) => Err(why(client, machine, error).await),
    }
}

async fn begin(client: &Client, machine: &str) -> Result<StartExecResults, Error> {
    let options = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some([AGENT_PATH, "agent", "serve"].map(str::to_owned).into()),
        ..CreateExecOptions::default()
    };
    let exec = client.create_exec(machine, options).await?;
    let streams = StartExecOptions { output_capacity: Some(AT_ONCE), ..StartExecOptions::default() };
    client.start_exec(&exec.id, Some(streams)).await
}

/// What goes wrong is said on standard error, which is no part of the channel.
fn data(part: Result<LogOutput, Error>) -> Option<std::io::Result<bytes::Bytes>> {
    match part {
        Ok(LogOutput::StdOut { message }) => Some(Ok(message)),
        Ok(other) => {
            tracing::warn!("agent: {}", String::from_utf8_lossy(&other.into_bytes()).trim_end());
            None
        }
        Err(error) => Some(Err(std::io::Error::other(error))),
    }
}

/// Engines have one code for several reasons.
async fn why(client: &Client, machine: &str, error: Error) -> NoStream {
    match container::inspect(client, machine).await {
        Ok(Some(found)) if container::is_paused(&found) => NoStream::Frozen(machine.to_owned()),
        Ok(Some(found)) if container::is_running(&found) => {
            NoStream::Silent { machine: machine.to_owned(), why: error.to_string() }
        }
        _ => NoStream::NotRunning(machine.to_owned()),
    }
}
