use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use tempfile::TempDir;

use crate::{Engine, Podman, Ran};

/// A home, a kubeconfig and a network namespace for one test. What the test leaves is removed, also
/// when it fails.
pub struct Lab {
    /// What the clusters are containers of, where they are. Ended after they are removed, before the directory is.
    pub engine: Option<Engine>,
    /// The same of podman's.
    pub podman: Option<Podman>,
    dir: TempDir,
}

impl Lab {
    /// With the driver that LAB_DRIVER names: `make test` runs some tests a second time.
    pub fn new() -> Lab {
        if Lab::is_on_docker() { Lab::with_docker() } else { Lab::with_native() }
    }

    pub fn is_on_docker() -> bool {
        match std::env::var("LAB_DRIVER").as_deref() {
            Err(_) | Ok("native") => false,
            Ok("docker") => true,
            Ok(other) => panic!("LAB_DRIVER={other}: native or docker"),
        }
    }

    /// Moves this thread, and all that it starts, into a fresh network namespace.
    pub fn with_native() -> Lab {
        assert!(nix::unistd::geteuid().is_root(), "system tests make namespaces: run them as root");
        unshare(CloneFlags::CLONE_NEWNET).expect("make a network namespace");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        runtime.block_on(async {
            let net = netlink::Netlink::open().expect("netlink");
            let lo = net.link("lo").await.expect("lo").expect("a namespace has lo");
            net.up(lo.index).await.expect("switch lo on");
        });
        let dir = TempDir::with_prefix_in("lab-", base()).expect("make a home");
        Lab { dir, engine: None, podman: None }
    }

    /// The same with a Docker engine in that namespace: clusters are its containers unless they are to be others.
    pub fn with_docker() -> Lab {
        let mut lab = Lab::with_native();
        lab.engine = Some(Engine::shared(&base().join("engine")));
        lab
    }

    /// Where on the disk all of it lies.
    pub fn places(&self) -> Vec<PathBuf> {
        let engine = self.engine.as_ref().map(|engine| engine.dir().to_owned());
        engine.into_iter().chain([self.dir.path().to_owned()]).collect()
    }

    /// For what cannot be so with containers: says that it is left out, and why.
    pub fn skips_on_docker(&self, what: &str, why: &str) -> bool {
        let skips = self.engine.is_some();
        if skips {
            println!("left out on docker: {what}: {why}");
        }
        skips
    }

    /// That with an engine, where users other than root may pass, which they may not in root's own home.
    pub fn open() -> Lab {
        let mut lab = Lab::with_docker();
        lab.dir = TempDir::with_prefix_in("lab-", "/var/tmp").expect("make a home");
        std::fs::set_permissions(lab.dir.path(), Permissions::from_mode(0o711)).expect("chmod");
        lab
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    /// Where the docker command keeps logins.
    pub fn docker_config(&self) -> PathBuf {
        self.path("docker-config")
    }

    /// A place for files of the test.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn program() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/manykube")
    }

