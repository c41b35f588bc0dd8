//! Runs the command with bad input: one line, minikube's exit code, and nothing changed.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod exit_codes;
mod golden;
mod home;
mod kubeconfig;

use std::process::Command;

use home::{CONFIG, Home, Run, is_empty};

#[test]
fn bad_input_is_refused_with_one_line_and_changes_nothing() {
    let home = Home::new();
    for (line, code, text) in [
        ("start --frobnicate", 14, "Error: unknown flag: --frobnicate"),
        ("frobnicate", 14, "Error: unknown command \"frobnicate\" for \"manykube\""),
        ("start now", 14, "Error: unexpected argument \"now\""),
        ("start -p -x-", 14, "X Exiting due to MK_USAGE: The profile name \"-x-\" is not valid"),
        ("start -p ../x", 14, "MK_USAGE"),
        ("delete -p ../..", 14, "MK_USAGE"),
        ("start -p a", 14, "MK_USAGE"),
        ("start -p status", 11, "MK_RESERVED_PROFILE"),
        ("start -p m02", 11, "MK_RESERVED_PROFILE"),
        ("profile status", 11, "MK_RESERVED_PROFILE"),
        ("profile a/b", 14, "MK_USAGE"),
        ("profile a b", 14, "Error:"),
        ("start --memory=1024", 23, "RSRC_INSUFFICIENT_REQ_MEMORY: Requested memory allocation 1024MiB"),
        ("start --memory=3999g", 10, "RSRC_OVER_ALLOC_MEM"),
        ("start --memory=lots", 14, "MK_USAGE"),
        ("start --cpus=99999", 29, "RSRC_INSUFFICIENT_CORES"),
        ("start --cpus=few", 14, "MK_USAGE"),
        ("start --kubernetes-version=v1.2.3", 106, "K8S_OLD_UNSUPPORTED"),
        ("start --kubernetes-version=v1.99.0", 106, "K8S_NEW_UNSUPPORTED"),
        ("start --kubernetes-version=v1.37.99", 49, "INET_VERSION_UNAVAILABLE"),
        ("start --kubernetes-version=banana", 14, "MK_USAGE"),
        (
            "start --driver=hyperfoo",
            56,
            "DRV_UNSUPPORTED_OS: The driver 'hyperfoo' is not supported on linux/",
        ),
        ("start --nodes=0", 14, "MK_USAGE"),
        ("start --ha --nodes=2", 14, "MK_USAGE"),
        ("start --nodes=300", 14, "MK_USAGE"),
        ("start --no-kubernetes --kubernetes-version=v1.37.1", 14, "MK_USAGE"),
        ("start --subnet=127.0.0.0", 14, "MK_USAGE"),
        (
            "start --cni=false --container-runtime=containerd",
            14,
            "The \"containerd\" container runtime requires CNI",
        ),
        ("start --wait=forever", 14, "MK_USAGE"),
        ("start --wait-timeout=soon", 14, "Error: invalid argument \"soon\""),
        ("start --output=xml", 14, "Error: invalid argument \"xml\""),
        ("start --dry-run --memory=1024", 23, "RSRC_INSUFFICIENT_REQ_MEMORY"),
        (
            "start --container-runtime=docker",
            16,
            "MK_UNIMPLEMENTED: --container-runtime=docker is not supported yet",
        ),
        ("start --docker-env=A=b", 14, "--docker-env is for the docker runtime"),
        ("start --iso-url=http://x/y.iso", 14, "--iso-url is for virtual machines"),
        ("start --extra-config=kubelet", 14, "--extra-config: \"kubelet\" is not COMPONENT.FLAG=VALUE"),
        ("start --labels=tier", 14, "--labels: \"tier\" is not KEY=VALUE"),
        ("start --labels=tier-", 14, "a new cluster has nothing to remove"),
        ("start --taints=a=b:Never", 14, "--taints: \"Never\" is not the effect of a taint"),
        ("start --mount=/a", 14, "--mount: \"/a\" is not a mount"),
        ("start --ports=80", 14, "--ports: \"80\" is not a port"),
        ("status -o json -f {{.Host}}", 14, "MK_USAGE"),
        ("delete now", 14, "Error:"),
        ("node", 14, "Error:"),
        ("node list now", 14, "Error:"),
        ("node delete", 14, "MK_USAGE"),
        ("node start", 14, "MK_USAGE"),
        ("node stop", 14, "MK_USAGE"),
        ("node stop m02 --name=m03", 14, "MK_USAGE"),
        ("node stop m02 m03", 14, "Error:"),
        ("node add --count=many", 14, "Error:"),
        ("node set m02", 14, "nothing to change was given"),
        ("node set --cpus=2", 14, "Usage: node set NAME"),
        ("node set m02 --cpus=few", 14, "MK_USAGE"),
        ("node stop m02 --all", 14, "MK_USAGE"),
        ("node create --control-plane", 14, "Error: unknown flag: --control-plane"),
        ("worker", 14, "Error:"),
        ("worker add", 14, "Error: unknown command"),
        ("worker start", 14, "Usage: worker start NAME|--all"),
        ("worker stop", 14, "Usage: worker stop NAME|--all"),
        ("worker delete", 14, "Usage: worker delete NAME"),
        ("worker ssh", 14, "Usage: worker ssh NAME"),
        ("worker ip", 14, "Usage: worker ip NAME"),
        ("completion csh", 14, "Error:"),
        ("start --noeds=3", 14, "Error: unknown flag: --noeds; did you mean --nodes?"),
        ("start --addons=frob", 10, "MK_ADDON_ENABLE: addon 'frob' is not a valid addon"),
        ("stop --schedule=soon", 14, "Error: invalid argument \"soon\""),
        ("stop --schedule=1m --cancel-scheduled", 14, "MK_USAGE"),
        ("pause --namespaces=", 14, "MK_USAGE"),
        ("pause -n a*b", 14, "MK_USAGE"),
        ("unpause --namespaces=", 14, "MK_USAGE"),
        ("cp a", 14, "Error:"),
        ("cp a b c", 14, "Error:"),
        ("service", 14, "MK_USAGE: You must specify service name(s) or --all flag"),
        ("service x --format={{.Host}}", 14, "MK_USAGE: --format: there is no field .Host"),
        ("addons", 14, "Error:"),
        ("addons enable", 14, "Error:"),
        ("addons enable dashbord", 10, "Did you mean dashboard?"),
        ("addons enable ingress", 10, "MK_ADDON_ENABLE: ingress cannot be had here"),
        ("addons enable registry --images=Frob=x", 14, "MK_USAGE: --images"),
        ("addons disable frob", 116, "SVC_ADDON_UNSUPPORTED"),
        ("config defaults frob", 14, "MK_USAGE"),
        ("version -o xml", 14, "Error:"),
        ("config get memory", 14, "Error: specified key could not be found in config"),
        ("config set frob 1", 14, "MK_USAGE"),
        ("config set memory lots", 14, "MK_USAGE"),
        ("profile list", 14, "MK_USAGE_NO_PROFILE"),
        ("node-image import /nowhere.tar.zst", 35, "HOST_PATH_MISSING"),
        ("node-image build --kubernetes-version=v1.2.3", 49, "INET_VERSION_UNAVAILABLE"),
    ] {
        let run = home.run(line);
        run.expect(code, text);
        let lines: Vec<_> = run.stderr().lines().map(str::to_owned).collect();
        assert!(lines.len() <= 2, "{line}: {lines:?}");
        assert_eq!(home.made(), Vec::<String>::new(), "{line}");
    }
    assert!(!home.dir().join(".kube").exists());
}

