//! A connection that is a process: what it reads and prints is what goes to and comes from the engine.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::ssh_refused;

/// Between the end of its output and its own.
const END: Duration = Duration::from_secs(2);
/// A process that ssh leaves behind may keep the stream of errors open.
const SILENCE: Duration = Duration::from_millis(200);
const LONGEST: usize = 16 << 10;

pub struct Session {
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// Until it is asked why it ended.
    process: Option<(Child, ChildStderr)>,
    /// Something came: it has led to the engine.
    answered: bool,
    ending: Option<Pin<Box<dyn Future<Output = io::Error> + Send>>>,
}

impl Session {
    pub fn new(mut child: Child) -> io::Result<Session> {
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = streams else {
            return Err(io::Error::other("ssh has no streams"));
        };
        let process = Some((child, errors));
        Ok(Session { input: Some(input), output, process, answered: false, ending: None })
    }
}

async fn why((mut child, mut errors): (Child, ChildStderr)) -> io::Error {
    let code = timeout(END, child.wait()).await.ok().and_then(Result::ok).and_then(|status| status.code());
    let mut said = Vec::new();
    let mut buffer = [0; 1024];
    while said.len() < LONGEST {
        match timeout(SILENCE, errors.read(&mut buffer)).await {
            Ok(Ok(length)) if length > 0 => said.extend_from_slice(&buffer[..length]),
            _ => break,
        }
    }
    io::Error::other(ssh_refused::why(&String::from_utf8_lossy(&said), code))
}

impl AsyncRead for Session {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ending.is_none() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.output).poll_read(context, buffer))?;
            self.answered |= buffer.filled().len() > before;
            if self.answered {
                return Poll::Ready(Ok(()));
            }
            self.ending = self.process.take().map(|process| Box::pin(why(process)) as _);
        }
        match &mut self.ending {
            Some(ending) => ending.as_mut().poll(context).map(Err),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Session {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let answered = self.answered;
        let Some(input) = &mut self.input else { return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) };
        match ready!(Pin::new(input).poll_write(context, data)) {
            // Who reads is told why it ended, which is more than that it did.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe && !answered => Poll::Ready(Ok(data.len())),
            done => Poll::Ready(done),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.input {
            Some(input) => Pin::new(input).poll_flush(context),
            None => Poll::Ready(Ok(())),
        }
    }

    /// The other side goes on: only what is closed tells it that there is no more to read.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input = None;
        Poll::Ready(Ok(()))
    }
}
