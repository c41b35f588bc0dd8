//! The words of the flags, read by the model's parsers.

use std::path::Path;

use model::node_config::{
    Component, Mount, Port, Taint, check_feature_gate, check_label_key, check_label_value,
};
use model::{Fault, Reason};

use super::remove::{PortName, TaintName};
use super::{ConfigFlags, Edit};
use crate::args::values::go_bool;
use crate::host;

/// Runs `each` over the words of a flag; what is wrong is said with the flag's name.
fn words(flag: &str, list: &[String], mut each: impl FnMut(&str) -> Result<(), String>) -> Result<(), Fault> {
    // An empty word is what an empty value, or a comma too many, leaves.
    list.iter()
        .filter(|word| !word.is_empty())
        .try_for_each(|word| each(word).map_err(|why| Fault::new(Reason::Usage, format!("--{flag}: {why}"))))
}

/// `name-`, as kubectl spells that something is to go.
fn gone(word: &str) -> Option<&str> {
    word.strip_suffix('-').filter(|name| !name.is_empty() && !name.contains('='))
}

pub fn parse(flags: &ConfigFlags) -> Result<Edit, Fault> {
    let mut edit = Edit::default();
    let Edit { set, remove, .. } = &mut edit;
    words("extra-config", &flags.extra_config, |word| {
        if let Some((component, flag)) = gone(word).and_then(|name| name.split_once('.')) {
            remove.extra_config.push((component.parse()?, flag.to_owned()));
            return Ok(());
        }
        let (component, flag, value) = Component::parse_option(word)?;
        set.extra_config.entry(component).or_default().insert(flag, value);
        Ok(())
    })?;
    words("feature-gates", &flags.feature_gates, |word| {
        if let Some(name) = gone(word) {
            remove.feature_gates.push(name.to_owned());
            return Ok(());
        }
        let want = || format!("{word:?} is not NAME=true or NAME=false");
        let (name, value) = word.split_once('=').ok_or_else(want)?;
        check_feature_gate(name)?;
        set.feature_gates.insert(name.to_owned(), go_bool(value).map_err(|_| want())?);
        Ok(())
    })?;
    words("labels", &flags.labels, |word| {
        if let Some(key) = gone(word) {
            remove.labels.push(key.to_owned());
            return Ok(());
        }
        let (key, value) = word.split_once('=').ok_or_else(|| format!("{word:?} is not KEY=VALUE"))?;
        check_label_key(key)?;
        check_label_value(value)?;
        set.labels.insert(key.to_owned(), value.to_owned());
        Ok(())
    })?;
    words("taints", &flags.taints, |word| {
        // The effect is the last part of a taint, and none ends in a dash.
        if let Some(name) = word.strip_suffix('-') {
            remove.taints.push(TaintName::parse(name)?);
            return Ok(());
        }
        let new: Taint = word.parse()?;
        set.taints.retain(|t| (&t.key, t.effect) != (&new.key, new.effect));
        set.taints.push(new);
        Ok(())
    })?;
    words("mount", &mounts(flags), |word| {
        if let Some(path) = gone(word).filter(|path| !path.contains(':')) {
            remove.mounts.push(path.trim_end_matches('/').to_owned());
            return Ok(());
        }
        let mount: Mount = word.parse()?;
        let new = Mount { host: absolute(&mount.host)?, ..mount };
        set.mounts.retain(|m| m.node != new.node);
        set.mounts.push(new);
        Ok(())
    })?;
    words("ports", &flags.ports, |word| {
        if let Some(name) = gone(word) {
            remove.ports.push(PortName::parse(name)?);
            return Ok(());
        }
        let new: Port = word.parse()?;
        set.ports.retain(|p| !p.clashes(&new));
        set.ports.push(new);
        Ok(())
    })?;
    for (binary, path) in &flags.binaries.0 {
        if path.is_empty() {
            remove.binaries.push(*binary);
            continue;
        }
        let full =
            absolute(path).map_err(|why| Fault::new(Reason::Usage, format!("--{binary}-binary: {why}")))?;
        set.binaries.insert(*binary, full);
    }
    set.base_image = flags.base_image.clone().filter(|image| !image.trim().is_empty());
    Ok(edit)
}

/// Does minikube's boolean say yes? The last word counts.
pub fn is_on(list: &[String]) -> bool {
    list.iter().rev().find_map(|word| go_bool(word).ok()).unwrap_or(false)
}

/// `--mount HOST:NODE`, and the one that `--mount-string` names unless `--mount=false` says otherwise.
fn mounts(flags: &ConfigFlags) -> Vec<String> {
    let (switches, mut list): (Vec<String>, Vec<String>) =
        flags.mount.iter().cloned().partition(|word| go_bool(word).is_ok());
    if switches.is_empty() || is_on(&switches) {
        list.extend(flags.mount_string.clone());
    }
    list
}

/// The node's configuration outlives the directory we are in.
fn absolute(path: &str) -> Result<String, String> {
    let home = path.strip_prefix("~/").and_then(|rest| Some(Path::new(&host::env("HOME")?).join(rest)));
    let full = match home {
        Some(home) => home,
        None => std::path::absolute(path).map_err(|e| format!("{path:?}: {e}"))?,
    };
    full.into_os_string().into_string().map_err(|_| format!("{path:?} lies below a name that is no text"))
}
