//! Profiles that others made: minikube's files, its authority and its machines' records in one home; an
//! earlier manykube's file; and one of a version that we do not know yet.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use system_tests::Lab;

/// As minikube v1.30 writes it: the port is the node's, and there is no virtual address.
fn minikube_v1_30() -> Value {
    let node = |name: &str, last: u8, control: bool| {
        json!({
            "Name": name, "IP": format!("192.168.49.{last}"), "Port": if control { 8443 } else { 0 },
            "KubernetesVersion": "v1.26.3", "ContainerRuntime": "docker", "ControlPlane": control, "Worker": true,
        })
    };
    json!({
        "Name": "minikube", "KeepContext": false, "EmbedCerts": false, "Memory": 2200, "CPUs": 2,
        "DiskSize": 20000, "Driver": "docker", "CertExpiration": 94_608_000_000_000_000_i64,
        "KubernetesConfig": {
            "KubernetesVersion": "v1.26.3", "ClusterName": "minikube", "Namespace": "default",
            "APIServerName": "minikubeCA", "DNSDomain": "cluster.local", "ContainerRuntime": "docker",
            "NetworkPlugin": "cni", "FeatureGates": "", "ServiceCIDR": "10.96.0.0/12", "CNI": "kindnet",
            "ExtraOptions": [{ "Component": "kubelet", "Key": "max-pods", "Value": "42" }], "NodePort": 8443,
        },
        "Nodes": [node("", 2, true), node("m02", 3, false)],
        "Addons": { "default-storageclass": true, "storage-provisioner": true },
        "VerifyComponents": { "apiserver": true, "system_pods": true },
    })
}

fn write(path: &Path, doc: &Value) -> String {
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("make it");
    let text = serde_json::to_string_pretty(doc).expect("JSON");
    std::fs::write(path, &text).expect("write a file of another's");
    text
}

fn openssl(args: &[&str]) {
    assert!(Command::new("openssl").args(args).output().expect("openssl").status.success(), "{args:?}");
}

#[test]
fn what_others_wrote_is_read_kept_and_brought_up_to_date() {
    let lab = Lab::new();
    let home = lab.home();
    let profile = home.join("profiles/minikube");
    let config = profile.join("config.json");
    let old = write(&config, &minikube_v1_30());
    let record = home.join("machines/minikube/config.json");
    let machine = write(&record, &json!({ "ConfigVersion": 3, "DriverName": "docker", "Name": "minikube" }));
    let (key, cert) = (home.join("ca.key"), home.join("ca.crt"));
    let (key, cert) = (key.to_string_lossy(), cert.to_string_lossy());
    openssl(&["genrsa", "-traditional", "-out", &key, "2048"]);
    openssl(&[
        "req",
        "-x509",
        "-new",
        "-key",
        &key,
        "-subj",
        "/CN=minikubeCA",
        "-days",
        "3650",
        "-out",
        &cert,
    ]);
    let authority = std::fs::read(&*cert).expect("the authority");

    // Looking changes nothing.
    assert_eq!(lab.manykube(&["node", "list"]).ok().text().lines().count(), 2);
    let listed = lab.manykube(&["profile", "list", "-o", "json"]).ok().json();
    assert_eq!(listed["valid"][0]["Config"]["Driver"], "docker");
    let status = lab.manykube(&["status", "-n", "minikube", "--format", "{{.Host}}"]).exit(7);
    assert_eq!(status.text(), "Nonexistent");
    assert_eq!(std::fs::read_to_string(&config).expect("config.json"), old);

    let started = lab.manykube(&["start"]).ok();
    assert!(started.stderr.contains("was made by minikube with the driver \"docker\""), "{}", started.stderr);
    let nodes = lab.kubectl(&["get", "nodes", "-o", "json"]).ok().json();
    let names: Vec<&str> = nodes["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|n| n["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["minikube", "minikube-m02"]);
    assert_eq!(nodes["items"][1]["status"]["capacity"]["pods"], "42", "its options apply");
    assert_eq!(std::fs::read(&*cert).expect("the authority"), authority, "minikube's own stays");
    assert_ne!(
        std::fs::read(profile.join("ca.crt")).expect("the cluster's"),
        authority,
        "a new one has its own"
    );
    let kept = std::fs::read_to_string(profile.join("config.json.minikube")).expect("the backup");
    assert_eq!(kept, old);
    let aside = home.join("machines/minikube.minikube/config.json");
    assert_eq!(std::fs::read_to_string(aside).expect("minikube's machine"), machine);

    // From here it is ours: no word of minikube any more, and what can be done with any cluster.
    let again = lab.manykube(&["start"]).ok();
    assert_eq!(again.stderr.trim(), "");
    lab.manykube(&["node", "add"]).ok();

    earlier_versions_of_ours(&lab, &config);
    earlier_stores_of_images(&lab);
    newer_versions_of_ours(&lab, &config);
}

