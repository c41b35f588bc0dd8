//! The command line as tools drive it, under the name `minikube`, on five nodes. The parts share a cluster, so
//! they are one test.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use system_tests::machine::holder;
use system_tests::{Lab, Ran, eventually, http_get};

const SOON: Duration = Duration::from_secs(60);
const VIP: &str = "192.168.49.254";

/// A `minikube` and a `kubectl` on the PATH, and the home that goes with the first name.
struct Minikube<'a> {
    lab: &'a Lab,
}

impl Minikube<'_> {
    fn new(lab: &Lab) -> Minikube<'_> {
        for dir in [".minikube", "bin"] {
            std::fs::create_dir(lab.path(dir)).expect("make a directory");
        }
        // The lab's own eyes look for machines below its home.
        symlink(lab.path(".minikube"), lab.home()).expect("link the home");
        for name in ["minikube", "kubectl"] {
            symlink(Lab::program(), lab.path("bin").join(name)).expect("link the program");
        }
        Minikube { lab }
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.lab.command(args);
        let environment: Vec<_> =
            command.get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect();
        command = Command::new(self.lab.path("bin").join(program));
        command.args(args).stdin(Stdio::null());
        for (name, value) in environment {
            value.map(|value| command.env(name, value));
        }
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.lab.path("bin").display());
        command.env("MINIKUBE_HOME", self.lab.path("")).env_remove("MANYKUBE_HOME").env("PATH", path);
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        let began = Instant::now();
        let output = self.command("minikube", args).output().expect("run minikube");
        Ran::new(format!("minikube {}", args.join(" ")), output, began.elapsed())
    }

    fn line(&self, line: &str) -> Ran {
        self.run(&line.split(' ').collect::<Vec<_>>())
    }

    fn kubectl(&self, args: &[&str]) -> Ran {
        let output = self.command("kubectl", args).output().expect("run kubectl");
        Ran::new(format!("kubectl {}", args.join(" ")), output, Duration::ZERO)
    }

    fn home(&self) -> PathBuf {
        self.lab.path(".minikube")
    }
}

impl Drop for Minikube<'_> {
    fn drop(&mut self) {
        let deleted = self.line("delete --all");
        if deleted.code != 0 && !std::thread::panicking() {
            panic!("the clusters could not be removed: {}", deleted.stderr);
        }
    }
}

#[test]
fn what_tools_see() {
    let lab = Lab::new();
    let mk = Minikube::new(&lab);
    start_tells_its_steps(&mk);
    tools_recognise_it(&mk);
    answers_are_fast(&mk);
    files_are_copied(&mk);
    a_tool_deploys(&mk);
    load_balancers_move(&mk);
    addons(&mk);
    paused(&mk);
    a_stop_comes_later(&mk);
}

fn start_tells_its_steps(mk: &Minikube<'_>) {
    let started = mk.line("start --ha --nodes=5 --output=json --user=testUser").ok();
    println!("start of five nodes: {:.1} s", started.elapsed.as_secs_f32());
    let mut last = -1;
    for line in started.stdout.lines() {
        let event: Value = serde_json::from_str(line).expect("one event per line");
        assert_eq!(
            (&event["specversion"], &event["datacontenttype"]),
            (&"1.0".into(), &"application/json".into())
        );
        let data = event["data"].as_object().expect("data");
        assert!(data.values().all(Value::is_string), "{line}");
        if event["type"] == "io.k8s.sigs.minikube.step" {
            let number: i32 = data["currentstep"].as_str().and_then(|n| n.parse().ok()).expect("a number");
            assert!(number > last, "{line}");
            assert_eq!(data["totalsteps"], "19");
            last = number;
        }
    }
    assert_eq!(last, 19, "the last step is Done");
    let audit = std::fs::read_to_string(mk.home().join("logs/audit.json")).expect("the audit log");
    assert!(audit.contains("testUser") && audit.contains("io.k8s.sigs.minikube.audit"), "{audit}");
    assert!(mk.home().join("logs/lastStart.txt").exists());
}

