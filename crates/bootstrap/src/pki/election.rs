//! What the agents of a cluster's control planes prove to each other who they are with.

use anyhow::Result;
use model::Home;
use model::node_spec::{ELECTION_PATH, ElectionKey, NodeFile};

use super::{issue, store};

/// The file for control planes, and for no other node. The key is made by the first command that needs it and
/// stays as long as the profile.
pub fn file(home: &Home, profile: &str) -> Result<NodeFile> {
    let _lock = store::lock(&home.root().join("locks/pki.lock"))?;
    let path = home.profile(profile).join("pki/election.key");
    let key = match store::read(&path)?.filter(|key| !key.is_empty()) {
        Some(key) => key,
        None => {
            // The text of a private key is a secret like any other.
            let (key, _) = issue::signing_key()?;
            store::write_secret(&path, &key)?;
            key
        }
    };
    Ok(NodeFile::new(ELECTION_PATH, 0o600, serde_json::to_vec(&ElectionKey { key })?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn one_key_for_each_cluster_and_only_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        let one = file(&home, "one").unwrap();
        assert_eq!((one.path.as_str(), one.mode), (ELECTION_PATH, 0o600));
        assert_eq!(file(&home, "one").unwrap().data, one.data);
        assert_ne!(file(&home, "two").unwrap().data, one.data);
        let key: ElectionKey = serde_json::from_slice(&one.data).unwrap();
        let path = home.profile("one").join("pki/election.key");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), key.key);
        assert!(
            key.key.len() > 100 && std::fs::metadata(&path).unwrap().permissions().mode() & 0o777 == 0o600
        );
    }
}
