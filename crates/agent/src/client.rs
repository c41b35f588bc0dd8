//! Asking the agent of a node, from inside the node.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use model::node_spec::{NodeState, RUN_DIR, SOCKET_NAME};

/// An agent answers from memory; one that does not within this time is stuck.
const PATIENCE: Duration = Duration::from_secs(2);

/// The state of the node, as the agent wrote it.
pub fn document() -> Result<Vec<u8>> {
    let mut stream =
        UnixStream::connect(Path::new(RUN_DIR).join(SOCKET_NAME)).context("connect to the agent")?;
    stream.set_read_timeout(Some(PATIENCE)).context("set a time limit")?;
    let mut document = Vec::new();
    stream.read_to_end(&mut document).context("read the agent's answer")?;
    Ok(document)
}

pub fn print() -> ExitCode {
    let pretty = || -> Result<String> {
        let state: NodeState =
            serde_json::from_slice(&document()?).context("understand the agent's answer")?;
        Ok(serde_json::to_string_pretty(&state)?)
    };
    match pretty() {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}
