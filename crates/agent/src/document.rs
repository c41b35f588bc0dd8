//! A document that the host keeps in the node, followed while the node runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::sleep;

const LOOK: Duration = Duration::from_millis(200);

/// What makes two looks at a file different.
type Mark = (u64, i64, i64, u64);

/// `before` is what counts while there is none.
pub fn follow<T>(path: PathBuf, before: T) -> watch::Receiver<T>
where
    T: DeserializeOwned + Clone + PartialEq + 'static,
{
    // Looked at before it is read: a change in between is seen as one the next time.
    let mut seen = mark(&path);
    let (sender, receiver) = watch::channel(or_before(read(&path), before));
    spawn_local(async move {
        while !sender.is_closed() {
            sleep(LOOK).await;
            let now = mark(&path);
            // One that has vanished says nothing.
            if now == seen || now.is_none() {
                continue;
            }
            seen = now;
            let before = sender.borrow().clone();
            let document = or_before(read(&path), before);
            sender.send_if_modified(|known| std::mem::replace(known, document.clone()) != document);
        }
    });
    receiver
}

fn mark(path: &Path) -> Option<Mark> {
    let m = std::fs::metadata(path).ok()?;
    Some((m.ino(), m.mtime(), m.mtime_nsec(), m.len()))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs_err::read(path)?;
    serde_json::from_slice(&text).map(Some).with_context(|| format!("understand {}", path.display()))
}

/// A document that cannot be read is no reason to forget what the last one said.
fn or_before<T>(read: Result<Option<T>>, before: T) -> T {
    match read {
        Ok(Some(document)) => document,
        Ok(None) => before,
        Err(e) => {
            tracing::error!("{e:#}");
            before
        }
    }
}

#[cfg(test)]
mod tests {
    use model::node_spec::Peers;

    use super::*;

    #[test]
    fn damage_changes_nothing() {
        let before = Peers { nodes: vec!["192.168.49.2".parse().unwrap()], ..Peers::default() };
        let damaged = serde_json::from_str::<Option<Peers>>("{").map_err(Into::into);
        assert_eq!(or_before(damaged, before.clone()), before);
        assert_eq!(or_before(Ok(None), before.clone()), before);
    }
}