/// The first version knew sizes of nodes and nothing else of them.
fn earlier_versions_of_ours(lab: &Lab, config: &Path) {
    let mut doc: Value =
        serde_json::from_str(&std::fs::read_to_string(config).expect("config")).expect("JSON");
    let ours = doc["Manykube"].as_object_mut().expect("our part");
    ours.retain(|key, _| ["SchemaVersion", "Subnet", "PodCIDR", "NodeDefaults"].contains(&key.as_str()));
    ours.insert("Nodes".into(), json!({ "m02": { "CPUs": null, "Memory": null } }));
    write(config, &doc);
    assert_eq!(lab.manykube(&["node", "list"]).ok().text().lines().count(), 3);
    lab.manykube(&["start"]).ok();
}

/// Blobs and layers of the node image were hard links to it, which the node could write to.
fn earlier_stores_of_images(lab: &Lab) {
    lab.manykube(&["stop"]).ok();
    let store = lab.home().join("machines/minikube-m02/var/lib/containerd");
    let record = std::fs::read(lab.home().join("machines/minikube-m02/config.json")).expect("the record");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    let image =
        Path::new(record["Driver"]["ImageRootfs"].as_str().expect("a path")).join("var/lib/containerd");
    // The other names are not the cache's, at which other tests look.
    let script = "set -e; cd \"$1\"; for l in $(find */blobs */snapshots -type l | grep -e /sha256/ -e /fs$); do \
                  from=$2/$l; [ -f $from ] && [ $(stat -c %s $from) -lt 9000 ] || [ -e $from/coredns ] || continue; \
                  mkdir -p \"$3/$(dirname $l)\"; cp -a $from $3/$l; rm $l; cp -al $3/$l $l; echo $l; done";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, "-"]).args([&store, &image, &lab.path("image")]);
    let made = bash.output().expect("bash");
    let made = String::from_utf8(made.stdout).expect("text");
    assert!(made.lines().count() > 10 && made.contains("/fs"), "{made}");
    let shared = || {
        let find = Command::new("find").arg(&store).args(["-type", "f", "-links", "+1"]).output();
        find.expect("find").stdout.len()
    };
    assert!(shared() > 0);
    // That version did not note that it had filled the store.
    std::fs::remove_file(store.with_extension("filled")).expect("remove the note");
    lab.manykube(&["start"]).ok();
    assert_eq!(shared(), 0, "what was linked to the image is the image's again");
    for link in made.lines() {
        assert!(store.join(link).is_symlink(), "{link}");
    }
    lab.manykube(&["ssh", "-n", "m02", "--", "ctr -n k8s.io images check | grep coredns | grep -w complete"])
        .ok();
}

fn newer_versions_of_ours(lab: &Lab, config: &Path) {
    let good = std::fs::read_to_string(config).expect("config");
    let mut doc: Value = serde_json::from_str(&good).expect("JSON");
    doc["Manykube"]["SchemaVersion"] = 999.into();
    let newer = write(config, &doc);
    for command in [&["start"][..], &["stop"], &["node", "add"], &["status"]] {
        let refused = lab.manykube(command).exit(38);
        assert!(refused.stderr.contains("use a newer manykube"), "{}", refused.stderr);
    }
    assert_eq!(std::fs::read_to_string(config).expect("config"), newer, "nothing was changed");
    std::fs::write(config, good).expect("put it back");
}
