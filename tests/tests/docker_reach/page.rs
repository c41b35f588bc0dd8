//! A page of a service, for a cluster whose network is not ours.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use system_tests::{Lab, http_get};

/// Through the address that `service` prints, for as long as it runs.
pub fn by_service(lab: &Lab) {
    let image = lab.busybox();
    lab.apply(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: web, labels: {{app: web}}}}, spec: {{containers: [{{name: web, \
         image: '{image}', command: [sh, -c, 'mkdir /w; echo from afar > /w/index.html; exec httpd -f -p 80 -h /w']}}]}}}}\n\
         ---\n{{apiVersion: v1, kind: Service, metadata: {{name: web}}, spec: {{type: NodePort, selector: {{app: web}}, \
         ports: [{{port: 80}}]}}}}\n"
    ));
    lab.kubectl(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"]).ok();
    let mut command = lab.command(&["service", "web", "--url"]);
    let mut service = command.stdout(Stdio::piped()).spawn().expect("run manykube");
    let mut line = String::new();
    let mut printed = BufReader::new(service.stdout.take().expect("its output"));
    printed.read_line(&mut line).expect("an address");
    let address = line.trim().strip_prefix("http://").expect("an address").to_owned();
    let page = http_get(&address);
    let pid = Pid::from_raw(i32::try_from(service.id()).expect("a pid"));
    kill(pid, Signal::SIGTERM).expect("end it");
    assert!(service.wait().expect("its end").success());
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    assert!(page.as_ref().is_ok_and(|page| page.contains("from afar")), "{page:?}");
    assert!(http_get(&address).is_err(), "{address} is still there");
}
