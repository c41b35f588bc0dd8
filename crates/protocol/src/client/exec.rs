//! Commands in the node.

use bytes::Bytes;
use futures::stream;
use tokio::sync::mpsc;
use tonic::Streaming;

use super::{Error, Node};
use crate::messages::{ExecInput, ExecOutput, Size, Start, exec_input, exec_output};
use crate::{PART, calls};

/// Parts of the input that may be under way.
const AHEAD: usize = 8;
/// The most that a command may say when its output is collected.
const LONGEST_OUTPUT: usize = 256 << 20;

/// What a command said, and how it ended.
#[derive(Debug, Clone, Default)]
pub struct Output {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// A command that runs. It is killed when this is dropped.
pub struct Exec {
    node: Node,
    input: Option<mpsc::Sender<ExecInput>>,
    output: Streaming<ExecOutput>,
}

pub enum ExecEvent {
    Stdout(Bytes),
    Stderr(Bytes),
    Exit(i32),
}

impl Node {
    pub async fn exec(&self, start: Start) -> Result<Exec, Error> {
        let (input, receiver) = mpsc::channel(AHEAD);
        let first = ExecInput { kind: Some(exec_input::Kind::Start(start)) };
        let rest = stream::unfold(receiver, |mut r| async { Some((r.recv().await?, r)) });
        let input_stream = futures::StreamExt::chain(stream::iter([first]), rest);
        let output = self.talk(calls::EXEC, input_stream).await?;
        Ok(Exec { node: self.clone(), input: Some(input), output })
    }

    /// Runs to the end with `input`; the output is collected.
    pub async fn run(&self, argv: &[String], input: Vec<u8>) -> Result<Output, Error> {
        let start = Start { argv: argv.to_vec(), ..Start::default() };
        let mut exec = self.exec(start).await?;
        let stdin = exec.take_input();
        let feed = async move {
            let Some(stdin) = stdin else { return };
            let mut input = Bytes::from(input);
            while !input.is_empty() {
                let part = input.split_to(input.len().min(PART));
                // A command that does not read its input may end.
                if stdin.send(part).await.is_err() {
                    return;
                }
            }
        };
        let (output, ()) = tokio::join!(exec.collect(), feed);
        output
    }
}

/// The input of a command. Its end is the end of this.
#[derive(Clone)]
pub struct Stdin(mpsc::Sender<ExecInput>);

/// The command has ended.
#[derive(Debug)]
pub struct Ended;

impl Stdin {
    pub async fn send(&self, data: Bytes) -> Result<(), Ended> {
        self.0.send(ExecInput { kind: Some(exec_input::Kind::Stdin(data)) }).await.map_err(|_| Ended)
    }

    /// The terminal has another size.
    pub async fn resize(&self, size: Size) -> Result<(), Ended> {
        self.0.send(ExecInput { kind: Some(exec_input::Kind::Size(size)) }).await.map_err(|_| Ended)
    }
}

impl Exec {
    /// Once. The command's input ends when all copies of it are dropped.
    pub fn take_input(&mut self) -> Option<Stdin> {
        self.input.take().map(Stdin)
    }

    /// What comes next; the exit is the last.
    pub async fn next(&mut self) -> Result<ExecEvent, Error> {
        loop {
            let message = self.output.message().await.map_err(|s| self.node.error(&s))?;
            let Some(message) = message else {
                let why = "it ended while a command ran".to_owned();
                return Err(Error::Silent { machine: self.node.machine.clone(), why });
            };
            match message.kind {
                Some(exec_output::Kind::Stdout(data)) => return Ok(ExecEvent::Stdout(data)),
                Some(exec_output::Kind::Stderr(data)) => return Ok(ExecEvent::Stderr(data)),
                Some(exec_output::Kind::Exit(code)) => return Ok(ExecEvent::Exit(code)),
                // Of a newer agent.
                None => {}
            }
        }
    }

    async fn collect(mut self) -> Result<Output, Error> {
        let mut output = Output::default();
        loop {
            match self.next().await? {
                ExecEvent::Stdout(data) => output.stdout.extend_from_slice(&data),
                ExecEvent::Stderr(data) => output.stderr.extend_from_slice(&data),
                ExecEvent::Exit(code) => {
                    output.code = code;
                    return Ok(output);
                }
            }
            if output.stdout.len() + output.stderr.len() > LONGEST_OUTPUT {
                return Err(self.node.refused(format!("a command said more than {LONGEST_OUTPUT} bytes")));
            }
        }
    }
}