#[test]
fn a_user_name_has_at_most_sixty_characters() {
    Home::new().run(&format!("status --user={}", "u".repeat(61))).expect(14, "MK_USAGE");
}

#[test]
fn a_full_disk_is_refused() {
    let home = Home::new();
    let output =
        home.command("start --dry-run").env("MINIKUBE_TEST_AVAILABLE_STORAGE", "1").output().unwrap();
    Run(output, "start".into()).expect(26, "RSRC_INSUFFICIENT_STORAGE");
    assert_eq!(home.made(), Vec::<String>::new());
}

#[test]
fn flags_come_from_the_environment_and_the_settings() {
    let home = Home::new();
    let with = |name: &str, value: &str| {
        Run(home.command("start --dry-run").env(name, value).output().unwrap(), format!("{name}={value}"))
    };
    with("MINIKUBE_MEMORY", "1024").expect(23, "1024MiB");
    with("MANYKUBE_DRIVER", "hyperfoo").expect(56, "hyperfoo");
    home.run("config set memory 1100").expect(0, "These changes will take effect");
    home.run("start --dry-run").expect(23, "1100MiB");
    with("MINIKUBE_MEMORY", "1024").expect(23, "1024MiB");
    home.run("start --dry-run --memory 1200").expect(23, "1200MiB");
    assert_eq!(home.run("config view").stdout(), "- memory: 1100\n");
    home.run("config unset memory").expect(0, "");
    assert_eq!(home.run("config view").stdout(), "");
}

