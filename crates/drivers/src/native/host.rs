//! Settings of the whole host that machines need or that their kubelets change. The values found
//! are kept in the home and put back when the last machine of the home is gone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use model::Home;

/// What we raise when it is lower: (setting, wanted value).
const WANTED: [(&str, u64); 3] = [
    // Nodes reach the outside through the host.
    ("net/ipv4/ip_forward", 1),
    // A node needs about 20 inotify instances; the usual limit of 128 is two clusters.
    ("fs/inotify/max_user_instances", 8192),
    ("fs/inotify/max_user_watches", 524_288),
];

/// What every kubelet sets for the whole host, as it cannot know that it is not alone.
const KUBELET_SETS: [&str; 3] = ["kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory"];

fn file(home: &Home) -> PathBuf {
    home.root().join("host-settings.json")
}

fn path(setting: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(setting)
}

fn saved(home: &Home) -> BTreeMap<String, String> {
    std::fs::read(file(home)).ok().and_then(|t| serde_json::from_slice(&t).ok()).unwrap_or_default()
}

pub fn prepare(home: &Home) -> Result<()> {
    let mut saved = saved(home);
    let known = saved.len();
    for setting in WANTED.iter().map(|(s, _)| *s).chain(KUBELET_SETS) {
        if let (false, Ok(value)) = (saved.contains_key(setting), std::fs::read_to_string(path(setting))) {
            saved.insert(setting.to_owned(), value.trim().to_owned());
        }
    }
    // Before anything is changed, so that no crash loses the old values.
    if saved.len() != known {
        fs_err::write(file(home), serde_json::to_vec_pretty(&saved)?)?;
    }
    for (setting, wanted) in WANTED {
        let now: u64 =
            std::fs::read_to_string(path(setting)).ok().and_then(|v| v.trim().parse().ok()).unwrap_or(0);
        if now < wanted {
            fs_err::write(path(setting), wanted.to_string()).with_context(|| format!("raise {setting}"))?;
        }
    }
    Ok(())
}

fn other_bridges() -> bool {
    let links = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    links.into_iter().any(|l| l.path().join("bridge").is_dir())
}

pub fn restore(home: &Home) -> Result<()> {
    for (setting, value) in saved(home) {
        // Somebody else's bridge (Docker's, another home's) needs it now, whatever was before us.
        if setting == "net/ipv4/ip_forward" && other_bridges() {
            continue;
        }
        // A setting of another network namespace or kernel may be gone: then there is nothing to mend.
        let _ = std::fs::write(path(&setting), value);
    }
    match fs_err::remove_file(file(home)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.into()),
        _ => Ok(()),
    }
}
