//! A registry of a test's own: Debian's, on loopback of the lab's network.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::eventually;

/// Of the password, by `htpasswd -B`.
const HASH: &str = "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";
const GZIP: [u8; 2] = [0x1f, 0x8b];

pub struct Registry {
    dir: PathBuf,
    process: Child,
}

impl Registry {
    pub const HOST: &str = "localhost:5000";

    pub const USER: &str = "tester";
    pub const PASSWORD: &str = "secret";

    /// In the network namespace of this thread; `dir` keeps what it is given. It gives nothing to whom it does not know.
    pub fn guarded(dir: &Path) -> Registry {
        std::fs::create_dir_all(dir).expect("make the registry's directory");
        let users = dir.join("users");
        std::fs::write(&users, format!("{}:{HASH}\n", Registry::USER)).expect("write the registry's users");
        let file = dir.join("config.yml");
        let text = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\n\
             http: {{addr: '127.0.0.1:5000'}}\nlog: {{level: warn}}\nauth: {{htpasswd: {{realm: tests, path: {}}}}}\n",
            dir.join("data").display(),
            users.display()
        );
        std::fs::write(&file, text).expect("write the registry's configuration");
        let log = std::fs::File::create(dir.join("log")).expect("the registry's log");
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let started = command.spawn();
        let process = started.expect("docker-registry: it comes with Debian's package, see the Makefile");
        let registry = Registry { dir: dir.to_owned(), process };
        eventually("the registry", Duration::from_secs(20), || {
            std::net::TcpStream::connect("127.0.0.1:5000").map(drop).map_err(|e| e.to_string())
        });
        registry
    }

    /// Where its compressed layers lie, the smallest first.
    pub fn layers(&self) -> Vec<PathBuf> {
        let entries = |dir: PathBuf| std::fs::read_dir(dir).expect("the registry's data").flatten();
        let blobs = entries(self.dir.join("data/docker/registry/v2/blobs/sha256"));
        let files = blobs.flat_map(|dir| entries(dir.path())).map(|dir| dir.path().join("data"));
        let mut layers: Vec<(u64, PathBuf)> = files
            .filter(|file| {
                let mut begin = [0; 2];
                let mut opened = std::fs::File::open(file).expect("a blob");
                opened.read_exact(&mut begin).is_ok() && begin == GZIP
            })
            .map(|file| (file.metadata().expect("a blob").len(), file))
            .collect();
        layers.sort();
        layers.into_iter().map(|(_, file)| file).collect()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
