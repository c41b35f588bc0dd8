//! What somebody else has, and what the engine has no room for: one line each, and nothing of others is touched.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use system_tests::{Engine, Lab, Ran};

use super::{NOT_HEALTHY, docker, nothing_is_left};

const GUEST_START: i32 = 80;
const SUBNET_CONFLICT: i32 = 70;
const STORAGE: i32 = 26;
const NOBODY: u32 = 65534;

/// Where the engine keeps its data when there is little room.
const SMALL: &str = "64m";

#[track_caller]
fn refuses(lab: &Lab, args: &[&str], code: i32, says: &str) -> Ran {
    let ran = lab.manykube(args).exit(code);
    let reason: Vec<&str> = ran.stderr.lines().filter(|l| l.contains("Exiting due to")).collect();
    assert!(reason.len() == 1 && reason[0].contains(says), "{args:?}: {}", ran.stderr);
    assert!(ran.stderr.contains("Suggestion: "), "{args:?}: {}", ran.stderr);
    ran
}

/// Neither is touched, and nothing of the cluster is made.
pub fn before_the_first_start(lab: &Lab) {
    let start = ["start", "-p", "taken", "--wait=none"];
    docker(lab, &["network", "create", "taken"]);
    refuses(lab, &start, SUBNET_CONFLICT, "a network \"taken\" that is not this cluster's");
    lab.manykube(&["delete", "-p", "taken"]).ok();
    docker(lab, &["network", "inspect", "taken"]);
    docker(lab, &["network", "rm", "taken"]);

    // A subnet that is asked for is had or not; else a free one is chosen.
    docker(lab, &["network", "create", "--subnet=192.168.49.0/24", "foreign"]);
    refuses(
        lab,
        &[&start[..], &["--subnet=192.168.49.0/24"]].concat(),
        SUBNET_CONFLICT,
        "192.168.49.0/24 is in use",
    );
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let port = listener.local_addr().expect("an address").port();
    let asked = format!("--ports=127.0.0.1:{port}:30080");
    let says = format!("The port 127.0.0.1:{port} of this host, which is to lead to taken, is in use");
    refuses(lab, &[&start[..], &[&asked]].concat(), GUEST_START, &says);
    assert_eq!(lab.manykube(&["node", "list", "-p", "taken"]).ok().stdout, "taken\t192.168.58.2\n");
    lab.manykube(&["delete", "-p", "taken"]).ok();
    docker(lab, &["network", "rm", "foreign"]);
    nothing_is_left(lab);
}

/// The engine was emptied, and others were quicker: a network with our subnet, one with our name, a container with
/// the name of a node.
pub fn at_a_later_start(lab: &Lab) {
    docker(lab, &["network", "create", "--subnet=192.168.49.0/24", "foreign"]);
    refuses(
        lab,
        &["start"],
        SUBNET_CONFLICT,
        "192.168.49.0/24 is in use: the engine's network \"foreign\" has it",
    );
    docker(lab, &["network", "rm", "foreign"]);
    docker(lab, &["network", "create", "minikube"]);
    refuses(lab, &["start"], SUBNET_CONFLICT, "a network \"minikube\" that is not this cluster's");
    docker(lab, &["network", "rm", "minikube"]);
    docker(lab, &["import", &empty(lab), "somebodys:v1"]);
    docker(lab, &["create", "--name", "minikube-m03", "somebodys:v1", "/x"]);
    refuses(lab, &["start"], GUEST_START, "a container \"minikube-m03\" that is not manykube's");
    docker(lab, &["rm", "minikube-m03"]);
}

/// An archive of nothing.
fn empty(lab: &Lab) -> String {
    let file = lab.path("empty.tar");
    std::fs::write(&file, [0; 1024]).expect("write an archive");
    file.to_string_lossy().into_owned()
}

/// A container of somebody else's that has a node's address, and keeps the network in use.
pub fn a_guest_in_the_network(lab: &Lab) {
    lab.manykube(&["node", "stop", "m03"]).ok();
    let image = docker(lab, &["images", "--quiet", "manykube/node"]);
    let sleeps = ["--entrypoint=/bin/sleep", image.text(), "1000"];
    docker(
        lab,
        &[&["run", "--detach", "--name=guest", "--network=minikube", "--ip=192.168.49.4"], &sleeps[..]]
            .concat(),
    );
    let says = "The address 192.168.49.4 of minikube-m03 is in use";
    refuses(lab, &["node", "start", "m03"], GUEST_START, says);
    refuses(lab, &["delete"], GUEST_START, "containers that are not this cluster's: guest");
    docker(lab, &["rm", "--force", "guest"]);
}

/// Where its data are; nothing is left of what did not fit.
#[test]
fn an_engine_without_room() {
    let mut lab = Lab::with_native();
    let small = lab.path("e");
    std::fs::create_dir(&small).expect("a directory");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", &format!("size={SMALL}"), "small"]).arg(&small);
    assert!(mount.status().expect("run mount").success());
    lab.engine = Some(Engine::start(&small));
    let says = "There is no space left where the Docker engine keeps its data";
    refuses(&lab, &["start", "--wait=none"], STORAGE, says);
    assert_eq!(docker(&lab, &["images", "--quiet"]).text(), "");
    lab.manykube(&["delete"]).ok();
    nothing_is_left(&lab);
    lab.engine = None;
    assert!(Command::new("umount").arg(&small).status().expect("run umount").success());
}

/// The program is put where everybody may run it; the socket is root's alone.
#[test]
fn a_socket_of_others() {
    let open = tempfile::tempdir().expect("a directory");
    let at = |name: &str| open.path().join(name);
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
    };
    std::fs::copy(Lab::program(), at("manykube")).expect("copy the program");
    let _socket = UnixListener::bind(at("docker.sock")).expect("a socket");
    std::fs::create_dir(at("home")).expect("a home");
    std::os::unix::fs::chown(at("home"), Some(NOBODY), Some(NOBODY)).expect("give it away");
    mode(open.path(), 0o755);
    mode(&at("docker.sock"), 0o600);
    let mut command = Command::new(at("manykube"));
    command.args(["start", "--driver=docker"]).env("MANYKUBE_HOME", at("home")).env("HOME", at("home"));
    command.env("DOCKER_HOST", format!("unix://{}", at("docker.sock").display())).uid(NOBODY).gid(NOBODY);
    let output = command.output().expect("run manykube");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("The Docker engine cannot be reached: Permission denied"), "{said}");
    assert_eq!(output.status.code(), Some(NOT_HEALTHY));
}
