//! The process that serves the API on this node: which one it is, and whether it was stopped.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// State of a socket in the kernel's table.
const LISTEN: &str = "0A";

/// A process, by a file that tells its state: open already, because the election's thread opens none.
pub struct Process(File);

impl Process {
    /// The process that listens on this address and port. Reads many files of /proc, so it is not for the
    /// election's thread.
    pub fn find(ip: Ipv4Addr, port: u16) -> Option<Process> {
        let tables =
            ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
        let inode = tables.iter().find_map(|table| listener(table, ip, port))?;
        let socket = format!("socket:[{inode}]");
        let pids = std::fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
        let mut pids = pids.filter(|dir| has_open(&dir.join("fd"), &socket));
        File::open(pids.next()?.join("stat")).ok().map(Process)
    }

    /// It gets no processor time, whether it wants it or not: a signal has stopped it, or it has ended.
    pub fn is_stopped(&self) -> bool {
        let mut text = [0; 256];
        let length = self.0.read_at(&mut text, 0).unwrap_or(0);
        is_stopped(&text[..length])
    }
}

/// Of what /proc/PID/stat says.
fn is_stopped(stat: &[u8]) -> bool {
    // The name of the program is in brackets, and may have any bytes in it.
    let state = stat.iter().rposition(|b| *b == b')').and_then(|end| stat.get(end + 2));
    state.is_none_or(|state| b"TtZXx".contains(state))
}

/// The inode of the listening socket, of a table such as /proc/net/tcp.
fn listener(table: &str, ip: Ipv4Addr, port: u16) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, listens_at) = fields.get(1)?.split_once(':')?;
        // Addresses are printed as numbers in the host's byte order; IPv4 is at the end of IPv6.
        let own = format!("{:08X}", u32::from_ne_bytes(ip.octets()));
        let any = address.bytes().all(|b| b == b'0');
        let here = *fields.get(3)? == LISTEN && u16::from_str_radix(listens_at, 16) == Ok(port);
        if here && (any || address.ends_with(&own)) { fields.get(9)?.parse().ok() } else { None }
    })
}

fn has_open(fds: &Path, target: &str) -> bool {
    let Ok(fds) = std::fs::read_dir(fds) else { return false };
    fds.flatten().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == target))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process::Command;

    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{WaitPidFlag, waitpid};
    use nix::unistd::Pid;

    use super::*;

    #[test]
    fn the_listener_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0231A8C0:20FB 00000000:0000 01 00000000:00000000 00:00000000 00000000     0        0 11 1\n   \
            1: 0100007F:20FB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1\n   \
            2: 0231A8C0:20FB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 13 1\n";
        assert_eq!(listener(table, Ipv4Addr::new(192, 168, 49, 2), 8443), Some(13));
        assert_eq!(listener(table, Ipv4Addr::new(192, 168, 49, 3), 8443), None);
        let any = table.replace("0231A8C0", "00000000000000000000000000000000");
        assert_eq!(listener(&any, Ipv4Addr::new(192, 168, 49, 3), 8443), Some(13));
        assert_eq!(listener("", Ipv4Addr::LOCALHOST, 1), None);
    }

    #[test]
    fn a_stopped_process_is_known_by_its_state() {
        let own = TcpListener::bind("[::]:0").unwrap();
        let me = Process::find(Ipv4Addr::LOCALHOST, own.local_addr().unwrap().port()).unwrap();
        assert!(!me.is_stopped());
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        let process = Process(File::open(format!("/proc/{pid}/stat")).unwrap());
        assert!(!process.is_stopped());
        kill(pid, Signal::SIGSTOP).unwrap();
        waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert!(process.is_stopped());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(process.is_stopped(), "it has ended");
        assert!(is_stopped(b"7 (a) R (b) T 1 2") && !is_stopped(b"7 (a) T (b) D 1 2"));
    }
}
