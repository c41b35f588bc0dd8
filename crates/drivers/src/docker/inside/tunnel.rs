//! Connections to addresses that only the nodes reach: each is a program in a node that runs, and its streams.

use std::collections::HashMap;
use std::net::SocketAddrV4;

use anyhow::{Context, Result, bail};
use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, StartExecResults};
use bollard::query_parameters::ListContainersOptionsBuilder;
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::Engine;
use crate::docker::{HOME, NAME, PROFILE};

/// The node's own attempts, and what the engine takes to begin.
const BEGIN: Duration = Duration::from_secs(10);

/// The other end of a connection.
pub struct Tunnel {
    output: Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>,
    input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Came with the word that the connection is there.
    first: Bytes,
}

impl Engine {
    /// Machines of a profile that run, by the home that they belong to.
    pub async fn running(&self, home: &str, profile: &str) -> Result<Vec<String>> {
        let labels = vec![format!("{HOME}={home}"), format!("{PROFILE}={profile}")];
        let filters = HashMap::from([("label", labels), ("status", vec!["running".to_owned()])]);
        let options = ListContainersOptionsBuilder::default().filters(&filters).build();
        let found =
            self.client.list_containers(Some(options)).await.context("list the engine's containers")?;
        Ok(found.into_iter().filter_map(|c| c.labels?.remove(NAME)).collect())
    }

    /// To the first of the addresses that answers, from within a node.
    pub async fn dial(&self, node: &str, to: &[SocketAddrV4]) -> Result<Tunnel> {
        let program = [model::node_spec::AGENT_PATH, "agent", "dial"].map(str::to_owned);
        let cmd = program.into_iter().chain(to.iter().map(ToString::to_string)).collect();
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            cmd: Some(cmd),
            ..CreateExecOptions::default()
        };
        let begun = async {
            let exec = self.client.create_exec(node, options).await?;
            self.client.start_exec(&exec.id, None).await
        };
        let begun = timeout(BEGIN, begun).await.with_context(|| format!("{node} does not begin"))?;
        let StartExecResults::Attached { mut output, input } =
            begun.with_context(|| format!("begin in {node}"))?
        else {
            bail!("{node} gave no streams");
        };
        match timeout(BEGIN, output.next()).await {
            Ok(Some(Ok(LogOutput::StdOut { message }))) if message.first() == Some(&b'+') => {
                Ok(Tunnel { output, input, first: message.slice(1..) })
            }
            _ => bail!("{node} reaches none of {to:?}"),
        }
    }
}

impl Tunnel {
    /// Until the other side has said all.
    pub async fn join(self, client: impl AsyncRead + AsyncWrite + Unpin) {
        let Tunnel { mut output, mut input, first } = self;
        let (mut from, mut to) = tokio::io::split(client);
        let up = async {
            let _ = tokio::io::copy(&mut from, &mut input).await;
            let _ = input.shutdown().await;
            std::future::pending::<()>().await
        };
        let down = async {
            if to.write_all(&first).await.is_err() {
                return;
            }
            while let Some(Ok(part)) = output.next().await {
                if let LogOutput::StdOut { message } = part
                    && to.write_all(&message).await.is_err()
                {
                    return;
                }
            }
            let _ = to.shutdown().await;
        };
        tokio::select! {
            () = up => {}
            () = down => {}
        }
    }
}
