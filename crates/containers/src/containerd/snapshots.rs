//! Unpacked layers.

use super::client::{Client, Error};
use super::messages::{
    Applied, Apply, CommitSnapshot, Descriptor as Wire, Empty, Mount, Mounts, NewSnapshot, SnapshotKey,
};
use crate::oci::Descriptor;

/// The one that the kubelet's side of containerd uses in a node.
pub const SNAPSHOTTER: &str = "overlayfs";

impl Client {
    pub async fn has_snapshot(&self, name: &str) -> Result<bool, Error> {
        let message = SnapshotKey { snapshotter: SNAPSHOTTER.into(), key: name.into() };
        match self.call::<_, Empty>("/containerd.services.snapshots.v1.Snapshots/Stat", message).await {
            Ok(_) => Ok(true),
            Err(e) if e.is_not_found() => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// A layer that is to be filled, on top of another one.
    pub async fn prepare(&self, key: &str, parent: &str) -> Result<Vec<Mount>, Error> {
        let message = NewSnapshot { snapshotter: SNAPSHOTTER.into(), key: key.into(), parent: parent.into() };
        let mounts: Mounts =
            self.call("/containerd.services.snapshots.v1.Snapshots/Prepare", message).await?;
        Ok(mounts.mounts)
    }

    pub async fn commit(&self, name: &str, key: &str) -> Result<(), Error> {
        let message = CommitSnapshot { snapshotter: SNAPSHOTTER.into(), name: name.into(), key: key.into() };
        let done = self.call::<_, Empty>("/containerd.services.snapshots.v1.Snapshots/Commit", message).await;
        match done {
            // Somebody else was faster.
            Err(e) if e.is_already_there() => self.remove_snapshot(key).await,
            other => other.map(drop),
        }
    }

    pub async fn remove_snapshot(&self, key: &str) -> Result<(), Error> {
        let message = SnapshotKey { snapshotter: SNAPSHOTTER.into(), key: key.into() };
        self.call::<_, Empty>("/containerd.services.snapshots.v1.Snapshots/Remove", message).await.map(drop)
    }

    /// Unpacks a blob; the digest of what came out of it.
    pub async fn apply(&self, layer: &Descriptor, mounts: Vec<Mount>) -> Result<String, Error> {
        let message = Apply { diff: Some(Wire::from(layer)), mounts };
        let answer: Applied = self.call("/containerd.services.diff.v1.Diff/Apply", message).await?;
        Ok(answer.applied.map(|d| d.digest).unwrap_or_default())
    }
}
