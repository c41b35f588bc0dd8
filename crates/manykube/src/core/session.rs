//! A command in a node that has our own standard streams.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use drivers::terminal::Raw;
use protocol::messages::{Size, Start};
use protocol::{Exec, ExecEvent, Node, PART, Stdin};
use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// As a shell reports a program that wrote to a closed pipe.
const BROKEN_PIPE: i32 = 141;

/// Returns the exit code. With `tty` the command gets a terminal that is joined to ours.
pub async fn join(node: &Node, argv: Vec<String>, tty: bool) -> Result<i32> {
    let term = std::env::var("TERM").unwrap_or_default();
    let mut exec = node.exec(Start { argv, terminal: tty.then(size), term }).await?;
    let stdin = exec.take_input().context("the command's input")?;
    let raw = tty.then(Raw::enter);
    let code = tokio::select! {
        code = show(&mut exec) => code,
        never = feed(stdin, tty) => match never? {},
    };
    drop(raw);
    code
}

enum Never {}

async fn show(exec: &mut Exec) -> Result<i32> {
    loop {
        let written = match exec.next().await? {
            ExecEvent::Stdout(data) => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(&data).and_then(|()| stdout.flush())
            }
            ExecEvent::Stderr(data) => std::io::stderr().lock().write_all(&data),
            ExecEvent::Exit(code) => return Ok(code),
        };
        match written {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(BROKEN_PIPE),
            written => written.context("write what the command said")?,
        }
    }
}

/// Until the command has ended: it may go on when it has no more input.
async fn feed(stdin: Stdin, tty: bool) -> Result<Never> {
    let mut resized = signal(SignalKind::window_change()).context("listen for SIGWINCH")?;
    let mut typed = typed();
    let mut stdin = Some(stdin);
    loop {
        tokio::select! {
            part = typed.recv(), if stdin.is_some() => {
                let sent = match (part, &stdin) {
                    (Some(part), Some(to)) => to.send(part).await.is_ok(),
                    _ => false,
                };
                if !sent {
                    stdin = None;
                }
            }
            _ = resized.recv(), if tty => {
                if let Some(to) = &stdin {
                    let _ = to.resize(size()).await;
                }
            }
            else => std::future::pending().await,
        }
    }
}

/// By a thread: a read of standard input cannot be given up.
fn typed() -> mpsc::Receiver<bytes::Bytes> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        loop {
            let mut part = vec![0; PART];
            match rustix::io::read(std::io::stdin(), &mut part) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(length) if length > 0 => {
                    part.truncate(length);
                    if sender.blocking_send(part.into()).is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    });
    receiver
}

fn size() -> Size {
    let found = tcgetwinsize(std::io::stdin()).map(|s| (s.ws_row, s.ws_col));
    let (rows, columns) = found.unwrap_or((24, 80));
    Size { rows: rows.into(), columns: columns.into() }
}
