//! Images on every node: built, loaded, broken, and on nodes that come later; volumes that stay with their
//! pods when nodes die. One cluster, walked through in order.

mod home;
mod kept;
mod registry;
mod server;

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use system_tests::archive::{self, Fault};
use system_tests::{Footprint, Lab, Layers, Machine, Ran, eventually};

const SOON: Duration = Duration::from_secs(90);

/// All that containerd keeps of images on the nodes.
fn stores(lab: &Lab, machines: &[&str]) -> Vec<String> {
    let look = "ctr -n k8s.io images ls -q | sort; ctr -n k8s.io content ls -q | sort; \
                ctr -n k8s.io snapshots ls | awk '{print $1}' | grep sha256: | sort";
    machines.iter().map(|m| lab.manykube(&["ssh", "-n", m, "--", look]).ok().stdout).collect()
}

/// A DaemonSet that never pulls runs on so many nodes.
fn runs_everywhere(lab: &Lab, name: &str, image: &str, nodes: usize) {
    lab.apply(&format!(
        "{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: {name}}}, spec: {{selector: {{matchLabels: {{app: {name}}}}}, \
         template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{terminationGracePeriodSeconds: 0, containers: \
         [{{name: main, image: '{image}', imagePullPolicy: Never}}]}}}}}}}}"
    ));
    ready(lab, name, nodes);
}

fn ready(lab: &Lab, daemon_set: &str, nodes: usize) {
    let (wanted, began) = (format!("{nodes} {nodes}"), Instant::now());
    eventually("the pods on all nodes", SOON, || {
        let path = "jsonpath={.status.desiredNumberScheduled} {.status.numberReady}";
        let seen = lab.kubectl(&["get", "ds", daemon_set, "-o", path]);
        if seen.text() == wanted {
            return Ok(());
        }
        if began.elapsed() < SOON {
            return Err(seen.stderr);
        }
        let pods = lab.kubectl(&["get", "pods", "-o", "wide"]).stdout;
        let warnings = lab.kubectl(&["get", "events", "--field-selector", "type=Warning"]).stdout;
        Err(format!("{daemon_set}: {} {}\n{pods}{warnings}", seen.text(), seen.stderr))
    });
}

fn context(lab: &Lab, word: &str) -> String {
    let dir = lab.path(&format!("context-{word}"));
    std::fs::create_dir_all(&dir).expect("make a build context");
    let busybox = lab.busybox();
    let text = format!(
        "FROM {busybox}\nARG WORD\nCOPY . /context\nRUN test ! -e /context/secret && echo \"$WORD\" > /word\n\
         CMD [\"/bin/sh\", \"-c\", \"trap exit TERM; while :; do sleep 1 & wait; done\"]\n"
    );
    for (name, text) in
        [("Dockerfile", &*text), (".dockerignore", "secret\n"), ("secret", "s"), ("file", word)]
    {
        std::fs::write(dir.join(name), text).expect("write a build context");
    }
    dir.to_string_lossy().into_owned()
}

/// The real client, in the environment that `docker-env` prints.
fn docker(env: &str, args: &[&str]) -> Ran {
    let began = Instant::now();
    let mut command = Command::new("docker");
    in_env(&mut command, env);
    let output = command.args(args).output().expect("run docker (make deps installs it)");
    Ran::new(format!("docker {}", args.join(" ")), output, began.elapsed())
}

fn in_env(command: &mut Command, env: &str) {
    for line in env.lines().filter_map(|l| l.strip_prefix("export ")) {
        let (name, value) = line.split_once('=').expect("NAME=VALUE");
        command.env(name, value.trim_matches('"'));
    }
}

