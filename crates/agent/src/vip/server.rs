//! The process that serves the API on this node: which one it is, and whether it runs.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use tokio::time::Instant;

/// State of a socket in the kernel's table.
const LISTEN: &str = "0A";

/// The process that listens on this address and port. Reads many files of /proc, so it is not for the
/// election's thread.
pub fn find(ip: Ipv4Addr, port: u16) -> Option<Pid> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let inode = tables.iter().find_map(|table| listener(table, ip, port))?;
    let socket = format!("socket:[{inode}]");
    let pids =
        std::fs::read_dir("/proc").ok()?.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    let mut pids = pids.filter(|pid: &i32| has_open(Path::new(&format!("/proc/{pid}/fd")), &socket));
    pids.next().map(Pid::from_raw)
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

/// Since when a process has used no CPU time. A server on a busy machine is slow, but it uses what it
/// gets; one that hangs uses none. The kernel tells in one call, which opens no file and waits for no lock.
pub struct Progress {
    pid: Option<Pid>,
    used: Option<Duration>,
    since: Instant,
}

impl Progress {
    /// Of an unknown process there is never any.
    pub fn watch(pid: Option<Pid>) -> Progress {
        Progress { pid, used: pid.and_then(cpu_time), since: Instant::now() }
    }

    /// How long it has used none, as far as it was looked at.
    pub fn stands_still(&mut self) -> Duration {
        let used = self.pid.and_then(cpu_time);
        if used.is_some() && used != self.used {
            (self.used, self.since) = (used, Instant::now());
        }
        self.since.elapsed()
    }
}

fn cpu_time(pid: Pid) -> Option<Duration> {
    let time = clock_gettime(clock_getcpuclockid(pid).ok()?).ok()?;
    Some(time.into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process::Command;

    use nix::sys::signal::{Signal, kill};

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
    fn finds_itself() {
        let socket = TcpListener::bind("[::]:0").unwrap();
        assert_eq!(find(Ipv4Addr::LOCALHOST, socket.local_addr().unwrap().port()), Some(Pid::this()));
    }

    #[test]
    fn a_stopped_process_stands_still() {
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        let mut progress = Progress::watch(Some(pid));
        let began = Instant::now();
        while progress.stands_still() >= began.elapsed() {
            std::thread::yield_now();
        }
        kill(pid, Signal::SIGSTOP).unwrap();
        let began = Instant::now();
        while progress.stands_still() < Duration::from_millis(200) {
            assert!(began.elapsed() < Duration::from_secs(60), "it moves");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(cpu_time(pid).is_none());
    }
}
