//! Commands in this node for the host.

use std::process::Stdio;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, stream};
use nix::errno::Errno;
use protocol::messages::{ExecInput, ExecOutput, Start, exec_input, exec_output};
use protocol::{Answers, PART};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tonic::{Status, Streaming};

use super::terminal::{self, Terminal};

/// Messages that may wait for the host.
const AHEAD: usize = 16;
/// A process that the command left behind may keep its output open: this long without a word is the end of it.
pub const SILENCE: Duration = Duration::from_millis(100);
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub type Sender = mpsc::Sender<Result<ExecOutput, Status>>;

pub async fn start(mut input: Streaming<ExecInput>) -> Result<Answers<ExecOutput>, Status> {
    let Some(ExecInput { kind: Some(exec_input::Kind::Start(start)) }) = input.message().await? else {
        return Err(Status::invalid_argument("no command was named"));
    };
    let (sender, receiver) = mpsc::channel(AHEAD);
    let mut command = command(&start)?;
    let name = start.argv.first().cloned().unwrap_or_default();
    match start.terminal {
        Some(size) => {
            let terminal = Terminal::open(size)?;
            match terminal.spawn(&mut command) {
                Ok(child) => drop(tokio::spawn(terminal::join(child, terminal, input, sender))),
                Err(e) => not_run(&sender, &name, &e),
            }
        }
        None => match command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
            Ok(child) => drop(tokio::spawn(join(child, input, sender))),
            Err(e) => not_run(&sender, &name, &e),
        },
    }
    Ok(stream::unfold(receiver, |mut r| async { Some((r.recv().await?, r)) }).boxed())
}

fn command(start: &Start) -> Result<Command, Status> {
    let Some((program, args)) = start.argv.split_first() else {
        return Err(Status::invalid_argument("an empty command"));
    };
    let term = if start.term.is_empty() { "xterm" } else { &start.term };
    let mut command = Command::new(program);
    command.args(args).current_dir("/").kill_on_drop(true).env_clear().envs([
        ("PATH", PATH),
        ("HOME", "/root"),
        ("USER", "root"),
        ("KUBECONFIG", "/etc/kubernetes/admin.conf"),
        ("TERM", term),
    ]);
    // SAFETY: one system call, which is async-signal-safe. A server that is killed takes its commands along.
    unsafe {
        command.pre_exec(|| {
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).map_err(Into::into)
        });
    }
    Ok(command)
}

/// A command that cannot be run ends as in a shell.
fn not_run(sender: &Sender, name: &str, error: &std::io::Error) {
    let why = error.raw_os_error().map(Errno::from_raw);
    let text = why.map_or_else(|| error.to_string(), |why| why.desc().to_owned());
    let said = exec_output::Kind::Stderr(format!("{name}: {text}\n").into());
    let code = if why == Some(Errno::ENOENT) { 127 } else { 126 };
    for kind in [said, exec_output::Kind::Exit(code)] {
        // There is room: nothing was sent before.
        let _ = sender.try_send(Ok(ExecOutput { kind: Some(kind) }));
    }
}

/// Until the command has ended. A host that goes away drops the receiver, and the command is killed.
async fn join(mut child: Child, input: Streaming<ExecInput>, sender: Sender) {
    let feed = tokio::spawn(feed(input, child.stdin.take()));
    let (mut stdout, mut stderr) = (Pipe(child.stdout.take()), Pipe(child.stderr.take()));
    let mut exit = None;
    while exit.is_none() || stdout.0.is_some() || stderr.0.is_some() {
        let said = tokio::select! {
            data = stdout.next(), if stdout.0.is_some() => data.map(exec_output::Kind::Stdout),
            data = stderr.next(), if stderr.0.is_some() => data.map(exec_output::Kind::Stderr),
            ended = child.wait(), if exit.is_none() => {
                exit = Some(code(ended));
                None
            }
            () = sender.closed() => break,
            () = sleep(SILENCE), if exit.is_some() => break,
        };
        if said.is_some() {
            let _ = sender.send(Ok(ExecOutput { kind: said })).await;
        }
    }
    feed.abort();
    if let Some(code) = exit {
        let _ = sender.send(Ok(ExecOutput { kind: Some(exec_output::Kind::Exit(code)) })).await;
    }
}

/// One of a command's outputs; `None` once it is closed.
struct Pipe<R>(Option<R>);

impl<R: AsyncRead + Unpin> Pipe<R> {
    /// `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        let mut buffer = BytesMut::with_capacity(PART);
        match self.0.as_mut()?.read_buf(&mut buffer).await {
            Ok(length) if length > 0 => Some(buffer.freeze()),
            _ => {
                self.0 = None;
                None
            }
        }
    }
}

async fn feed(mut input: Streaming<ExecInput>, stdin: Option<ChildStdin>) {
    let Some(mut stdin) = stdin else { return };
    while let Ok(Some(message)) = input.message().await {
        // A command that does not read its input is free to do so.
        if let Some(exec_input::Kind::Stdin(data)) = message.kind
            && stdin.write_all(&data).await.is_err()
        {
            return;
        }
    }
}

/// As a shell has it.
pub fn code(ended: std::io::Result<std::process::ExitStatus>) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    ended.map_or(1, |status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}
