//! Lists: not too long, and nothing in them twice.

use std::collections::HashMap;

use super::Finding;
use crate::file::{ClusterFile, FileToPlace};
use crate::yaml::{Path, at};

const MOST: usize = 256;

/// What the file says about nodes: its own, then each group's.
macro_rules! each {
    ($file:ident, |$at:ident, $of:ident| $body:expr) => {{
        let mut found: Vec<Finding> = Vec::new();
        {
            let ($at, $of) = (Path::new(), $file);
            found.extend($body);
        }
        for (index, $of) in $file.nodes.iter().enumerate() {
            let $at: Path = at!["nodes", index];
            found.extend($body);
        }
        found
    }};
}

pub fn lengths(file: &ClusterFile) -> Vec<Finding> {
    let long = |at: &Path, key: &str, length: usize| {
        let message = || format!("{length} entries: more than the {MOST} that a list may have");
        (length > MOST).then(|| Finding::new([at.clone(), at![key]].concat(), message()))
    };
    let own =
        [("nodes", file.nodes.len()), ("manifests", file.manifests.len()), ("images", file.images.len())];
    let mut found: Vec<Finding> = own.iter().filter_map(|(key, n)| long(&Path::new(), key, *n)).collect();
    if !found.is_empty() {
        return found;
    }
    found.extend(each!(file, |at, of| {
        [
            ("labels", of.labels.len()),
            ("taints", of.taints.len()),
            ("mounts", of.mounts.len()),
            ("ports", of.ports.len()),
            ("files", of.files.len()),
            ("featureGates", of.feature_gates.len()),
        ]
        .into_iter()
        .filter_map(|(key, n)| long(&at, key, n))
        .collect::<Vec<_>>()
    }));
    found
}

pub fn twice(file: &ClusterFile) -> Vec<Finding> {
    each!(file, |at, of| {
        let taints: Vec<String> =
            of.taints.iter().map(|t| format!("the taint {}:{}", t.key, t.effect.as_str())).collect();
        let mounts: Vec<String> = of.mounts.iter().map(|m| format!("a mount at {}", m.node)).collect();
        let files: Vec<String> = of.files.iter().map(|f| format!("the file {}", f.path)).collect();
        [
            same(&[at.clone(), at!["taints"]].concat(), &taints, None),
            same(&[at.clone(), at!["mounts"]].concat(), &mounts, None),
            same(&[at.clone(), at!["files"]].concat(), &files, Some("path")),
            sources(&[at.clone(), at!["files"]].concat(), &of.files),
        ]
        .concat()
    })
}

fn same(list: &Path, names: &[String], within: Option<&str>) -> Vec<Finding> {
    let place =
        |index: usize| [list.clone(), at![index], within.map(|key| at![key]).unwrap_or_default()].concat();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut found = Vec::new();
    for (index, name) in names.iter().enumerate() {
        match seen.get(name.as_str()) {
            Some(first) => {
                found.push(Finding::new(place(index), format!("{name} is there twice")).with(place(*first)))
            }
            None => {
                seen.insert(name, index);
            }
        }
    }
    found
}

fn sources(list: &Path, files: &[FileToPlace]) -> Vec<Finding> {
    let message = "a file has either content or source";
    let wrong = |(index, file): (usize, &FileToPlace)| match (&file.content, &file.source) {
        (Some(_), Some(_)) => Some(Finding::new([list.clone(), at![index, "source"]].concat(), message)),
        (None, None) => Some(Finding::new([list.clone(), at![index]].concat(), message)),
        _ => None,
    };
    files.iter().enumerate().filter_map(wrong).collect()
}