#[test]
fn a_missing_profile_is_85_everywhere_but_for_delete() {
    let home = Home::new();
    for line in [
        "status",
        "stop",
        "ip",
        "ssh",
        "node list",
        "node add",
        "node delete m02",
        "node start m02",
        "node stop --name=m02",
        "node set m02 --cpus=2",
        "node create",
        "node stop --all",
        "worker list",
        "worker create",
        "worker start m02",
        "worker start --all",
        "worker stop --all",
        "worker delete m02",
        "worker ssh m02 ls",
        "worker docker-env m02",
        "worker status",
        "worker logs -f",
        "worker ip m02",
        "update-context",
        "logs",
        "status -o json",
        "status -n m02",
        "stop --schedule=5m",
        "stop --cancel-scheduled",
        "pause",
        "unpause -A",
        "cp /etc/hosts m02:/tmp/hosts",
        "service web --url",
        "service list -o json",
        "tunnel",
        "ssh-key",
        "ssh-host",
        "podman-env",
        "addons enable registry",
        "addons disable registry",
        "version --components",
    ] {
        let run = home.run(&format!("{line} -p gone"));
        run.expect(85, "* Profile \"gone\" not found. Run \"manykube profile list\" to view all profiles.\n");
        assert!(run.stdout().contains("To start a cluster, run: \"manykube start -p gone\"\n"));
        assert_eq!(run.stderr(), "");
    }
    assert_eq!(home.made(), Vec::<String>::new());
    let unknown = home.run("profile gone");
    unknown.expect(0, "profile \"gone\" not found");
    assert_eq!(unknown.stdout(), "");
}

