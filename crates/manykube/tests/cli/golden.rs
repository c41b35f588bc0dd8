//! Every command's text and JSON form where no cluster runs, as they were recorded. The forms of a cluster that
//! runs are recorded by tests/tests/command_line.

use system_tests::Recorded;

use super::home::Home;

fn record(home: &Home, name: &str, lines: &[&str]) {
    let mut recorded = Recorded::new(concat!("v", env!("CARGO_PKG_VERSION")), home.dir());
    lines.iter().for_each(|line| recorded.add(&home.ran(line)));
    recorded.is_as(name);
}

#[test]
fn what_needs_no_cluster() {
    record(
        &Home::new(),
        "no-cluster",
        &[
            "",
            "version",
            "version --short",
            "version -o json",
            "version -o yaml",
            "update-check",
            "completion csh",
            "options",
            "profile",
            "profile -p demo",
            "profile gone",
            "profile list",
            "profile list -o json",
            "addons list",
            "addons list -ojson",
            "addons images registry",
            "addons images storage-provisioner",
            "addons images dashboard",
            "cache list",
            "delete -p gone",
            "delete -p gone -o json",
            "delete --all",
            "docker-env -u --shell none",
            "docker-env -u --shell bash",
            "docker-env -u --shell fish",
            "podman-env -u --shell bash",
            "start --dry-run --memory=1024",
            "start --dry-run --memory=1024 -o json",
        ],
    );
}

#[test]
fn settings() {
    record(
        &Home::new(),
        "config",
        &[
            "config view",
            "config get memory",
            "config set memory 4g",
            "config set WantUpdateNotification false",
            "config set MaxAuditEntries 10",
            "config set frob 1",
            "config set rootless perhaps",
            "config get memory",
            "config view",
            "config view --format {{.ConfigKey}}={{.ConfigValue}};",
            "config unset memory",
            "config get memory",
            "config unset frob",
            "config defaults driver",
            "config defaults driver -o json",
            "config defaults kubernetes-version -o yaml",
            "config defaults memory",
        ],
    );
}

#[test]
fn a_profile_that_is_missing() {
    record(
        &Home::new(),
        "missing-profile",
        &[
            "status -p gone",
            "status -p gone -o json",
            "stop -p gone",
            "stop -p gone -o json",
            "pause -p gone -o json",
            "unpause -p gone",
            "ip -p gone",
            "docker-env -p gone --shell sh",
            "image ls -p gone",
            "service list -p gone -o json",
            "config export -p gone",
        ],
    );
}

#[test]
fn a_cluster_that_does_not_run() {
    record(
        &Home::new().with_demo(),
        "stopped-cluster",
        &[
            "status -p demo",
            "status -p demo -o json",
            "status -p demo -ojson -n m02",
            "status -p demo -o json -l cluster",
            "status -p demo -f {{.Host}}/{{.Kubelet}}/{{.APIServer}}/{{.Kubeconfig}}/{{.Worker}}",
            "status -p demo -n m09",
            "profile demo",
            "profile",
            "profile list",
            "profile list --detailed --light",
            "profile list -o json",
            "node list",
            "node status",
            "node status m02 -o json",
            "worker list",
            "worker status -o json",
            "config export",
            "addons list",
            "addons list -o json",
            "addons enable registry",
            "addons disable registry",
            "addons enable dashboard",
            "addons enable registri",
            "addons disable registri",
            "ssh-key",
            "ssh-key -n m02",
            "ssh-key -n m09",
            "ip",
            "ip -n m02",
            "ssh ls",
            "cp /etc/hostname m02:/tmp/x",
            "image ls",
            "image ls --format json",
            "cache list",
            "docker-env --shell none",
            "podman-env --shell none",
            "dashboard",
            "addons open registry",
            "addons configure registry",
            "service list",
            "service web --url",
            "tunnel",
            "update-context",
            "pause",
            "unpause -o json",
            "node add",
            "node delete m02",
            "node start m02",
            "node stop m02",
            "node set m02 --labels=tier=db",
            "fault list",
            "stop",
            "stop -o json",
            "delete",
        ],
    );
}