#[test]
fn images_are_on_every_node_and_volumes_stay() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    let no_cluster = lab.manykube(&["image", "ls"]).exit(14);
    assert!(no_cluster.stderr.contains("There is no cluster"), "{}", no_cluster.stderr);
    home::fill(&lab);
    lab.manykube(&["start", "--nodes=3"]).ok();
    let three = ["minikube", "minikube-m02", "minikube-m03"];

    home::is_in_nodes(&lab, &three);
    home::mounted(&lab, &three);
    a_nodes_own(&lab);
    let env = built(&lab);
    named(&lab, &three);
    registry::pushed_and_pulled(&lab, &three, &env);
    if !lab.skips_on_docker(
        "damaged archives, other sources, the cache",
        "they are read and kept by the same code",
    ) {
        broken(&lab, &three);
        kept::sources(&lab, &three, &env);
        kept::cache(&lab);
    }
    later(&lab);
    volumes(&lab, &three);
    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}

/// What root does to images in one node is seen in no other, and a node that comes later is as the others.
fn a_nodes_own(lab: &Lab) {
    let layers = Layers::take(lab, "minikube");
    layers.attack("m03");
    layers.assert_unchanged();
    layers.remove();
}

/// By `image build`, and by a docker client that knows nothing of us; the environment that client has.
fn built(lab: &Lab) -> String {
    let out = lab
        .manykube(&["image", "build", "-t", "ours:v1", "--build-arg", "WORD=abc", &context(lab, "ours")])
        .ok();
    println!("image build: {:.2?}", out.elapsed);
    runs_everywhere(lab, "ours", "ours:v1", 3);
    let word = lab.kubectl(&["exec", "ds/ours", "--", "cat", "/word"]).ok();
    assert_eq!(word.text(), "abc");
    let failed = lab.path("bad");
    std::fs::create_dir_all(&failed).expect("make a build context");
    std::fs::write(failed.join("Dockerfile"), "FROM scratch\nCOPY nothing /\n").expect("write it");
    lab.manykube(&["image", "build", "-t", "bad:v1", &failed.to_string_lossy()]).exit(80);

    let env = lab.manykube(&["docker-env", "--all", "--shell", "bash"]).ok().stdout;
    let mut status = lab.command(&["status"]);
    in_env(&mut status, &env);
    let status = status.output().expect("status");
    assert!(String::from_utf8_lossy(&status.stdout).contains("docker-env: in-use"), "{status:?}");
    let out =
        docker(&env, &["build", "-t", "theirs:v1", "--build-arg", "WORD=x", &context(lab, "theirs")]).ok();
    println!("docker build: {:.2?}", out.elapsed);
    runs_everywhere(lab, "theirs", "theirs:v1", 3);
    assert!(docker(&env, &["images"]).ok().stdout.contains("theirs"));
    let plain: String = env.lines().filter(|l| !l.contains("CERT_PATH")).map(|l| format!("{l}\n")).collect();
    assert_ne!(docker(&plain, &["ps"]).code, 0, "without a certificate nobody is let in");
    env
}

/// Nothing is left of what could not be loaded.
fn broken(lab: &Lab, machines: &[&str]) {
    let stores_before = stores(lab, machines);
    let file = lab.path("broken.tar");
    let path = file.to_string_lossy().into_owned();
    let cases = [
        (Fault::MissingLayer, "is missing"),
        (Fault::WrongDigest, "digest"),
        (Fault::Truncated, "it ends in the middle"),
        (Fault::NoConfig, "configuration"),
    ];
    for (fault, says) in cases {
        archive::oci(&file, "example.com/broken:v1", 3, fault);
        let ran = lab.manykube(&["image", "load", &path]).exit(80);
        assert!(ran.stderr.contains(says), "{fault:?}: {}", ran.stderr);
        assert_eq!(stores(lab, machines), stores_before, "{fault:?}");
    }
    std::fs::write(&file, "no archive").expect("write it");
    lab.manykube(&["image", "load", &path]).exit(80);
    lab.manykube(&["image", "load", "./not-there.tar"]).exit(35);
    lab.manykube(&["image", "load", "No Name"]).exit(14);

    // A disk that is full where blobs arrive.
    let ingest = "/var/lib/containerd/io.containerd.content.v1.content/ingest";
    lab.manykube(&["ssh", "--", &format!("mount -t tmpfs -o size=1m full {ingest}")]).ok();
    archive::oci(&file, "example.com/broken:v1", 3, Fault::None);
    let ran = lab.manykube(&["image", "load", &path]).exit(80);
    assert!(ran.stderr.contains("node minikube:") && ran.stderr.contains("no space left"), "{}", ran.stderr);
    lab.manykube(&["ssh", "--", &format!("umount {ingest}")]).ok();
    // The other nodes had room for it.
    assert_eq!(stores(lab, &machines[..1]), stores_before[..1]);
    lab.manykube(&["image", "load", &path]).ok();
    lab.manykube(&["image", "rm", "example.com/broken:v1"]).ok();
    assert_eq!(stores(lab, machines), stores_before);
}

