//! What the user keeps in the home for every node: `files/` and `certs/`.

use std::path::Path;

use anyhow::{Context, Result};
use model::Home;
use model::node_spec::NodeFile;
use protocol::FileDigest;
use sha2::{Digest as _, Sha256};

use super::Runner;

/// Where a node keeps authorities, one file each.
const AUTHORITIES: &str = "/usr/share/ca-certificates";
/// Where it keeps those that it trusts.
const TRUSTED: &str = "/etc/ssl/certs";
/// Of Docker's client, and nobody to trust.
const OWN: [&str; 4] = ["ca.pem", "ca-key.pem", "cert.pem", "key.pem"];
/// minikube's measure of a file that cannot be a certificate.
const SHORTEST: u64 = 32;

/// Makes the node trust them: a link by name, one by the hash that OpenSSL looks for, and the bundle.
const TRUST: &str = r#"
cd /etc/ssl/certs
for f in "$@"; do
  n=$(basename "$f"); ln -sf "$f" "$n"
  h=$(openssl x509 -hash -noout -in "$f") || exit 1
  ln -sf "$n" "$h.0"
  grep -qxF "$(sed -n 2p "$f")" ca-certificates.crt || cat "$f" >> ca-certificates.crt
done
"#;

impl Runner<'_> {
    /// Before the node boots: whatever is there wins over what is ours.
    pub(super) async fn place_files(&self, machine: &str) -> Result<()> {
        let mut all = files(self.home())?;
        for file in authorities(self.home())? {
            // Also where programs written in Go look, as containerd, which does so once.
            let name = file.path.rsplit('/').next().unwrap_or_default();
            all.push(NodeFile::new(format!("{TRUSTED}/{name}"), file.mode, file.data.clone()));
            all.push(file);
        }
        self.driver.write(self.home(), machine, &all).await
    }

    /// What has changed since, into a node that runs. It costs nothing when there is nothing in the home.
    pub(in crate::core) async fn sync_files(&self, machine: &str) -> Result<()> {
        let (own, trusted) = (files(self.home())?, authorities(self.home())?);
        if own.is_empty() && trusted.is_empty() {
            return Ok(());
        }
        // One that is off, or is just ending, gets all of them when it boots.
        let Ok(node) = self.driver.node(machine).await else { return Ok(()) };
        let (new, trusts) = (changed(&node, own).await, changed(&node, trusted).await);
        let (Ok(new), Ok(trusts)) = (new, trusts) else { return Ok(()) };
        for some in [&new, &trusts].into_iter().filter(|some| !some.is_empty()) {
            node.put(some).await?;
        }
        if trusts.is_empty() { Ok(()) } else { self.trust(machine).await }
    }

    pub(super) async fn trust(&self, machine: &str) -> Result<()> {
        let paths: Vec<String> = authorities(self.home())?.into_iter().map(|f| f.path).collect();
        if paths.is_empty() {
            return Ok(());
        }
        let mut argv = ["sh", "-c", TRUST, "trust"].map(str::to_owned).to_vec();
        argv.extend(paths);
        self.in_node(machine, &argv).await.map(drop).context("trust the certificates of the home")
    }
}

/// Those that the node has not, or has otherwise.
async fn changed(node: &protocol::Node, mut files: Vec<NodeFile>) -> Result<Vec<NodeFile>> {
    let found = node.digests(files.iter().map(|f| f.path.clone()).collect()).await?;
    let mut found = found.into_iter();
    files.retain(|file| {
        let same = FileDigest { sha256: Sha256::digest(&file.data).into(), mode: file.mode };
        found.next().flatten() != Some(same)
    });
    Ok(files)
}

/// `files/<path>` is `/<path>` in every node.
fn files(home: &Home) -> Result<Vec<NodeFile>> {
    let root = home.root().join("files");
    let mut found = Vec::new();
    walk(&root, &root, &mut found)?;
    Ok(found)
}

fn walk(root: &Path, dir: &Path, found: &mut Vec<NodeFile>) -> Result<()> {
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry?.path();
        // A link is what it leads to.
        let metadata = fs_err::metadata(&path)?;
        if metadata.is_dir() {
            walk(root, &path, found)?;
        } else if metadata.is_file() {
            let below = path.strip_prefix(root)?.to_str().context("a name that is no text")?;
            let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777;
            found.push(NodeFile::new(format!("/{below}"), mode, fs_err::read(&path)?));
        }
    }
    Ok(())
}

fn authorities(home: &Home) -> Result<Vec<NodeFile>> {
    let mut found = Vec::new();
    for dir in [home.certs(), home.root().join("files/etc/ssl/certs")] {
        for entry in std::fs::read_dir(&dir).into_iter().flatten() {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(stem) = name.strip_suffix(".pem").or_else(|| name.strip_suffix(".crt")) else {
                continue;
            };
            let certificate =
                || std::fs::read(entry.path()).ok().filter(|d| d.starts_with(b"-----BEGIN CERT"));
            if OWN.contains(&&*name) || entry.metadata()?.len() < SHORTEST {
                continue;
            }
            if let Some(data) = certificate() {
                found.push(NodeFile::new(format!("{AUTHORITIES}/{stem}.pem"), 0o644, data));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_every_node() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::new(dir.path(), None);
        for (path, text) in [
            ("files/etc/mine", "x"),
            ("certs/corp.crt", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
            ("certs/ca.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
            ("certs/short.pem", "-----BEGIN CERT"),
            ("certs/notes.txt", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("make it");
            std::fs::write(path, text).expect("write it");
        }
        let paths = |files: Vec<NodeFile>| files.into_iter().map(|f| f.path).collect::<Vec<_>>();
        assert_eq!(paths(files(&home).expect("files")), ["/etc/mine"]);
        assert_eq!(paths(authorities(&home).expect("certificates")), ["/usr/share/ca-certificates/corp.pem"]);
        assert!(files(&Home::new("/nowhere", None)).expect("none").is_empty());
    }
}
