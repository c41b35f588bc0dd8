//! What the user keeps for every node: `files/` and `certs/` of the home, and directories of the host.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use system_tests::{Lab, eventually};

use super::SOON;
use super::server::Server;

const SERVER: &str = "192.168.49.1";
const PORT: &str = "9443";

fn write(path: &Path, mode: u32, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("make a directory");
    std::fs::write(path, text).expect("write a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
}

fn openssl(dir: &Path, args: &str) {
    let done = Command::new("openssl").args(args.split(' ')).current_dir(dir).output().expect("run openssl");
    assert!(done.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Before the first start: a script, a secret, and an authority with a certificate of it for a server here.
pub fn fill(lab: &Lab) {
    write(&lab.home().join("files/usr/local/bin/hello"), 0o755, "#!/bin/sh\necho hello\n");
    write(&lab.home().join("files/etc/mine/secret"), 0o600, "s");
    let dir = lab.path("authority");
    write(&dir.join("ext"), 0o644, &format!("subjectAltName=IP:{SERVER}\n"));
    let new = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(&dir, &format!("{new} -x509 -days 9 -subj /CN=corp -keyout ca.key -out ca.pem"));
    openssl(&dir, &format!("{new} -subj /CN=server -keyout key -out request"));
    openssl(
        &dir,
        "x509 -req -days 9 -in request -CA ca.pem -CAkey ca.key -CAcreateserial -extfile ext -out cert",
    );
    write(
        &lab.home().join("certs/corp.pem"),
        0o644,
        &std::fs::read_to_string(dir.join("ca.pem")).expect("ca.pem"),
    );
}

pub fn is_in_nodes(lab: &Lab, machines: &[&str]) {
    let ssh = |machine: &str, command: &str| lab.manykube(&["ssh", "-n", machine, "--", command]);
    for machine in machines {
        assert_eq!(ssh(machine, "hello").ok().text(), "hello");
        assert_eq!(ssh(machine, "stat -c %a:%U /etc/mine/secret").ok().text(), "600:root");
    }
    let server = Server::listen(&lab.path("authority"), &format!("{SERVER}:{PORT}"));
    for machine in machines {
        ssh(machine, &format!("curl -sS -o /dev/null https://{SERVER}:{PORT}/")).ok();
    }
    // It is no registry: what matters is that containerd spoke with it at all.
    lab.kubectl(&["run", "trusts", &format!("--image={SERVER}:{PORT}/app:v1")]).ok();
    eventually("containerd trusts the server", SOON, || {
        let events = || lab.kubectl(&["get", "events", "--field-selector", "type=Warning"]).stdout;
        if server.was_asked_by("containerd") { Ok(()) } else { Err(events()) }
    });
    lab.kubectl(&["delete", "pod", "trusts", "--grace-period=1"]).ok();

    // Nodes that run get what is new at the next start.
    write(&lab.home().join("files/usr/local/bin/hello"), 0o755, "#!/bin/sh\necho again\n");
    lab.manykube(&["start"]).ok();
    for machine in machines {
        assert_eq!(ssh(machine, "hello").ok().text(), "again");
    }
}

/// A directory of the host, in every node as long as the command runs.
pub fn mounted(lab: &Lab, machines: &[&str]) {
    let dir = lab.path("shared");
    write(&dir.join("from-host"), 0o640, "h");
    std::os::unix::fs::chown(dir.join("from-host"), Some(1234), Some(4321)).expect("chown");
    let mut mount = lab.spawn(&["mount", &format!("{}:/shared", dir.display())]);
    for machine in machines {
        let command = format!(
            "stat -c %u:%g:%a /shared/from-host && touch /shared/{machine} && chown 77:88 /shared/{machine}"
        );
        eventually("the directory in every node", SOON, || {
            let seen = lab.manykube(&["ssh", "-n", machine, "--", &command]);
            if seen.text() == "1234:4321:640" { Ok(()) } else { Err(seen.stderr) }
        });
        let made = std::fs::metadata(dir.join(machine)).expect("what a node made");
        let owner = (std::os::unix::fs::MetadataExt::uid(&made), std::os::unix::fs::MetadataExt::gid(&made));
        assert_eq!(owner, (77, 88), "{machine}");
    }
    lab.manykube(&["mount", "--kill"]).ok();
    assert_eq!(mount.wait().expect("wait for mount").code(), Some(11));
    for machine in machines {
        lab.manykube(&["ssh", "-n", machine, "--", "test ! -e /shared/from-host"]).ok();
    }
}
