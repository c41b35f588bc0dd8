//! `agent dial ADDRESS…`: joins its own streams to the first of the addresses that answers. So whoever can run a
//! program in a node, but reaches no address of the cluster, gets there.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

/// An API server that does not answer at once is passed by.
const CONNECT: Duration = Duration::from_secs(1);
/// Said first: what comes after is the other side's.
const CONNECTED: &[u8] = b"+";

pub fn run(addresses: &[OsString]) -> ExitCode {
    let addresses = addresses.iter().filter_map(|a| a.to_str()?.parse::<SocketAddr>().ok());
    let Some(stream) = addresses.into_iter().find_map(|a| TcpStream::connect_timeout(&a, CONNECT).ok())
    else {
        eprintln!("none of the addresses answers");
        return ExitCode::FAILURE;
    };
    match join(stream) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

/// Ends with what comes from the other side: who has said all may still wait for an answer.
fn join(stream: TcpStream) -> std::io::Result<()> {
    let mut to = stream.try_clone()?;
    std::thread::spawn(move || {
        let _ = copy(&mut std::io::stdin().lock(), &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut out = std::io::stdout().lock();
    out.write_all(CONNECTED)?;
    out.flush()?;
    copy(&mut &stream, &mut out)
}

/// Each piece goes on at once.
fn copy(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => to.write_all(&buffer[..length]).and_then(|()| to.flush())?,
        }
    }
}
