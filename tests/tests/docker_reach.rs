//! Engines that are not used by root on their own host.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use system_tests::{Engine, Lab, User, eventually};

const NOT_HEALTHY: i32 = 55;
const HOME_PERMISSION: i32 = 37;
const NOT_THERE: i32 = 16;

/// One whom the engine's socket lets in needs nothing else.
#[test]
fn a_user_without_root() {
    let lab = Lab::open();
    let user = lab.user();
    let refused = user.manykube(&["start", "--driver=docker"]).exit(NOT_HEALTHY);
    assert!(refused.stderr.contains("docker $USER"), "{}", refused.stderr);
    user.may_use_the_engine();
    a_home_of_root(&lab, &user);

    let started = user.manykube(&["start"]).ok();
    println!("start: {:.1} s", started.elapsed.as_secs_f32());
    assert!(started.stdout.contains("docker driver"), "{}", started.stdout);
    let kubectl = kubectl(&lab);
    let nodes = user.run(&kubectl, &["get", "nodes", "--no-headers"]).ok();
    assert!(nodes.stdout.contains(" Ready "), "{}", nodes.stdout);
    let status = user.manykube(&["status"]).ok();
    println!("status: {:.2} s", status.elapsed.as_secs_f32());
    assert_eq!(user.manykube(&["ssh", "--", "hostname"]).ok().text(), "minikube");
    user.manykube(&["ssh", "--", "exit 7"]).exit(1);
    let key = user.manykube(&["ssh-key"]).ok();
    user.run(Path::new("cat"), &[key.text()]).ok();
    is_the_users(&user);

    user.manykube(&["stop"]).ok();
    user.manykube(&["start"]).ok();
    user.run(&kubectl, &["get", "node", "minikube"]).ok();
    // Whose home it is stays whose home it is, also when root is at work in it.
    let by_root = lab.command(&["stop"]).env("MANYKUBE_HOME", user.path(".manykube")).status();
    assert!(by_root.expect("run manykube").success());
    is_the_users(&user);
    user.manykube(&["delete", "--all", "--purge"]).ok();
    assert!(!user.path(".manykube").exists());
    assert_eq!(engine(&lab).docker(&["ps", "--all", "--quiet"]).ok().text(), "");
}

fn engine(lab: &Lab) -> &Engine {
    lab.engine.as_ref().expect("the lab has one")
}

fn a_home_of_root(lab: &Lab, user: &User<'_>) {
    lab.manykube(&["config", "set", "memory", "3g"]).ok();
    let refused = user.command(&["start"]).env("MANYKUBE_HOME", lab.home()).output().expect("run manykube");
    assert_eq!(refused.status.code(), Some(HOME_PERMISSION), "{refused:?}");
}

/// The client of the cluster's version, where the user can run it.
fn kubectl(lab: &Lab) -> PathBuf {
    let images = std::fs::read_dir(Lab::cache().join("node-images")).expect("node images").flatten();
    let found = images.map(|image| image.path().join("rootfs/usr/bin/kubectl")).find(|p| p.exists());
    let copy = lab.path("kubectl");
    std::fs::copy(found.expect("a kubectl"), &copy).expect("copy kubectl");
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    copy
}

/// All that a user looks at, edits or removes.
fn is_the_users(user: &User<'_>) {
    let owner = std::fs::metadata(user.path("")).expect("the user's home").uid();
    let names = [
        ".kube",
        ".kube/config",
        ".manykube",
        "cache",
        "machines",
        "profiles/minikube",
        "ca.crt",
        "ca.key",
        "bin",
        "profiles/minikube/config.json",
        "profiles/minikube/client.key",
        "machines/minikube/id_rsa",
        "logs/audit.json",
        "logs/lastStart.txt",
        "locks",
        "locks/minikube.lock",
    ];
    for name in names {
        let at = if name.starts_with('.') { user.path(name) } else { user.path(".manykube").join(name) };
        let found = std::fs::metadata(&at).unwrap_or_else(|e| panic!("{}: {e}", at.display()));
        assert_eq!(found.uid(), owner, "{}", at.display());
    }
}

/// An engine whose networks and files are not ours. Its API server is reached by a port of ours, which belongs to no
/// control plane.
#[test]
fn an_engine_elsewhere() {
    let mut lab = Lab::with_native();
    lab.engine = Some(Engine::far(&lab.path("e"), &lab.home()));
    let lab = lab;
    let started = lab.manykube(&["start", "--ha", "--driver=docker"]).ok();
    println!("start of 3 control planes, image brought: {:.1} s", started.elapsed.as_secs_f32());
    let servers = lab.kubectl(&["config", "view", "-o", "jsonpath={.clusters[*].cluster.server}"]).ok();
    assert!(servers.stdout.starts_with("https://127.0.0.1:"), "{}", servers.stdout);
    let nodes = lab.kubectl(&["get", "nodes", "--no-headers"]).ok();
    println!("kubectl get nodes: {:.2} s", nodes.elapsed.as_secs_f32());
    assert_eq!(nodes.stdout.lines().filter(|l| l.contains(" Ready ")).count(), 3, "{}", nodes.stdout);
    assert_eq!(lab.manykube(&["ssh", "-n", "m02", "--", "hostname"]).ok().text(), "minikube-m02");

    engine(&lab).docker(&["kill", "minikube"]).ok();
    let killed = std::time::Instant::now();
    eventually("the API without the primary", Duration::from_secs(30), || {
        let asked = lab.kubectl(&["get", "--raw=/readyz"]);
        if asked.code == 0 { Ok(()) } else { Err(asked.stderr) }
    });
    println!("the API answered {:.1} s after its primary was killed", killed.elapsed().as_secs_f32());
    lab.manykube(&["start"]).ok();
    let refused = lab.manykube(&["cp", "/etc/hostname", "/tmp/x"]).exit(NOT_THERE);
    assert!(refused.stderr.contains("does not see the files"), "{}", refused.stderr);

    lab.manykube(&["delete", "--all", "--purge"]).ok();
    assert_eq!(engine(&lab).docker(&["ps", "--all", "--quiet"]).ok().text(), "");
    assert_eq!(engine(&lab).docker(&["volume", "ls", "--quiet"]).ok().text(), "");
    assert!(!std::fs::read_to_string(lab.kubeconfig()).expect("a kubeconfig").contains("minikube"));
}
