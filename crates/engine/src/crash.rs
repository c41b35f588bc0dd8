//! Places at which a command can be made to die, for the tests that show that it may.
//!
//! `MANYKUBE_CRASH_LOG=FILE` writes down every place that a command passes, one per line: that is how a
//! test knows what there is. `MANYKUBE_CRASH_AT=PLACE,…` ends the command at the first of these by
//! SIGKILL, as `MANYKUBE_CRASH_HOW` says: `self` (the default), `all` (what it started dies first) or `children` (only
//! what it started). `MANYKUBE_CRASH_DELAY_MS` lets it go on for a moment, into the middle of what follows.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};

struct Places {
    at: Vec<String>,
    how: How,
    delay: Duration,
    log: Option<PathBuf>,
    passed: Mutex<BTreeMap<String, u32>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Alone,
    WithChildren,
    ChildrenOnly,
}

static PLACES: LazyLock<Places> = LazyLock::new(|| {
    let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    Places {
        at: set("MANYKUBE_CRASH_AT").iter().flat_map(|list| list.split(',')).map(str::to_owned).collect(),
        how: match set("MANYKUBE_CRASH_HOW").as_deref() {
            Some("all") => How::WithChildren,
            Some("children") => How::ChildrenOnly,
            _ => How::Alone,
        },
        delay: Duration::from_millis(
            set("MANYKUBE_CRASH_DELAY_MS").and_then(|t| t.parse().ok()).unwrap_or(0),
        ),
        log: set("MANYKUBE_CRASH_LOG").map(PathBuf::from),
        passed: Mutex::default(),
    }
});

/// `what` is what is being done, `when` how far it is: `before`, `midway`, `after`. A place that is passed
/// again is another one: `#2`, `#3`, …
pub fn place(what: &str, when: &str) {
    let places = &*PLACES;
    if places.at.is_empty() && places.log.is_none() {
        return;
    }
    let name = numbered(&mut places.passed.lock().unwrap_or_else(PoisonError::into_inner), what, when);
    if let Some(log) = &places.log
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(log)
    {
        let _ = writeln!(file, "{name}");
    }
    if !places.at.contains(&name) {
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
    fn children_are_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let id = i32::try_from(child.id()).expect("a pid");
        assert!(descendants(getpid().as_raw()).contains(&id));
        child.kill().expect("end it");
        child.wait().expect("bury it");
    }
}
