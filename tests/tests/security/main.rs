//! What docs/security.md promises: who can reach what, who can read what, and what never leaves the host.

mod attacks;
mod host;
mod identities;
mod leaks;
mod pods;
mod router;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use system_tests::scan::{from_bridge, open_ports};
use system_tests::{Lab, Uplink, eventually};

const CONTROL_PLANE: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 2);
const WORKER: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 3);
const VIP: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 254);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 1);

#[test]
fn what_the_document_promises() {
    let lab = Lab::new();
    let home = lab.home();
    std::fs::create_dir_all(&home).expect("a home");
    mode_is(&home, 0o777);
    let refused = lab.manykube(&["start"]).exit(37);
    assert!(
        refused.stderr.contains("HOST_HOME_PERMISSION") && refused.stderr.contains("chmod"),
        "{}",
        refused.stderr
    );
    mode_is(&home, 0o755);
    lab.manykube(&["start", "--listen-address=0.0.0.0"]).exit(16);
    assert!(!home.join("profiles").exists(), "a refused start made something");

    let uplink = Uplink::new();
    host::forwards_nothing();
    host::manykube_with_a_leak(&lab, &["start", "--nodes=2"]).ok();
    host::nothing_that_was_open_is_in_a_node(&lab);
    host::forwards_for_machines_only();
    leaks::no_private_packet_leaves_the_host(&lab, &uplink);
    let bridge = bridge();
    router::is_not_believed(&lab, &bridge);
    ports(&lab, &bridge);
    unreachable_from_outside(&uplink);
    identities::strangers_are_refused();
    files(&lab);
    nodes_see_nothing_of_the_host(&lab);
    secrets(&lab);
    pods::an_ordinary_pod(&lab);
    let layers = attacks::leave_the_host_as_it_is(&lab);
    ports_of_docker(&lab, &bridge);
    identities::another_cluster(&lab, "minikube", &layers);
    lab.manykube(&["delete"]).ok();
    host::is_as_before();
}

fn bridge() -> String {
    let text = run(Command::new("ip").args(["-o", "link", "show", "type", "bridge"]));
    text.split(": ").nth(1).expect("a bridge").to_owned()
}

fn mode_is(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
}

/// The ports of one kind of machine in the document's table.
fn listed(machine: &str) -> BTreeSet<u16> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/security.md");
    let text = std::fs::read_to_string(document).expect("docs/security.md");
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["", who, port, "TCP", ..] if who.split(", ").any(|w| w == machine) => port.parse().ok(),
            _ => None,
        }
    });
    let ports: BTreeSet<u16> = rows.collect();
    assert!(!ports.is_empty() || machine == "host", "the document lists no ports of a {machine}");
    ports
}

fn ports(lab: &Lab, bridge: &str) {
    let wanted = ["control plane", "worker", "virtual address", "host"].map(listed);
    // kube-proxy of the worker may be the last to listen.
    eventually("what docs/security.md lists listens, and nothing else", Duration::from_secs(60), || {
        let seen = from_bridge(bridge, Ipv4Addr::new(192, 168, 49, 200), || {
            [CONTROL_PLANE, WORKER, VIP, GATEWAY].map(open_ports)
        });
        if seen == wanted { Ok(()) } else { Err(format!("{seen:?}, not {wanted:?}")) }
    });

    // The host's other addresses: nobody listens there for us.
    for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(198, 51, 100, 2)] {
        assert_eq!(open_ports(address), listed("host"), "{address}");
    }
    drop(lab.manykube(&["status"]).ok());
}

/// One more, from now on.
fn ports_of_docker(lab: &Lab, bridge: &str) {
    lab.manykube(&["docker-env", "--shell", "bash"]).ok();
    let seen = from_bridge(bridge, Ipv4Addr::new(192, 168, 49, 200), || open_ports(CONTROL_PLANE));
    let wanted: BTreeSet<u16> = &listed("control plane") | &listed("node with docker-env");
    assert_eq!(seen, wanted, "what listens after docker-env is not what docs/security.md lists");
}

/// A neighbour who sends packets for the nodes to this host finds nobody.
fn unreachable_from_outside(uplink: &Uplink) {
    for (address, port) in [(CONTROL_PLANE, 8443), (VIP, 8443), (WORKER, 10250)] {
        assert!(!uplink.reaches(address, port), "{address}:{port} is reached from outside");
    }
}

