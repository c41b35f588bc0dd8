//! Standard input and output as one stream: a socket that PID 1 took, or the pipes of an engine's exec.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;

use anyhow::{Context as _, Result};
use base::Stream;
use rustix::fs::{FileType, fstat};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

pub fn standard() -> Result<Stream> {
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let (input, output) = (input.as_fd().try_clone_to_owned()?, output.as_fd().try_clone_to_owned()?);
    if is_socket(&input)? {
        let socket = StdStream::from(input);
        socket.set_nonblocking(true).context("prepare standard input")?;
        return Ok(Box::new(UnixStream::from_std(socket)?));
    }
    let input = pipe::Receiver::from_owned_fd(input).context("read standard input")?;
    let output = pipe::Sender::from_owned_fd(output).context("write standard output")?;
    Ok(Box::new(tokio::io::join(input, output)))
}

fn is_socket(fd: &OwnedFd) -> Result<bool> {
    let found = fstat(fd).context("look at standard input")?;
    Ok(FileType::from_raw_mode(found.st_mode) == FileType::Socket)
}
