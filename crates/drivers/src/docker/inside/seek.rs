//! The engine's own address on its own host: how it was reached from elsewhere says little about that.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

const PATIENCE: Duration = Duration::from_secs(2);

/// Which engine, and how it was reached.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sought {
    pub id: String,
    pub host: String,
}

impl Sought {
    /// As DOCKER_HOST has it.
    pub fn find(&self) -> Result<String> {
        let listening = fs_err::read_to_string("/proc/net/unix")?;
        let mut sockets = vec!["/var/run/docker.sock"];
        sockets.extend(sockets_in(&listening));
        if let Some(path) = sockets.iter().find(|path| self.is_at(UnixStream::connect(path))) {
            return Ok(format!("unix://{path}"));
        }
        let tcp = self.host.strip_prefix("tcp://").unwrap_or(&self.host);
        if self.is_at(TcpStream::connect(tcp)) {
            return Ok(self.host.clone());
        }
        bail!(
            "the engine listens on no socket of its own host: start it with -H unix:///var/run/docker.sock beside the address that it has"
        )
    }

    fn is_at<S: Read + Write + Bounded>(&self, stream: std::io::Result<S>) -> bool {
        let ask = |mut stream: S| {
            stream.bound(PATIENCE)?;
            stream.write_all(b"GET /info HTTP/1.0\r\nHost: docker\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        };
        stream.and_then(ask).is_ok_and(|answer| answer.contains(&format!("\"ID\":\"{}\"", self.id)))
    }
}

/// Those of engines, by their names, in what the kernel lists.
fn sockets_in(listening: &str) -> impl Iterator<Item = &str> {
    let paths = listening.lines().filter_map(|line| line.split_whitespace().nth(7));
    paths.filter(|path| {
        path.starts_with('/') && (path.ends_with("docker.sock") || path.ends_with("podman.sock"))
    })
}

trait Bounded {
    fn bound(&self, limit: Duration) -> std::io::Result<()>;
}

impl Bounded for UnixStream {
    fn bound(&self, limit: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(limit))
    }
}

impl Bounded for TcpStream {
    fn bound(&self, limit: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_engines() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000: 00000002 00000000 00010000 0001 01 29 /run/docker.sock\n\
                    0000: 00000002 00000000 00010000 0001 01 30 @/docker.sock\n\
                    0000: 00000003 00000000 00000000 0001 03 31\n";
        assert_eq!(sockets_in(text).collect::<Vec<_>>(), ["/run/docker.sock"]);
    }
}