    /// That of the user: images are built once.
    pub fn cache() -> PathBuf {
        let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".manykube/cache");
        std::env::var_os("MANYKUBE_CACHE").map_or_else(home, PathBuf::from)
    }

    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        // Whether this host has one is not to matter.
        let nowhere = || "unix:///nowhere/docker.sock".to_owned();
        let engine = self.engine.as_ref().map_or_else(|| vec![("DOCKER_HOST", nowhere())], Engine::variables);
        let mut command = Command::new(Self::program());
        command
            .args(args)
            .env("MANYKUBE_HOME", self.home())
            .env("MANYKUBE_CACHE", Self::cache())
            .env("KUBECONFIG", self.kubeconfig())
            .envs(engine)
            // Nor who is logged in where.
            .env("DOCKER_CONFIG", self.docker_config())
            .env("CONTAINER_HOST", self.podman.as_ref().map_or_else(nowhere, Podman::host))
            .stdin(Stdio::null());
        if !self.has_active_profile() {
            // The name that the tests use, and minikube.
            command.env("MANYKUBE_PROFILE", "minikube");
        }
        if self.engine.is_some() {
            // What is chosen by itself is another one when something is wrong with the engine.
            command.env("MANYKUBE_DRIVER", "docker");
        }
        command
    }

    /// Set by `profile NAME`.
    fn has_active_profile(&self) -> bool {
        let settings = std::fs::read_to_string(self.home().join("config/config.json"));
        settings.is_ok_and(|text| text.contains("\"profile\""))
    }

    pub fn manykube(&self, args: &[&str]) -> Ran {
        let began = Instant::now();
        let output = self.command(args).output().expect("run manykube");
        let ran = Ran::new(format!("manykube {}", args.join(" ")), output, began.elapsed());
        took(&ran.command, ran.elapsed);
        ran
    }

    /// The real kubectl, by way of `manykube kubectl`.
    pub fn kubectl(&self, args: &[&str]) -> Ran {
        self.manykube(&[&["kubectl", "--"], args].concat())
    }

    /// The name of the small image that lies in every node.
    pub fn busybox(&self) -> String {
        let images = self.manykube(&["ssh", "--", "ctr", "-n", "k8s.io", "images", "ls", "-q"]).ok();
        let found = images.stdout.lines().find(|i| i.contains("/busybox:")).map(|i| i.trim().to_owned());
        found.expect("a busybox image in the node")
    }

    pub fn apply(&self, manifest: &str) {
        let file = self.path("manifest.yaml");
        std::fs::write(&file, manifest).expect("write a manifest");
        self.kubectl(&["apply", "-f", &file.to_string_lossy()]).ok();
    }

    /// The cluster is as asked for. On a busy machine a probe may fail for a moment.
    #[track_caller]
    pub fn nothing_to_do(&self) {
        self.nothing_to_do_for(&["start"]);
    }

    /// The same of another way to start it.
    #[track_caller]
    pub fn nothing_to_do_for(&self, start: &[&str]) {
        eventually("an empty plan", Duration::from_secs(20), || {
            let plan = self.manykube(&[start, &["--dry-run"]].concat()).ok().stdout;
            if plan.contains("nothing to do") { Ok(()) } else { Err(plan) }
        });
    }

    pub fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start manykube")
    }
}

/// On the disk of the work tree: images are linked, not copied, within one file system.
fn base() -> PathBuf {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/system-tests");
    std::fs::create_dir_all(&base).expect("make the directory of the tests");
    base.canonicalize().expect("the directory of the tests")
}

impl Default for Lab {
    fn default() -> Lab {
        Lab::new()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let logs = self.manykube(&["logs", "-n", "40"]);
            eprintln!("--- logs of the failed test\n{}{}", logs.stdout, logs.stderr);
        }
        let deleted = self.manykube(&["delete", "--all"]);
        if deleted.code != 0 && !std::thread::panicking() {
            panic!("the lab could not be cleaned up: {}", deleted.stderr);
        }
        if let Some(engine) = self.engine.as_ref().filter(|_| !std::thread::panicking()) {
            assert_eq!(engine.left(), "", "left in the engine");
        }
    }
}

/// Asks until the answer is there, ten times a second at most, and no longer than it rests: what is waited for needs the
/// processors, too. Panics with the last answer after `limit`.
#[track_caller]
pub fn eventually<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        let asked = Instant::now();
        match ask() {
            Ok(value) => {
                took(what, began.elapsed());
                return value;
            }
            Err(why) if began.elapsed() > limit => panic!("{what}: not within {limit:?}: {why}"),
            Err(_) => std::thread::sleep(asked.elapsed().max(Duration::from_millis(100))),
        }
    }
}

/// LAB_TIMES=1 tells what a test waits for.
fn took(what: &str, time: Duration) {
    if time > Duration::from_secs(1) && std::env::var_os("LAB_TIMES").is_some() {
        println!("  {:5.1} s {what}", time.as_secs_f32());
    }
}
