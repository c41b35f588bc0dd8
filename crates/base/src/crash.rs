//! Places at which a command can be made to die, for the tests that show that it may.
//!
//! `MANYKUBE_CRASH_LOG=FILE` writes down every place that a command passes, one per line: that is how a
//! test knows what there is. `MANYKUBE_CRASH_AT=PLACE,…` ends the command at the first of these by
//! SIGKILL, as `MANYKUBE_CRASH_HOW` says: `self` (the default), `all` (what it started dies first) or `children` (only
//! what it started). `MANYKUBE_CRASH_DELAY_MS` lets it go on for a moment, into the middle of what follows.
//!
//! `MANYKUBE_CRASH_NEXT=N` ends it at the Nth place after or midway in something that the log does not name from runs
//! before: who runs a command until it is let through kills it at every Nth place, and need not know them.
//! `MANYKUBE_CRASH_OF=PREFIX,…` has only such places counted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};

struct Places {
    at: Vec<String>,
    next: Option<Mutex<Next>>,
    how: How,
    delay: Duration,
    log: Option<PathBuf>,
    passed: Mutex<BTreeMap<String, u32>>,
}

/// Counts places that are new.
struct Next {
    left: u32,
    known: BTreeSet<String>,
    of: Vec<String>,
}

impl Next {
    /// Is this the one?
    fn is(&mut self, name: &str) -> bool {
        let asked_for = self.of.is_empty() || self.of.iter().any(|prefix| name.starts_with(prefix));
        // What is before one thing is after another.
        if asked_for && !name.contains(":before") && self.known.insert(name.to_owned()) {
            self.left = self.left.saturating_sub(1);
            return self.left == 0;
        }
        false
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Alone,
    WithChildren,
    ChildrenOnly,
}

static PLACES: LazyLock<Places> = LazyLock::new(|| {
    let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let list = |name: &str| -> Vec<String> {
        set(name).iter().flat_map(|list| list.split(',')).map(str::to_owned).collect()
    };
    let log = set("MANYKUBE_CRASH_LOG").map(PathBuf::from);
    let known = || {
        let text = log.as_ref().and_then(|log| std::fs::read_to_string(log).ok()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    let next = set("MANYKUBE_CRASH_NEXT").and_then(|n| n.parse().ok());
    Places {
        at: list("MANYKUBE_CRASH_AT"),
        next: next.map(|left| Mutex::new(Next { left, known: known(), of: list("MANYKUBE_CRASH_OF") })),
        how: match set("MANYKUBE_CRASH_HOW").as_deref() {
            Some("all") => How::WithChildren,
            Some("children") => How::ChildrenOnly,
            _ => How::Alone,
        },
        delay: Duration::from_millis(
            set("MANYKUBE_CRASH_DELAY_MS").and_then(|t| t.parse().ok()).unwrap_or(0),
        ),
        log,
        passed: Mutex::default(),
    }
});

/// `what` is what is being done, `when` how far it is: `before`, `midway`, `after`. A place that is passed
/// again is another one: `#2`, `#3`, …
pub fn place(what: &str, when: &str) {
    let places = &*PLACES;
    if places.at.is_empty() && places.log.is_none() && places.next.is_none() {
        return;
    }
    let name = numbered(&mut places.passed.lock().unwrap_or_else(PoisonError::into_inner), what, when);
    let is_next = places
        .next
        .as_ref()
        .is_some_and(|next| next.lock().unwrap_or_else(PoisonError::into_inner).is(&name));
    if let Some(log) = &places.log
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(log)
    {
        let _ = writeln!(file, "{name}");
    }
    if !is_next && !places.at.contains(&name) {
        return;
    }
    if places.delay.is_zero() {
        die(places.how);
    } else {
        std::thread::spawn(|| {
            std::thread::sleep(places.delay);
            die(places.how);
        });
    }
}

fn numbered(passed: &mut BTreeMap<String, u32>, what: &str, when: &str) -> String {
    let name = format!("{what}:{when}");
    let count = passed.entry(name.clone()).and_modify(|n| *n += 1).or_insert(1);
    if *count == 1 { name } else { format!("{name}#{count}") }
}

fn die(how: How) {
    if how != How::Alone {
        for pid in descendants(getpid().as_raw()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    if how != How::ChildrenOnly {
        let _ = kill(getpid(), Signal::SIGKILL);
        // The signal may take a moment; nothing more is to happen until then.
        loop {
            std::thread::park();
        }
    }
}

/// Parents first, so that none of them sees a child die and reacts.
fn descendants(root: i32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let parents: Vec<(i32, i32)> = pids
        .filter_map(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_passed_again_is_another_one() {
        let mut passed = BTreeMap::new();
        let mut pass = |when: &str| numbered(&mut passed, "write/config.json", when);
        assert_eq!(pass("before"), "write/config.json:before");
        assert_eq!(pass("after"), "write/config.json:after");
        assert_eq!(pass("before"), "write/config.json:before#2");
    }

    #[test]
    fn every_second_place_that_is_new() {
        let known = ["boot/a:after".to_owned()].into();
        let mut next = Next { left: 2, known, of: vec!["boot/".into(), "write/".into()] };
        assert!(!next.is("boot/a:after"), "known");
        assert!(!next.is("boot/b:before") && !next.is("create/b:after"), "not counted");
        assert!(!next.is("boot/b:after"), "the first");
        assert!(!next.is("boot/b:after"), "known by now");
        assert!(next.is("write/config.json:midway"), "the second");
    }

    #[test]
    fn children_are_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let id = i32::try_from(child.id()).expect("a pid");
        assert!(descendants(getpid().as_raw()).contains(&id));
        child.kill().expect("end it");
        child.wait().expect("bury it");
    }
}
