//! Who is let in by the API server, the kubelet and etcd; and that another cluster's administrator is a stranger here.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use system_tests::{Lab, Layers};

use super::{CONTROL_PLANE, WORKER};

/// The status of an answer; 0 when there was none.
fn status(url: &str, more: &[&str]) -> u16 {
    let mut curl = Command::new("curl");
    curl.args(["-sk", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code}"]).args(more).arg(url);
    let output = curl.output().expect("run curl");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a status")
}

fn by_certificate(url: &str, profile: &Path) -> u16 {
    let (cert, key) = (profile.join("client.crt"), profile.join("client.key"));
    status(url, &["--cert", &cert.to_string_lossy(), "--key", &key.to_string_lossy()])
}

pub fn strangers_are_refused() {
    let secrets = format!("https://{CONTROL_PLANE}:8443/api/v1/secrets");
    assert_eq!(status(&secrets, &[]), 403, "without a certificate");
    assert_eq!(
        status(&secrets, &["-H", "Authorization: Bearer abcdef.0123456789abcdef"]),
        401,
        "by a wrong token"
    );
    assert_eq!(status(&format!("https://{WORKER}:10250/pods"), &[]), 401, "the kubelet");
    assert_eq!(status(&format!("https://{CONTROL_PLANE}:2379/health"), &[]), 0, "etcd");
}

/// Starts one in the same home.
pub fn another_cluster(lab: &Lab, profile: &str, layers: &Layers) {
    lab.manykube(&["start", "-p", "other"]).ok();
    layers.assert_unchanged_in("other");
    let secrets = format!("https://{CONTROL_PLANE}:8443/api/v1/secrets");
    let profiles = lab.home().join("profiles");
    assert_eq!(by_certificate(&secrets, &profiles.join(profile)), 200, "its own administrator");
    assert_eq!(
        by_certificate(&secrets, &profiles.join("other")),
        401,
        "the administrator of another cluster"
    );
    // Its nodes reach none of this one's.
    let reaches = |address: Ipv4Addr, port: u16| {
        let connect = format!("timeout 3 bash -c '</dev/tcp/{address}/{port}'");
        lab.manykube(&["ssh", "-p", "other", "--", &connect]).code == 0
    };
    assert!(reaches(Ipv4Addr::new(192, 168, 58, 2), 8443), "its own");
    for (address, port) in [(CONTROL_PLANE, 8443), (WORKER, 10250)] {
        assert!(!reaches(address, port), "{address}:{port} is reached from another cluster");
    }
    lab.manykube(&["delete", "-p", "other"]).ok();
}
