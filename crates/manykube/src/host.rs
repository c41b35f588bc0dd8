//! What this host has.

use std::path::Path;
use std::time::{Duration, SystemTime};

use model::resources::HostSize;

pub fn size() -> HostSize {
    let cpus = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    HostSize { cpus, memory_mib: mib(&meminfo, "MemTotal:").unwrap_or(0) }
}

/// What programs could still take without anything being pushed out.
pub fn available_mib() -> Option<u32> {
    mib(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

fn mib(meminfo: &str, name: &str) -> Option<u32> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    u32::try_from(kib / 1024).ok()
}

/// Bytes that can still be written below `dir`; `None` when that cannot be found out.
pub fn free_bytes(dir: &Path) -> Option<u64> {
    // As in minikube: tests pretend that so many GiB are free.
    #[cfg(feature = "test-hooks")]
    if let Some(gib) = env("MINIKUBE_TEST_AVAILABLE_STORAGE").and_then(|v| v.parse::<u64>().ok()) {
        return Some(gib.saturating_mul(1 << 30));
    }
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The time by which certificates are made and judged.
pub fn now() -> SystemTime {
    SystemTime::now() - set_back()
}

/// Tests set it back by so many seconds, to have certificates that end soon.
#[cfg(feature = "test-hooks")]
fn set_back() -> Duration {
    Duration::from_secs(env("MANYKUBE_CLOCK_BACK").and_then(|text| text.parse().ok()).unwrap_or(0))
}

#[cfg(not(feature = "test-hooks"))]
fn set_back() -> Duration {
    Duration::ZERO
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// As Go names it.
pub fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// `Debian GNU/Linux 13 (trixie)`.
pub fn os() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    pretty_name(&release).unwrap_or_else(|| "Linux".to_owned())
}

fn pretty_name(release: &str) -> Option<String> {
    let value = release.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim().trim_matches('"').to_owned())
}

pub fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells() {
        assert_eq!(mib("MemTotal:       24682000 kB\nMemFree: 1 kB\n", "MemTotal:"), Some(24103));
        assert_eq!(mib("nothing", "MemTotal:"), None);
        assert_eq!(pretty_name("NAME=x\nPRETTY_NAME=\"Debian 13\"\n").as_deref(), Some("Debian 13"));
    }
}
