//! Asking an agent, from the host or from inside its node.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use model::node_spec::{NodeState, RUN_DIR, SOCKET_NAME};

/// An agent answers from memory; one that does not within this time is stuck.
const PATIENCE: Duration = Duration::from_secs(2);
/// A thousand times what an answer has: root of the node could send without end.
const LONGEST: u64 = 16 << 20;

/// The state of the node that shares `dir` with the host.
pub fn state(dir: &Path) -> Result<NodeState> {
    serde_json::from_slice(&document(dir)?).context("understand the agent's answer")
}

/// The same as the agent wrote it.
pub fn document(dir: &Path) -> Result<Vec<u8>> {
    // Through the directory's descriptor, because a socket's path may not be longer than 107 bytes.
    let opened = fs_err::File::open(dir)?;
    let path = format!("/proc/self/fd/{}/{SOCKET_NAME}", opened.as_raw_fd());
    let stream =
        UnixStream::connect(path).with_context(|| format!("connect to the agent of {}", dir.display()))?;
    stream.set_read_timeout(Some(PATIENCE)).context("set a time limit")?;
    let mut document = Vec::new();
    stream.take(LONGEST).read_to_end(&mut document).context("read the agent's answer")?;
    Ok(document)
}

pub fn print() -> ExitCode {
    match state(Path::new(RUN_DIR)).and_then(|s| Ok(serde_json::to_string_pretty(&s)?)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn an_answer_without_end_is_not_read_to_its_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let listener =
            std::os::unix::net::UnixListener::bind(dir.path().join(SOCKET_NAME)).expect("a socket");
        let sender = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a guest");
            let blanks = [b' '; 1 << 16];
            let mut sent = 0_u64;
            // Until the reader hangs up, or has had four times what it may read.
            while sent < 4 * LONGEST && stream.write_all(&blanks).is_ok() {
                sent += blanks.len() as u64;
            }
            sent
        });
        assert!(state(dir.path()).is_err());
        assert!(sender.join().expect("no panic") < 2 * LONGEST);
    }
}
