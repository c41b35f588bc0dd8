//! An advertisement counts once, and only while it is new.
//!
//! Its stamp is the kernel's time since boot, which all nodes have in common: they run on one host.
//! A stamp that is not above the sender's last one is a copy. One that is old waited in a queue while
//! this node stood still, or was kept by an eavesdropper: what it tells is not so any more.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use nix::libc;

use super::election::DOWN;

#[derive(Default)]
pub struct Replay {
    last: BTreeMap<Ipv4Addr, u64>,
    sent: u64,
}

impl Replay {
    /// For the next advertisement of our own.
    pub fn stamp(&mut self, now: u64) -> u64 {
        self.sent = now.max(self.sent + 1);
        self.sent
    }

    pub fn is_new(&mut self, from: Ipv4Addr, stamp: u64, now: u64) -> bool {
        let window = u64::try_from(DOWN.as_nanos()).unwrap_or(u64::MAX);
        let last = self.last.get(&from).copied().unwrap_or(0);
        let new = stamp > last && now.abs_diff(stamp) < window;
        if new {
            self.last.insert(from, stamp);
        }
        new
    }
}

/// Nanoseconds since the host booted.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec that outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 2);
    const B: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 3);
    const MS: u64 = 1_000_000;

    #[test]
    fn what_was_heard_before_is_not_heard_again() {
        let (mut replay, now) = (Replay::default(), 90_000 * MS);
        assert!(replay.is_new(A, now, now));
        assert!(!replay.is_new(A, now, now + MS), "a copy");
        assert!(!replay.is_new(A, now - MS, now + MS), "an older one");
        assert!(replay.is_new(B, now, now), "another sender's");
        assert!(replay.is_new(A, now + MS, now + 2 * MS));
    }

    #[test]
    fn what_was_kept_for_later_is_not_heard() {
        let (mut replay, sent) = (Replay::default(), 90_000 * MS);
        assert!(!replay.is_new(A, sent, sent + 600 * MS), "it waited as long as a silence");
        assert!(!replay.is_new(A, sent, sent - 600 * MS), "it comes from a host that ran for longer");
        assert!(replay.is_new(A, sent, sent + 599 * MS));
    }

    #[test]
    fn stamps_only_rise() {
        let mut replay = Replay::default();
        assert_eq!((replay.stamp(5), replay.stamp(5), replay.stamp(4), replay.stamp(9)), (5, 6, 7, 9));
        let before = now();
        assert!(now() >= before && before > 0);
    }
}