/// load, ls, tag, save, rm.
fn named(lab: &Lab, machines: &[&str]) {
    let (file, saved) = (lab.path("app.tar"), lab.path("saved.tar"));
    archive::oci(&file, "example.com/app:v1", 2, Fault::None);
    lab.manykube(&["image", "load", &file.to_string_lossy()]).ok();
    lab.manykube(&["image", "tag", "example.com/app:v1", "app:v2"]).ok();
    for machine in machines {
        let list = lab.manykube(&["image", "ls", "-n", machine]).ok().stdout;
        assert!(
            list.contains("example.com/app:v1\n") && list.contains("docker.io/library/app:v2\n"),
            "{list}"
        );
    }
    let json = lab.manykube(&["image", "ls", "--format", "json"]).ok();
    assert!(json.stdout.contains("[\"registry.k8s.io/pause"), "{}", json.stdout);
    assert!(
        lab.manykube(&["image", "ls", "--format", "table"]).ok().stdout.contains("│ registry.k8s.io/pause")
    );
    lab.manykube(&["image", "save", "app:v2", &saved.to_string_lossy()]).ok();
    lab.manykube(&["image", "rm", "app:v2", "example.com/app:v1"]).ok();
    assert!(!lab.manykube(&["image", "ls"]).ok().stdout.contains("app:v"));
    lab.manykube(&["image", "rm", "app:v2"]).exit(80);
    lab.manykube(&["image", "load", &saved.to_string_lossy()]).ok();
    assert!(lab.manykube(&["image", "ls"]).ok().stdout.contains("docker.io/library/app:v2"));
    // A name that is in use means something else now.
    archive::oci(&file, "docker.io/library/app:v2", 1, Fault::None);
    lab.manykube(&["image", "load", &file.to_string_lossy()]).ok();
    same_everywhere(lab, machines);
}

/// All that has a name; what docker's builder keeps of its steps stays where it built.
fn same_everywhere(lab: &Lab, machines: &[&str]) {
    let look =
        "ctr -n k8s.io images ls | awk '{print $1, $3}' | grep -v -e ^sha256: -e ^moby-dangling | sort";
    let all: Vec<String> =
        machines.iter().map(|m| lab.manykube(&["ssh", "-n", m, "--", look]).ok().stdout).collect();
    assert!(all.iter().all(|a| *a == all[0]), "{all:#?}");
}

/// A registry that takes connections and says nothing: that is known after a while, in which other things can be
/// done that change no images.
fn hangs(lab: &Lab) -> impl FnOnce() {
    let listener = TcpListener::bind("192.168.49.1:0").expect("listen on the bridge");
    let port = listener.local_addr().expect("an address").port();
    let name = format!("192.168.49.1:{port}/app:v1");
    lab.manykube(&["image", "tag", "app:v2", &name]).ok();
    let run = |verb: &str| {
        let mut command = lab.command(&["image", verb, &name]);
        command.stderr(Stdio::piped()).spawn().expect("start manykube")
    };
    let (push, pull) = (run("push"), run("pull"));
    move || {
        for (command, says) in [(pull, "sends nothing"), (push, "has not taken it within")] {
            let ended = command.wait_with_output().expect("wait for it");
            let said = String::from_utf8_lossy(&ended.stderr);
            assert!(ended.status.code() == Some(80) && said.contains(says), "{said}");
        }
        drop(listener);
        lab.manykube(&["image", "rm", &name]).ok();
    }
}