#[test]
fn nodes_of_a_cluster_that_does_not_run() {
    let home = Home::new();
    let dir = home.path().join("profiles/demo");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("config.json");
    std::fs::write(&file, CONFIG).unwrap();
    for (line, code, text) in [
        ("node list", 0, "demo-m02\t192.168.49.3\n"),
        ("node add", 83, "host is not running: state=Nonexistent"),
        ("node add --control-plane", 83, "host is not running: state=Nonexistent"),
        ("node add --worker=false", 14, "MK_USAGE"),
        ("node add --count=0", 14, "MK_USAGE"),
        ("node add --count=251", 14, "MK_USAGE"),
        ("node add --count=2 --name=w", 14, "MK_USAGE"),
        ("node add m01", 14, "MK_USAGE"),
        ("node add Upper", 14, "MK_USAGE"),
        ("node add m02", 14, "MK_USAGE"),
        ("node delete m02", 83, "host is not running: state=Nonexistent"),
        ("node delete m03", 80, "GUEST_NODE_DELETE"),
        ("node start m03", 85, "GUEST_NODE_RETRIEVE"),
        ("node stop m03", 85, "GUEST_NODE_RETRIEVE"),
        ("node stop demo", 80, "it is the last control plane"),
        ("node start m02", 83, "host is not running: state=Nonexistent"),
        ("node start --all", 83, "host is not running: state=Nonexistent"),
        ("node add --cpus=1 --memory=100", 23, "RSRC_INSUFFICIENT_REQ_MEMORY"),
        ("node add --cpus=9999", 29, "RSRC_INSUFFICIENT_CORES"),
        ("node add --labels=a", 14, "--labels: \"a\" is not KEY=VALUE"),
        ("node add --kubernetes-version=v1.2.3", 106, "K8S_OLD_UNSUPPORTED"),
        ("node add -c docker", 16, "not supported yet"),
        ("node add --kube-apiserver-binary=/x", 14, "a worker runs no kube-apiserver"),
        ("node set m03 --cpus=2", 85, "GUEST_NODE_RETRIEVE"),
        ("node set m02 --labels=a-", 14, "demo-m02 has no label a"),
        ("node set m02 --base-image=mine", 14, "baseImage of node demo-m02 cannot be changed"),
        ("node set m02 --cpus=2", 0, "m02 is as asked for already"),
        ("node set demo --memory=512", 23, "RSRC_INSUFFICIENT_REQ_MEMORY"),
        ("worker list", 0, "demo-m02\t192.168.49.3\tNonexistent\n"),
        ("worker start demo", 14, "demo is a control plane, not a worker"),
        ("worker stop demo", 14, "demo is a control plane, not a worker"),
        ("worker ssh demo", 14, "demo is a control plane, not a worker"),
        ("worker status demo", 14, "demo is a control plane, not a worker"),
        ("worker logs demo", 14, "demo is a control plane, not a worker"),
        ("worker start m02", 83, "host is not running: state=Nonexistent"),
        ("worker start big", 83, "host is not running: state=Nonexistent"),
        ("worker start Big", 14, "is no name for a node"),
        ("worker docker-env m02", 83, "false exit code 83\n"),
        ("worker docker-env m02", 83, "The worker node demo-m02 host is not running: state=Nonexistent"),
        ("docker-env --shell=strange", 14, "There is no shell"),
        ("image tag a", 14, "missing argument"),
        ("image ls", 83, "is not running"),
        ("worker status", 7, "demo-m02\ntype: Worker\n"),
        ("worker logs", 83, "The worker node demo-m02 host is not running: state=Nonexistent"),
        ("node logs", 83, "The control-plane node demo host is not running: state=Nonexistent"),
        ("worker ip m02", 83, "host is not running: state=Nonexistent"),
        ("worker stop --all", 0, "Successfully stopped node m02"),
        ("node stop demo-m02", 0, "Successfully stopped node m02"),
    ] {
        home.run(&format!("{line} -p demo")).expect(code, text);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), CONFIG, "{line}");
    }
}

#[test]
fn a_node_that_does_not_run_is_changed_for_its_next_start() {
    let home = Home::new();
    let dir = home.path().join("profiles/demo");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("config.json");
    std::fs::write(&file, CONFIG).unwrap();
    let set = home.run(
        "node set m02 -p demo --memory=2g --labels=tier=db,a=b --taints=db:NoSchedule --mount=/srv:/data",
    );
    set.expect(0, "m02 does not run: it will be as asked for at its next start");
    for (what, effect) in
        [("memory", "(live)"), ("labels", "(live)"), ("taints", "(live)"), ("mounts", "(restart)")]
    {
        let out = set.stdout();
        assert!(out.lines().any(|l| l.contains(what) && l.ends_with(effect)), "{what} {effect} in {out}");
    }
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(["2048", "tier", "db:NoSchedule", "/srv:/data"].iter().all(|t| text.contains(t)), "{text}");
    home.run("node set m02 -p demo --memory=2g --labels=a=b").expect(0, "as asked for already");
    home.run("worker set m02 -p demo --labels=tier- --taints=db-").expect(0, "next start");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("tier") && !text.contains("NoSchedule") && text.contains("/srv:/data"), "{text}");
    home.run("node set demo -p demo --labels=role=first").expect(0, "demo does not run");
}

#[test]
fn a_machine_may_not_bear_anothers_name() {
    let home = Home::new();
    for (name, config) in
        [("demo", CONFIG.to_owned()), ("demo-m03", CONFIG.replace("\"demo\"", "\"demo-m03\""))]
    {
        let dir = home.path().join("profiles").join(name);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.json"), config).unwrap();
    }
    home.run("node add -p demo").expect(80, "taken by the cluster \"demo-m03\"");
}

