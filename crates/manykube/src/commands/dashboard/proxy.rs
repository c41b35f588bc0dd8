//! The way of a browser of this host to the dashboard. The port is open to every user of the host, so each request must
//! have a secret at the beginning of its path, and gets no further than the dashboard. Behind it is `kubectl proxy`, on a
//! socket that only we can reach.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// A browser sends its first line at once.
const PATIENCE: Duration = Duration::from_secs(10);
const HEAD: usize = 64 << 10;
const FORBIDDEN: &[u8] = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

pub struct Proxy {
    listener: TcpListener,
    gate: Arc<Gate>,
}

/// What is let through, and whereto.
struct Gate {
    secret: String,
    /// The only path, with all below it.
    path: String,
    socket: PathBuf,
}

impl Proxy {
    pub async fn open(port: u16, path: &str, socket: &Path) -> Result<Proxy> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).context("make a secret")?;
        let secret = format!("{:032x}", u128::from_ne_bytes(secret));
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let gate = Gate { secret, path: path.to_owned(), socket: socket.to_owned() };
        Ok(Proxy { listener, gate: Arc::new(gate) })
    }

    pub fn url(&self) -> Result<String> {
        let Gate { secret, path, .. } = &*self.gate;
        Ok(format!("http://{}/{secret}{path}", self.listener.local_addr()?))
    }

    pub async fn serve(&self) -> Result<()> {
        loop {
            let (client, _) = self.listener.accept().await.context("wait for a browser")?;
            let gate = self.gate.clone();
            tokio::spawn(async move {
                if let Err(e) = gate.pass(client).await {
                    tracing::debug!("a request to the dashboard: {e}");
                }
            });
        }
    }
}

impl Gate {
    /// One request for each connection: who comes next on the same one is looked at, too.
    async fn pass(&self, mut client: TcpStream) -> io::Result<()> {
        let (head, rest) = tokio::time::timeout(PATIENCE, read_head(&mut client)).await??;
        let Some(head) = std::str::from_utf8(&head).ok().and_then(|head| self.forwarded(head)) else {
            return client.write_all(FORBIDDEN).await;
        };
        let mut server = UnixStream::connect(&self.socket).await?;
        server.write_all(head.as_bytes()).await?;
        server.write_all(&rest).await?;
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        let upward = async {
            let _ = copy(&mut from_client, &mut to_server).await;
            // Who has said all still waits for the answer.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            answered = copy(&mut from_server, &mut to_client) => answered.map(drop),
            () = upward => Ok(()),
        }
    }

    /// The request without the secret, if it may pass.
    fn forwarded(&self, head: &str) -> Option<String> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let (secret, path) = target.strip_prefix('/')?.split_at_checked(self.secret.len())?;
        if words.next().is_some() || !same(secret, &self.secret) || !self.is_below(path) {
            return None;
        }
        let headers: Vec<&str> = lines.collect();
        let broken = |line: &&str| line.starts_with([' ', '\t']) || line.contains(['\r', '\n', '\0']);
        if headers.iter().any(broken) {
            return None;
        }
        let named = |line: &str, name: &str| {
            line.split_once(':').is_some_and(|(found, _)| found.trim().eq_ignore_ascii_case(name))
        };
        let upgrades = headers.iter().any(|line| named(line, "upgrade"));
        // The address of the page that it came from has the secret in it.
        let dropped = |line: &str| named(line, "referer") || (!upgrades && named(line, "connection"));
        let kept = headers.iter().filter(|line| !line.is_empty() && !dropped(line));
        let mut head = format!("{method} {path} {version}\r\n");
        kept.for_each(|line| head.extend([line, "\r\n"]));
        if !upgrades {
            head += "Connection: close\r\n";
        }
        Some(head + "\r\n")
    }

    fn is_below(&self, target: &str) -> bool {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let plain = path.to_ascii_lowercase();
        // A detour may lead out again.
        let detour = ["%2e", "%2f", "%5c", "\\", "//"].iter().any(|d| plain.contains(d))
            || path.split('/').any(|part| matches!(part, "." | ".."));
        path.starts_with(&self.path) && !detour
    }
}

/// Takes as long for any wrong secret.
fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Up to the empty line, and what came with it.
async fn read_head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|w| w == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            return Ok((read, rest));
        }
        if read.len() > HEAD || client.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
