//! kind's own files, `kind.x-k8s.io/v1alpha4`: read, turned into ours, and what they ask for in vain named.

mod convert;
mod types;

pub use convert::convert;
pub use types::KindFile;

use crate::yaml::{Path, Step};

pub const API_VERSION: &str = "kind.x-k8s.io/v1alpha4";

/// Where in kind's file the value stands that went to `path` of ours. Nodes keep their index.
pub fn source_path(path: &Path) -> Path {
    let renamed = |key: &str| {
        match key {
            "ports" => "extraPortMappings",
            "mounts" => "extraMounts",
            "baseImage" => "image",
            "patches" => "kubeadmConfigPatches",
            other => other,
        }
        .to_owned()
    };
    let keys: Vec<&str> = path
        .iter()
        .filter_map(|s| match s {
            Step::Key(key) => Some(key.as_str()),
            Step::Index(_) => None,
        })
        .collect();
    if keys == ["apiServer", "port"] {
        return vec![Step::from("networking"), Step::from("apiServerPort")];
    }
    path.iter()
        .map(|step| match step {
            Step::Key(key) => Step::Key(renamed(key)),
            Step::Index(index) => Step::Index(*index),
        })
        .collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