/// What skaffold and Tilt look at before they believe that a context is minikube's.
fn tools_recognise_it(mk: &Minikube<'_>) {
    assert!(mk.line("version").ok().stdout.starts_with("minikube version: v"));
    let version = mk.line("version -o json").ok().json();
    assert!(version.as_object().is_some_and(|v| v.values().all(Value::is_string)), "{version}");
    let config = mk.kubectl(&["config", "view", "-o", "json"]).ok().json();
    let authority = config["clusters"][0]["cluster"]["certificate-authority"].as_str().unwrap_or_default();
    assert!(authority.contains("/.minikube/"), "{authority}");
    assert_eq!(config["clusters"][0]["cluster"]["server"], format!("https://{VIP}:8443"));
    let profiles = mk.line("profile list -o json").ok().json();
    let profile = &profiles["valid"][0];
    assert_eq!((&profile["Name"], &profile["Status"]), (&"minikube".into(), &"HAppy".into()));
    let nodes = profile["Config"]["Nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 5);
    assert!(nodes.iter().all(|n| n["IP"].is_string() && n["Port"].is_number()), "{nodes:?}");
    assert_eq!(mk.line("status -o json").ok().json().as_array().map(Vec::len), Some(5));
    let one = mk.line("status -o json -n m04").ok().json();
    assert_eq!((&one["Name"], &one["Worker"]), (&"minikube-m04".into(), &true.into()));
    let table = mk.line("profile list").ok().stdout;
    assert!(table.lines().nth(3).is_some_and(|l| l.starts_with("│ minikube │ native │")), "{table}");
}

fn answers_are_fast(mk: &Minikube<'_>) {
    for line in ["status", "profile list -o json", "node list"] {
        let mut times: Vec<u128> = (0..10).map(|_| mk.line(line).ok().elapsed.as_millis()).collect();
        times.sort_unstable();
        println!("{line}: {} to {} ms, ten times", times[0], times[9]);
    }
}

fn files_are_copied(mk: &Minikube<'_>) {
    let (here, back) = (mk.lab.path("here.txt"), mk.lab.path("back.txt"));
    std::fs::write(&here, "a file").expect("write a file");
    mk.run(&["cp", &here.to_string_lossy(), "/home/docker/there.txt"]).ok();
    mk.line("cp minikube:/home/docker/there.txt m04:/var/tmp/new/dir/").ok();
    mk.run(&["cp", "m04:/var/tmp/new/dir/there.txt", &back.to_string_lossy()]).ok();
    assert_eq!(std::fs::read_to_string(back).expect("the copy"), "a file");
    mk.line("cp m04:/nowhere x").exit(35);
    mk.line("cp m09:/etc/hosts x").exit(85);
}

/// Find the cluster, apply, wait, ask for the address, fetch it.
const TOOL: &str = r#"
set -eu
profile=$(minikube profile list -o json | tr ',{' '\n\n' | sed -n 's/^"Name":"\([^"]*\)"$/\1/p' | head -n 1)
[ "$(kubectl config current-context)" = "$profile" ]
kubectl apply -f "$1" >&2
kubectl rollout status deployment/web --timeout=60s >&2
minikube -p "$profile" service web --url
"#;

fn a_tool_deploys(mk: &Minikube<'_>) {
    let images = mk.line("ssh -- ctr -n k8s.io images ls -q").ok();
    let image = images.stdout.lines().find(|i| i.contains("/busybox:")).expect("busybox").trim();
    let manifest = mk.lab.path("web.yaml");
    std::fs::write(&manifest, WEB.replace("IMAGE", image)).expect("write a manifest");
    let script = mk.lab.path("bin/tool");
    std::fs::write(&script, TOOL).expect("write the script");
    let mut command = mk.command("minikube", &[]);
    let environment: Vec<_> =
        command.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect();
    command = Command::new("sh");
    let output = command.arg(script).arg(manifest).envs(environment).env_remove("MANYKUBE_HOME").output();
    let ran = Ran::new("the tool's script".into(), output.expect("run sh"), Duration::ZERO).ok();
    let url = ran.text().strip_prefix("http://").expect("an address");
    let answer = eventually("the service's address answers", SOON, || http_get(url));
    assert!(answer.contains("200 OK"), "{answer}");
    let list = mk.line("service list -o json").ok().json();
    assert!(
        list.as_array()
            .is_some_and(|l| l.iter().any(|s| s["Name"] == "web" && s["PortNames"][0] == "http/80"))
    );
    mk.line("service nothing --url --wait=0").exit(115);
}

const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      # Where the test kills no machine.
      nodeName: minikube-m05
      terminationGracePeriodSeconds: 0
      containers: [{ name: web, image: "IMAGE", command: [sh, -c, "mkdir /www; hostname > /www/index.html; exec httpd -f -p 8080 -h /www"] }]
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: LoadBalancer, selector: { app: web }, ports: [{ name: http, port: 80, targetPort: 8080 }] }
---
apiVersion: v1
kind: Service
metadata: { name: fixed }
spec: { type: LoadBalancer, loadBalancerIP: 192.168.49.240, selector: { app: web }, ports: [{ port: 80, targetPort: 8080 }] }
"#;