#[test]
fn deleting_what_is_not_there_succeeds() {
    let home = Home::new();
    home.run("delete -p gone").expect(0, "Removed all traces of the \"gone\" cluster.");
    home.run("delete --all").expect(0, "Successfully deleted all profiles");
    let mut made = home.made();
    // The directory of locks stays; nothing is in it.
    made.retain(|name| name != "locks");
    assert!(is_empty(&home.path().join("locks")));
    assert_eq!(made, Vec::<String>::new());
}

#[test]
fn a_corrupted_configuration_is_named_and_kept() {
    let home = Home::new();
    let dir = home.path().join("profiles/demo");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("config.json");
    let text = "{\n  \"Name\": \"demo\",\n  \"Memory\": oops\n}";
    std::fs::write(&file, text).unwrap();
    for line in ["start", "status", "stop", "ip", "node list", "logs"] {
        let run = home.run(&format!("{line} -p demo"));
        run.expect(38, "HOST_CONFIG_LOAD");
        run.expect(38, &format!("{}: line 3, column", file.display()));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    let list = home.run("profile list -o json");
    list.expect(0, r#"{"invalid":[{"Name":"demo""#);
    home.run("delete -p demo").expect(0, "Removed all traces");
    assert!(!dir.exists());
}

#[test]
fn corrupted_settings_are_named() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("config")).unwrap();
    std::fs::write(home.path().join("config/config.json"), "{\n oops").unwrap();
    home.run("status").expect(38, "config/config.json");
    home.run("version").expect(0, "version: v");
}

#[test]
fn fatal_errors_as_events() {
    let home = Home::new();
    let run = home.run("start -o json --memory=1024");
    run.expect(23, "");
    let out = run.stdout();
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["type"], "io.k8s.sigs.minikube.error");
    assert_eq!(last["data"]["exitcode"], "23");
    assert_eq!(last["data"]["name"], "RSRC_INSUFFICIENT_REQ_MEMORY");
    assert_eq!(run.stderr(), "");
    assert!(out.lines().all(|l| serde_json::from_str::<serde_json::Value>(l).is_ok()));
}

#[test]
fn the_audit_log_names_profile_and_user() {
    let home = Home::new();
    home.run("stop -p demo --user=testUser").expect(85, "");
    home.run("stop -p other --skip-audit").expect(85, "");
    home.run("status -p third").expect(85, "");
    let log = std::fs::read_to_string(home.path().join("logs/audit.json")).unwrap();
    assert_eq!(log.lines().count(), 1);
    assert!(log.contains("\"profile\":\"demo\"") && log.contains("\"user\":\"testUser\""), "{log}");
}

#[test]
fn what_only_prints() {
    let home = Home::new();
    assert!(home.run("version --short").stdout().starts_with('v'));
    home.run("version -o json").expect(0, "minikubeVersion");
    home.run("-h").expect(0, "Usage:");
    home.run("").expect(0, "Usage:");
    home.run("start --help").expect(0, "--kubernetes-version");
    home.run("options").expect(0, "--profile");
    for shell in ["bash", "zsh", "fish", "powershell"] {
        home.run(&format!("completion {shell}")).expect(0, "manykube");
    }
    assert_eq!(home.run("profile").stdout(), "* manykube\n");
    assert_eq!(home.run("profile -p demo").stdout(), "* demo\n");
    assert_eq!(home.run("profile list -o json").stdout(), r#"{"invalid":[],"valid":[]}"#);
}

#[test]
fn french_is_spoken_where_it_is_asked_for() {
    let home = Home::new();
    let with = |variable: &str, value: &str| {
        let output = home.command("start --dry-run --memory=1024").env(variable, value).output().unwrap();
        Run(output, format!("{variable}={value}"))
    };
    with("LC_ALL", "fr").expect(23, "Utilisation du pilote native");
    with("LANG", "de_DE.UTF-8").expect(23, "Automatically selected the native driver");
}

#[test]
fn called_minikube_it_lives_where_minikube_does() {
    let home = Home::new();
    let link = home.dir().join("minikube");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_manykube"), &link).unwrap();
    let output = Command::new(&link).arg("status").env_clear().env("HOME", home.dir()).output().unwrap();
    Run(output, "minikube status".into()).expect(85, "run: \"minikube start\"");
    assert!(home.dir().join(".minikube/machines").is_dir());
}
