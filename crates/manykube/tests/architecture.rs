//! What the crates may do, of which the compiler knows nothing.

use std::path::{Path, PathBuf};

/// Crates that may enter a node or open its disk.
const INSIDERS: [&str; 2] = ["drivers", "agent"];
/// Into the namespaces of a node, its root, or the directory that is its disk.
const WAYS_IN: [&str; 4] = ["setns(", "}/root", "machine::Paths", ".join(\"merged\")"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates").to_owned()
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn only_drivers_and_agents_reach_into_nodes() {
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(crates()).expect("the crates").flatten() {
        if INSIDERS.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let mut files = Vec::new();
        sources(&entry.path().join("src"), &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a source");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let found = code.lines().filter(|line| WAYS_IN.iter().any(|way| line.contains(way)));
            wrong.extend(found.map(|line| format!("{}: {}", file.display(), line.trim())));
        }
    }
    assert!(wrong.is_empty(), "only {INSIDERS:?} may do this:\n{}", wrong.join("\n"));
}
