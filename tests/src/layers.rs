//! Container images in nodes, attacked by root in a node and by a pod that sees the node's files: no other node may see
//! anything of it.

use std::process::Command;

use crate::{Lab, Ran, archive};

/// Programs in layers of the node image, below a directory.
const PROGRAMS: [&str; 2] = ["*/snapshots/*/fs/coredns", "*/snapshots/*/fs/usr/local/bin/kube-apiserver"];
const LOADED: &str = "example.com/attacked:v1";

/// What is to be the same afterwards: in the cache, and in a node that is not attacked.
pub struct Layers<'a> {
    lab: &'a Lab,
    node: &'a str,
    cache: String,
    seen: String,
}

impl<'a> Layers<'a> {
    pub fn take(lab: &'a Lab, node: &'a str) -> Layers<'a> {
        let file = lab.path("attacked.tar");
        archive::oci(&file, LOADED, 1, archive::Fault::None);
        lab.manykube(&["image", "load", &file.to_string_lossy()]).ok();
        let layers = Layers { lab, node, cache: cache(), seen: seen(lab, "minikube", node, true) };
        assert!(layers.seen.contains("coredns") && layers.seen.contains("marker"), "{}", layers.seen);
        layers
    }

    /// By root in the node, who may also mount.
    pub fn attack(&self, node: &str) {
        let remount = "for how in remount,rw remount,bind,rw; do mount -o $how /usr/lib/manykube/images 2>/dev/null; done; ";
        let attribute = if cfg!(target_arch = "aarch64") { 5 } else { 188 };
        let label = format!("perl -e 'syscall({attribute}, $ARGV[0], \"user.attack\", \"x\", 1, 0)' $f; ");
        let line = remount.to_owned() + &attack("", &label);
        assert_attacked(&self.lab.manykube(&["ssh", "-n", node, "--", &line]).ok());
    }

    /// By a pod in which the node's root is `/node`.
    pub fn attack_from(&self, pod: &str) {
        assert_attacked(&self.lab.kubectl(&["exec", pod, "--", "sh", "-c", &attack("/node", "")]).ok());
    }

    #[track_caller]
    pub fn assert_unchanged(&self) {
        assert_eq!(cache(), self.cache, "a node changed the cache of node images");
        let now = seen(self.lab, "minikube", self.node, true);
        assert_eq!(now, self.seen, "a node changed another one's images");
    }

    /// In a node of another cluster, which has not got what was loaded.
    #[track_caller]
    pub fn assert_unchanged_in(&self, profile: &str) {
        let seen = seen(self.lab, profile, profile, false);
        assert!(self.seen.starts_with(&seen), "a node changed the images of another cluster: {seen}");
    }

    /// Of the node that was attacked, which need not be as it was.
    pub fn remove(self) {
        self.lab.manykube(&["image", "rm", LOADED]).ok();
    }
}

/// Every file that a node reaches of its images is written to, and given rights. That this succeeds is not
/// asked; how many files of the node image there were is printed.
fn attack(root: &str, also: &str) -> String {
    let store = format!("{root}/var/lib/containerd");
    let images = format!("{root}/usr/lib/manykube/images");
    let [one, other] = PROGRAMS;
    format!(
        "n=0; for f in {images}/{one} {images}/{other} {images}/*/blobs/sha256/* $(ls -d {store}/*/snapshots/*/fs/marker {store}/*/blobs/sha256/*); do \
         case $f in {images}/*) [ -e $f ] && n=$((n + 1));; esac; chmod u+s $f; chown 1 $f; touch $f; {also}(printf X | dd of=$f bs=1 seek=1 conv=notrunc); mv $f $f.moved && mv $f.moved $f; \
         done 2>/dev/null; echo $n"
    )
}

#[track_caller]
fn assert_attacked(ran: &Ran) {
    let files: usize = ran.stdout.trim().parse().unwrap_or_else(|_| panic!("no number: {ran:?}"));
    assert!(files > 2, "only {files} files of the node image were there to attack");
}

/// Modes and contents in a node, those of the node image first.
fn seen(lab: &Lab, profile: &str, node: &str, loaded: bool) -> String {
    let [one, other] = PROGRAMS;
    let own = if loaded { "look */snapshots/*/fs/marker" } else { "" };
    let line = format!(
        "cd /var/lib/containerd; look() {{ stat -Lc '%n %s %a %u' $*; sha256sum $*; }}; look {one} {other}; {own}"
    );
    lab.manykube(&["ssh", "-p", profile, "-n", node, "--", &line]).ok().stdout
}

/// All files of the node images: a write, a new mode and a new attribute change the last of these times.
fn cache() -> String {
    let images = Lab::cache().join("node-images");
    let mut find = Command::new("find");
    find.arg(images).args([
        "-path",
        "*/var/lib/containerd/*",
        "-type",
        "f",
        "-printf",
        "%p %s %m %U %T@ %C@\n",
    ]);
    let found = find.output().expect("find");
    assert!(found.status.success() && !found.stdout.is_empty(), "{found:?}");
    let mut lines: Vec<&str> = str::from_utf8(&found.stdout).expect("text").lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}