/// Nodes that were down, and nodes that are new.
fn later(lab: &Lab) {
    let file = lab.path("late.tar");
    archive::oci(&file, "example.com/late:v1", 1, Fault::None);
    lab.manykube(&["node", "stop", "m03"]).ok();
    let path = file.to_string_lossy().into_owned();
    lab.manykube(&["image", "load", "-n", "m03", &path]).exit(83);
    let ran = lab.manykube(&["image", "load", &path]).ok();
    assert!(ran.stdout.contains("minikube-m03 is not running"), "{}", ran.stdout);
    lab.manykube(&["node", "start", "m03"]).ok();
    let added = lab.manykube(&["node", "add"]).ok();
    println!("node add with images: {:.2?}", added.elapsed);
    let four = ["minikube", "minikube-m02", "minikube-m03", "minikube-m04"];
    same_everywhere(lab, &four);
    ready(lab, "ours", 4);
    ready(lab, "theirs", 4);
    ready(lab, "pulled", 4);
    lab.manykube(&["node", "delete", "m04"]).ok();
    lab.kubectl(&["delete", "ds", "ours", "theirs", "pulled"]).ok();
}

/// Each node dies in turn; what its pods wrote is there when it comes back.
fn volumes(lab: &Lab, machines: &[&str]) {
    let busybox = lab.busybox();
    let skips =
        lab.skips_on_docker("a registry that says nothing, more than one loss", "that is the command's");
    let hung = (!skips).then(|| hangs(lab));
    let machines = if skips { &machines[..1] } else { machines };
    lab.apply(&format!(
        "{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: db}}, spec: {{replicas: 3, serviceName: db, podManagementPolicy: Parallel, \
         selector: {{matchLabels: {{app: db}}}}, template: {{metadata: {{labels: {{app: db}}}}, spec: {{terminationGracePeriodSeconds: 0, \
         topologySpreadConstraints: [{{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: db}}}}}}], \
         containers: [{{name: main, image: '{busybox}', imagePullPolicy: Never, command: [sh, -c, 'hostname >> /data/log; sync; while :; do sleep 1; done'], \
         volumeMounts: [{{name: data, mountPath: /data}}]}}]}}}}, volumeClaimTemplates: [{{metadata: {{name: data}}, spec: {{accessModes: [ReadWriteOnce], \
         resources: {{requests: {{storage: 1Mi}}}}}}}}]}}}}"
    ));
    let all_ready = || {
        eventually("three pods with volumes", Duration::from_secs(180), || {
            let seen = lab.kubectl(&["get", "sts", "db", "-o", "jsonpath={.status.readyReplicas}"]);
            if seen.text() == "3" { Ok(()) } else { Err(seen.text().to_owned()) }
        });
    };
    // A pod of a node that died is called ready until its kubelet is back: asked until it answers for itself.
    let more_lines_than = |before: usize, pod: usize| {
        eventually("what a pod wrote", SOON, || {
            let log = lab.kubectl(&["exec", &format!("db-{pod}"), "--", "cat", "/data/log"]);
            let count = log.stdout.lines().count();
            if log.code == 0 && count > before {
                Ok(count)
            } else {
                Err(format!("{count} lines; {}", log.stderr))
            }
        })
    };
    all_ready();
    let written: Vec<usize> = (0..3).map(|pod| more_lines_than(0, pod)).collect();
    if let Some(hung) = hung {
        hung();
    }
    for machine in machines {
        Machine::find(lab, machine).expect("a machine").kill();
        registry::has_all(lab);
        lab.manykube(&["start"]).ok();
        all_ready();
    }
    for (pod, before) in written.into_iter().enumerate() {
        let node = lab.kubectl(&["get", "pod", &format!("db-{pod}"), "-o", "jsonpath={.spec.nodeName}"]).ok();
        // Those of nodes that were lost have begun anew.
        let lost = machines.contains(&node.text());
        more_lines_than(if lost { before } else { before - 1 }, pod);
    }
}
