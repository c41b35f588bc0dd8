//! `agent serve`: what the host wants from a node that runs, on standard input and output.
//!
//! Each connection has a process of its own, so that bulk data never pass through PID 1 and its election, and what a
//! connection started ends with it. PID 1 is asked only for the node's state.

mod dial;
mod exec;
mod files;
mod fill;
mod kill;
mod listen;
mod streams;
mod terminal;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use protocol::messages::{
    Digests, Empty, ExecInput, ExecOutput, Fill, GetOutput, Killed, PacketFaults, PacketsDone, Part, Path,
    Paths, Program, PutInput, State,
};
use protocol::{Answers, Handler};
use tonic::{Status, Streaming};

pub use self::listen::listen;
use crate::{client, packets};

pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<()> {
    // An engine gives its exec all that there are.
    base::capabilities::drop().context("give up capabilities")?;
    follow_init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async { Ok(protocol::serve(streams::standard()?, Node).await) });
    // A host that has gone away is an ordinary end. A read of a terminal may still wait: it is not waited for.
    runtime.shutdown_background();
    ended.map(drop)
}

/// An engine may start us on all processors although the node has some of them only.
fn follow_init() {
    if let Ok(own) = rustix::thread::sched_getaffinity(rustix::process::Pid::from_raw(1)) {
        let _ = rustix::thread::sched_setaffinity(None, &own);
    }
}

struct Node;

impl Handler for Node {
    async fn state(&self) -> Result<State, Status> {
        let asked = tokio::task::spawn_blocking(client::document).await;
        let json = asked.map_err(internal)?.map_err(|e| Status::unavailable(format!("{e:#}")))?;
        Ok(State { json: json.into() })
    }

    async fn exec(&self, input: Streaming<ExecInput>) -> Result<Answers<ExecOutput>, Status> {
        exec::start(input).await
    }

    async fn put(&self, input: Streaming<PutInput>) -> Result<Empty, Status> {
        files::put(input).await
    }

    async fn get(&self, path: Path) -> Result<Answers<GetOutput>, Status> {
        files::get(path.path).await
    }

    async fn digests(&self, paths: Paths) -> Result<Digests, Status> {
        tokio::task::spawn_blocking(move || files::digests(&paths.paths)).await.map_err(internal)?
    }

    async fn remove(&self, paths: Paths) -> Result<Empty, Status> {
        tokio::task::spawn_blocking(move || files::remove(&paths.paths)).await.map_err(internal)?
    }

    async fn fill(&self, wanted: Fill) -> Result<Empty, Status> {
        let work = move || wanted.leave.map_or_else(fill::free, fill::fill);
        let done = tokio::task::spawn_blocking(work).await.map_err(internal)?;
        done.map(|()| Empty {}).map_err(|e| refused(&e))
    }

    async fn packets(&self, faults: PacketFaults) -> Result<PacketsDone, Status> {
        let faults =
            serde_json::from_slice(&faults.json).map_err(|e| Status::invalid_argument(e.to_string()))?;
        let done = tokio::task::spawn_blocking(move || packets::set(&faults)).await.map_err(internal)?;
        let done = done.map_err(|e| refused(&e))?;
        Ok(PacketsDone { no_delays: done == packets::Done::NoDelays })
    }

    async fn kill(&self, program: Program) -> Result<Killed, Status> {
        let killed = tokio::task::spawn_blocking(move || kill::kill(&program.name)).await;
        killed.map_err(internal)?.map_err(|e| refused(&e))
    }

    async fn dial(&self, input: Streaming<Part>) -> Result<Answers<Part>, Status> {
        dial::start(input).await
    }
}

fn internal(error: impl std::fmt::Display) -> Status {
    Status::internal(error.to_string())
}

fn refused(error: &anyhow::Error) -> Status {
    Status::failed_precondition(format!("{error:#}"))
}

/// What a system call says, with the path it was about.
fn failed(what: &str, error: &std::io::Error) -> Status {
    let message = format!("{what}: {error}");
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Status::not_found(message),
        _ => Status::failed_precondition(message),
    }
}
