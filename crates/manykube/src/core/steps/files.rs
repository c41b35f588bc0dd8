//! What the user keeps in the home for every node: `files/` and `certs/`.

use std::path::Path;

use anyhow::{Context, Result};
use model::Home;
use model::node_spec::NodeFile;

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
    pub(super) fn place_files(&self, machine: &str) -> Result<()> {
        let mut all = files(self.home())?;
        for file in authorities(self.home())? {
            // Also where programs written in Go look, as containerd, which does so once.
            let name = file.path.rsplit('/').next().unwrap_or_default();
            all.push(NodeFile::new(format!("{TRUSTED}/{name}"), file.mode, file.data.clone()));
            all.push(file);
        }
        all.iter().try_for_each(|file| self.place(machine, file))
    }

    fn place(&self, machine: &str, file: &NodeFile) -> Result<()> {
        drivers::machine::write_file(self.home(), machine, file)
            .with_context(|| format!("copy {} into {machine}", file.path))
    }

    /// What has changed since, into a node that runs. It costs nothing when there is nothing in the home.
    pub(in crate::core) async fn sync_files(&self, machine: &str) -> Result<()> {
        let Some(root) = drivers::machine::root_of(self.home(), machine) else { return Ok(()) };
        let mut trusted = true;
        for (all, trusts) in [(files(self.home())?, false), (authorities(self.home())?, true)] {
            for file in all.iter().filter(|file| !is_same(&root, file)) {
                match self.place(machine, file) {
                    // It is dying; when it boots, it gets all of them.
                    Err(_) if !root.is_dir() => return Ok(()),
                    placed => placed?,
                }
                trusted &= !trusts;
            }
        }
        if trusted { Ok(()) } else { self.trust(machine).await }
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

fn is_same(root: &Path, file: &NodeFile) -> bool {
    let path = root.join(file.path.trim_start_matches('/'));
    let Ok(metadata) = std::fs::symlink_metadata(&path) else { return false };
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777;
    metadata.is_file() && mode == file.mode && std::fs::read(&path).is_ok_and(|data| data == file.data)
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
