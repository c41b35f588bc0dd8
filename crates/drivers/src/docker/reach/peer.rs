//! Who listens at a socket, and whether that is where we are.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;

use super::Address;

impl Address {
    /// Is it an engine with our network and our files? Only the kernel is asked, so a no may be wrong: who listens may be
    /// out of sight, as from within a container that was given the socket. Where nobody listens, nobody is elsewhere.
    pub fn is_here(&self) -> bool {
        let Some(socket) = self.host.strip_prefix("unix://") else { return false };
        UnixStream::connect(socket).map_or(true, |stream| is_beside_us(&stream))
    }
}

fn is_beside_us(stream: &UnixStream) -> bool {
    let peer = getsockopt(stream, PeerCredentials).map_or(0, |found| found.pid());
    let own = place(Path::new("/proc/self"));
    // One that our processes do not include has no number.
    peer > 0 && own.is_some() && place(&Path::new("/proc").join(peer.to_string())) == own
}

/// The network of a process, and its root. Mounts are no sign: services have their own, of the same files.
fn place(process: &Path) -> Option<(std::path::PathBuf, u64, u64)> {
    let root = std::fs::metadata(process.join("root/.")).ok()?;
    Some((std::fs::read_link(process.join("ns/net")).ok()?, root.dev(), root.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_process_of_ours_is_beside_us() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("engine.sock");
        let at = |host: String| Address { host, certs: None };
        let address = at(format!("unix://{}", socket.display()));
        assert!(address.is_here(), "nobody listens");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert!(address.is_here());
        assert!(!at("ssh://far".to_owned()).is_here());
        assert_eq!(place(Path::new("/proc/0")), None);
    }
}