fn files(lab: &Lab) {
    let mut wrong = Vec::new();
    let mut keys = 0;
    let mut todo = vec![lab.home(), lab.kubeconfig()];
    while let Some(path) = todo.pop() {
        let metadata = std::fs::symlink_metadata(&path).expect("metadata");
        if metadata.is_dir() {
            // What containers are made of is the same for everybody, and below a directory that is root's.
            let skip = path.ends_with("io.containerd.snapshotter.v1.overlayfs")
                || path.ends_with("io.containerd.content.v1.content");
            let entries = std::fs::read_dir(&path).expect("a directory").flatten().map(|e| e.path());
            todo.extend(entries.filter(|_| !skip));
            continue;
        }
        if !metadata.is_file() || metadata.len() > 1 << 20 {
            continue;
        }
        let text = std::fs::read(&path).unwrap_or_default();
        let has = |part: &[u8]| text.windows(part.len()).any(|w| w == part);
        if has(b"PRIVATE KEY-----") || has(b"client-key-data") || path == lab.kubeconfig() {
            keys += 1;
            if metadata.permissions().mode() & 0o077 != 0 {
                wrong.push(path);
            }
        }
    }
    println!("{keys} files with keys, all 0600");
    assert!(keys > 20, "only {keys} files with keys were found: the test looks at the wrong place");
    assert!(wrong.is_empty(), "others can read {wrong:?}");
    for machine in ["minikube", "minikube-m02"] {
        let dir = lab.home().join("machines").join(machine);
        let mode = |path: PathBuf| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(dir.clone()), mode(dir.join("channel.sock"))), (0o700, 0o600));
    }
}

fn nodes_see_nothing_of_the_host(lab: &Lab) {
    let inside = |line: &str| lab.manykube(&["ssh", "-n", "m02", "--", line]);
    // Neither the test's own directory nor another node's is anywhere below its root.
    let secret = lab.path("secret");
    std::fs::write(&secret, "of the host").expect("write a file");
    inside(&format!("test ! -e {}", secret.display())).ok();
    inside(&format!("test ! -e /proc/1/root{}", secret.display())).ok();
    inside("test $(ls -d /proc/[0-9]*/root | wc -l) -lt 100 && ! grep -l kube-apiserver /proc/[0-9]*/comm")
        .ok();
    inside("! grep -rqs minikube-m02 /sys/fs/cgroup/*/manykube").ok();
    inside("test -z \"$(find /dev -type b)\"").ok();
    // Also who makes himself a device file for a disk cannot open it, with cgroup v1.
    if Path::new("/sys/fs/cgroup/devices").exists() && Path::new("/dev/loop0").exists() {
        let ran = inside("mknod /tmp/disk b 7 0 && dd if=/tmp/disk of=/dev/null count=1");
        assert!(ran.code != 0 && ran.stderr.contains("not permitted"), "{}", ran.stderr);
        // Nor by allowing himself more.
        inside("echo a > /sys/fs/cgroup/devices/devices.allow");
        let ran = inside("dd if=/tmp/disk of=/dev/null count=1");
        assert!(ran.code != 0 && ran.stderr.contains("not permitted"), "{}", ran.stderr);
    }
}

/// Tokens run out, certificates are not uploaded, and nothing of either is in a log or a command line.
fn secrets(lab: &Lab) {
    let list = lab.kubectl(&["-n", "kube-system", "get", "secrets", "-o", "json"]).ok().json();
    let tokens: Vec<String> = list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|s| s["type"] == "bootstrap.kubernetes.io/token")
        .map(|s| {
            assert!(
                s["data"]["expiration"].is_string(),
                "a token that never ends: {}",
                s["metadata"]["name"]
            );
            s["data"]["token-secret"].as_str().expect("a secret").to_owned()
        })
        .collect();
    assert!(!list.to_string().contains("kubeadm-certs"), "certificates were uploaded");
    let mut hidden = Vec::new();
    for encoded in &tokens {
        let decoded = run(Command::new("bash").args(["-c", &format!("echo {encoded} | base64 -d")]));
        hidden.push(decoded.trim().to_owned());
    }
    hidden.push("PRIVATE KEY".to_owned());
    let logs = lab.home();
    for secret in &hidden {
        let places = [
            logs.join("logs"),
            logs.join("profiles/minikube/events.json"),
            logs.join("machines/minikube/shared"),
            logs.join("machines/minikube/var/log"),
        ];
        let found = Command::new("grep").args(["-rls", "-e", secret]).args(&places).output().expect("grep");
        assert!(found.stdout.is_empty(), "a secret is in {}", String::from_utf8_lossy(&found.stdout));
        for process in std::fs::read_dir("/proc").expect("/proc").flatten() {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            assert!(!line.contains(secret.as_str()) || line.contains("grep"), "a secret is in {line:?}");
        }
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("run a command");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
