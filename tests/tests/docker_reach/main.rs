//! Engines that are not used by root on their own host.

mod elsewhere;
mod files;
mod ours;
mod page;
mod ways;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use system_tests::{Engine, Lab, User};

const NOT_HEALTHY: i32 = 55;
const HOME_PERMISSION: i32 = 37;

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
        "profiles/minikube/ca.crt",
        "profiles/minikube/ca.key",
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
