//! As skaffold and Tilt do it: find the cluster, load an image, apply, wait, ask for the address, fetch it.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use system_tests::exit_codes::When;
use system_tests::machine::holder;
use system_tests::{Ran, eventually, http_get};

use super::minikube::Minikube;
use super::{SOON, VIP, exit_codes};

const IMAGE: &str = "docker.io/library/web:v1";

const TOOL: &str = r#"
set -eu
profile=$(minikube profile list -o json | tr ',{' '\n\n' | sed -n 's/^"Name":"\([^"]*\)"$/\1/p' | head -n 1)
[ "$(kubectl config current-context)" = "$profile" ]
minikube -p "$profile" image load "$2"
kubectl apply -f "$1" >&2
kubectl rollout status deployment/web --timeout=60s >&2
minikube -p "$profile" service web --url
"#;

/// An archive of an image that no node has.
fn built_image(mk: &Minikube<'_>) -> PathBuf {
    let images = mk.line("image ls").ok();
    let image = images.stdout.lines().find(|i| i.contains("/busybox:")).expect("busybox").trim();
    let archive = mk.lab.path("web.tar");
    mk.line(&format!("image tag {image} {IMAGE}")).ok();
    mk.run(&["image", "save", IMAGE, &archive.to_string_lossy()]).ok();
    mk.line(&format!("image rm {IMAGE}")).ok();
    assert!(!mk.line("image ls").ok().stdout.contains(IMAGE));
    archive
}

pub fn a_tool_deploys(mk: &Minikube<'_>) {
    let archive = built_image(mk);
    let manifest = mk.lab.path("web.yaml");
    std::fs::write(&manifest, WEB.replace("IMAGE", IMAGE)).expect("write a manifest");
    let script = mk.lab.path("bin/tool");
    std::fs::write(&script, TOOL).expect("write the script");
    let mut command = mk.command("minikube", &[]);
    let environment: Vec<_> =
        command.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect();
    command = Command::new("sh");
    let output =
        command.arg(script).arg(manifest).arg(archive).envs(environment).env_remove("MANYKUBE_HOME").output();
    let ran = Ran::new("the tool's script".into(), output.expect("run sh"), Duration::ZERO).ok();
    let url = ran.text().strip_prefix("http://").expect("an address");
    let answer = eventually("the service's address answers", SOON, || http_get(url));
    assert!(answer.contains("200 OK"), "{answer}");
    let list = mk.line("service list -o json").ok().json();
    assert!(
        list.as_array()
            .is_some_and(|l| l.iter().any(|s| s["Name"] == "web" && s["PortNames"][0] == "http/80"))
    );
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
      containers: [{ name: web, image: "IMAGE", imagePullPolicy: Never, command: [sh, -c, "mkdir /www; hostname > /www/index.html; exec httpd -f -p 8080 -h /www"] }]
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
pub fn load_balancers_move(mk: &Minikube<'_>) {
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
    exit_codes::run(mk, When::Tunnel);
    tunnel.kill().expect("end the tunnel");
    tunnel.wait().expect("wait for the tunnel");

    let had = holder(mk.lab, VIP);
    assert!(had.has_address("192.168.49.200"), "who has the virtual address announces");
    had.kill();
    let began = Instant::now();
    had.ends();
    eventually("the address answers again", SOON, || http_get("192.168.49.200:80"));
    println!("a load balancer's address is back after {:.1} s", began.elapsed().as_secs_f32());
    let next = holder(mk.lab, VIP);
    assert!(next.name != had.name && next.has_address("192.168.49.240"));
    mk.line("status").exit(7);
    mk.line("start --addons=registry").ok();
    assert_eq!(mk.line("status -f {{.APIServer}}").ok().text(), "Running");
}