/// The address is the host's to use at once, and outlives the machine that announces it.
fn load_balancers_move(mk: &Minikube<'_>) {
    for (service, want) in [("web", "192.168.49.200"), ("fixed", "192.168.49.240")] {
        let path = "jsonpath={.status.loadBalancer.ingress[0].ip}";
        let ip = eventually("an address", SOON, || {
            let ip = mk.kubectl(&["get", "service", service, "-o", path]).ok().stdout;
            if ip.is_empty() { Err("none yet".to_owned()) } else { Ok(ip) }
        });
        assert_eq!(ip, want);
        eventually("the address answers", SOON, || http_get(&format!("{ip}:80")));
    }
    let mut tunnel =
        mk.command("minikube", &["tunnel"]).stdout(Stdio::piped()).spawn().expect("start a tunnel");
    // It reports when it has the lock.
    let mut report = String::new();
    let output = tunnel.stdout.take().expect("the tunnel's report");
    BufReader::new(output).read_line(&mut report).expect("read the report");
    assert!(report.starts_with("Status:"), "{report}");
    mk.line("tunnel").exit(111);
    tunnel.kill().expect("end the tunnel");
    tunnel.wait().expect("wait for the tunnel");

    let had = holder(mk.lab, VIP);
    assert!(had.has_address("192.168.49.200"), "who has the virtual address announces");
    had.kill();
    let began = Instant::now();
    eventually("the machine is gone", SOON, || if had.is_gone() { Ok(()) } else { Err(had.name.clone()) });
    eventually("the address answers again", SOON, || http_get("192.168.49.200:80"));
    println!("a load balancer's address is back after {:.1} s", began.elapsed().as_secs_f32());
    let next = holder(mk.lab, VIP);
    assert!(next.name != had.name && next.has_address("192.168.49.240"));
    mk.line("status").exit(7);
    mk.line("start").ok();
    assert_eq!(mk.line("status -f {{.APIServer}}").ok().text(), "Running");
}

fn addons(mk: &Minikube<'_>) {
    let list = mk.line("addons list -o json").ok().json();
    for (name, state) in
        [("storage-provisioner", "enabled"), ("dashboard", "disabled"), ("ingress-dns", "disabled")]
    {
        assert_eq!(list[name]["Status"], state, "{name}");
    }
    mk.line("addons enable frobnicator").exit(10);
    mk.line("addons disable frobnicator").exit(116);
    mk.line("addons disable default-storageclass").ok();
    assert_eq!(mk.kubectl(&["get", "storageclass", "-o", "name"]).ok().stdout, "");
    mk.line("addons enable default-storageclass").ok();
    assert_eq!(
        mk.kubectl(&["get", "storageclass", "-o", "name"]).ok().text(),
        "storageclass.storage.k8s.io/standard"
    );
}

fn paused(mk: &Minikube<'_>) {
    mk.line("pause").ok();
    assert_eq!(mk.line("status -f {{.APIServer}}/{{.Kubelet}}").exit(2).text(), "Paused/Stopped");
    assert_eq!(
        mk.line("profile list -o json").ok().json()["valid"][0]["Status"],
        "Stopped",
        "as in minikube"
    );
    mk.line("service list").exit(103);
    mk.line("addons enable registry").exit(11);
    eventually("what runs in other namespaces goes on", SOON, || http_get("192.168.49.200:80"));
    mk.line("unpause").ok();
    eventually("it goes on", SOON, || match mk.line("status") {
        ran if ran.code == 0 => Ok(()),
        ran => Err(ran.stdout),
    });
    mk.kubectl(&["get", "nodes"]).ok();
}

fn a_stop_comes_later(mk: &Minikube<'_>) {
    let pid = mk.home().join("profiles/minikube/pid");
    mk.line("stop --schedule=1h").ok();
    let written = std::fs::read_to_string(&pid).expect("a pid");
    assert!(written.bytes().all(|b| b.is_ascii_digit()), "{written:?}");
    assert!(mk.line("status").ok().stdout.contains("timeToStop: "));
    mk.line("stop --cancel-scheduled").ok();
    assert!(!pid.exists() && !PathBuf::from(format!("/proc/{written}/exe")).exists());
    mk.line("stop --schedule=1s").ok();
    eventually("the cluster is stopped", SOON, || match mk.line("status -f {{.Host}}") {
        ran if ran.text() == "Stopped" => Ok(()),
        ran => Err(ran.stdout),
    });
    eventually("its context is gone", SOON, || match mk.kubectl(&["config", "get-contexts", "minikube"]) {
        ran if ran.code == 1 => Ok(()),
        ran => Err(ran.stdout),
    });
}
