//! Files and events have minikube's keys, each with its type. The lists are those of minikube's Go structures.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Map, Value};

use super::minikube::Minikube;

const STRINGS: &str = "Name MinikubeISO KicBaseImage Driver HyperkitVpnKitSock HostOnlyCIDR HypervVirtualSwitch \
    HypervExternalAdapter KVMNetwork KVMQemuURI NFSSharesRoot UUID HostOnlyNicType NatNicType SSHIPAddress SSHUser \
    SSHKey ListenAddress Network Subnet MountString Mount9PVersion MountGID MountIP MountType MountUID BinaryMirror \
    CustomQemuFirmwarePath SocketVMnetClientPath SocketVMnetPath StaticIP SSHAuthSock GPUs";
const BOOLS: &str = "KeepContext EmbedCerts HypervUseExternalSwitch KVMGPU KVMHidden DisableDriverMounts NoVTXCheck \
    DNSProxy HostDNSResolver MultiNodeRequested DisableOptimizations DisableMetrics DisableCoreDNSLog Rosetta \
    VmnetOffloading MDNS";
/// The last three are nanoseconds.
const INTS: &str = "Memory CPUs DiskSize KVMNUMACount APIServerPort SSHPort ExtraDisks MountMSize MountPort \
    SSHAgentPID StartHostTimeout CertExpiration AutoPauseInterval";
const LISTS: &str = "HyperkitVSockPorts DockerEnv ContainerVolumeMounts InsecureRegistry RegistryMirror DockerOpt \
    NFSShare ExposedPorts MountOptions DNSServers";
const MAPS: &str = "Addons VerifyComponents";
const MAPS_OR_NULL: &str = "CustomAddonImages CustomAddonRegistries ScheduledStop";
const OBJECTS: &str = "KubernetesConfig";

const KUBERNETES_STRINGS: &str = "KubernetesVersion ClusterName Namespace APIServerHAVIP APIServerName DNSDomain \
    ContainerRuntime CRISocket NetworkPlugin FeatureGates ServiceCIDR ImageRepository LoadBalancerStartIP \
    LoadBalancerEndIP CustomIngressCert RegistryAliases CNI";
const KUBERNETES_BOOLS: &str = "ShouldLoadCachedImages EnableDefaultCNI";
const KUBERNETES_LISTS: &str = "APIServerNames APIServerIPs ExtraOptions";

const NODE_STRINGS: &str = "Name IP KubernetesVersion ContainerRuntime";
const NODE_BOOLS: &str = "ControlPlane Worker";

type Is = fn(&Value) -> bool;
const STRING: Is = Value::is_string;
const BOOL: Is = Value::is_boolean;
const INT: Is = Value::is_i64;
const LIST: Is = |v| v.is_null() || v.as_array().is_some_and(|l| !l.is_empty());
const MAP: Is = Value::is_object;
const MAP_OR_NULL: Is = |v| v.is_null() || v.is_object();

/// Has `object` these keys of these types? What else it has.
fn others(object: &Value, lists: &[(&str, Is)]) -> Vec<String> {
    let mut left = object.as_object().cloned().unwrap_or_default();
    for (keys, is) in lists {
        for key in keys.split_whitespace() {
            let value = left.shift_remove(key).unwrap_or_else(|| panic!("there is no {key} in {object}"));
            assert!(is(&value), "{key} is {value}");
        }
    }
    left.into_iter().map(|(key, _)| key).collect()
}

pub fn files_and_events(mk: &Minikube<'_>) {
    let profile = mk.home().join("profiles/minikube");
    let text = std::fs::read_to_string(profile.join("config.json")).expect("config.json");
    let config: Value = serde_json::from_str(&text).expect("config.json is JSON");
    cluster_config(&config);

    let list = mk.line("profile list -o json").ok().json();
    let keys = [("Name Status", STRING), ("Active ActiveKubeContext", BOOL), ("Config", MAP)];
    assert_eq!(others(&list["valid"][0], &keys), [""; 0], "nothing else is in a profile");
    cluster_config(&list["valid"][0]["Config"]);

    let events = std::fs::read_to_string(profile.join("events.json")).expect("events.json");
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).expect("one event per line")).collect();
    events.iter().for_each(event);
    let last = events.last().expect("events");
    assert_eq!((&last["data"]["name"], &last["data"]["currentstep"]), (&"Done".into(), &"19".into()));

    for node in ["minikube", "minikube-m04"] {
        let dir = mk.home().join("machines").join(node);
        let record = std::fs::read_to_string(dir.join("config.json")).expect("the machine's record");
        assert!(serde_json::from_str::<Map<String, Value>>(&record).is_ok(), "{record}");
        for secret in ["config.json", "id_rsa"] {
            let mode = std::fs::metadata(dir.join(secret)).expect(secret).permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{node}/{secret}");
        }
    }
    assert!(mk.home().join("logs/audit.json").exists());
    for file in ["ca.crt", "ca.key", "proxy-client-ca.crt", "proxy-client-ca.key"] {
        assert!(profile.join(file).exists() && !mk.home().join(file).exists(), "{file}");
    }
    for file in ["client.crt", "client.key", "apiserver.crt", "apiserver.key", "proxy-client.crt"] {
        assert!(profile.join(file).exists(), "{file}");
    }
    audit(mk);
}

fn cluster_config(config: &Value) {
    let lists = [
        (STRINGS, STRING),
        (BOOLS, BOOL),
        (INTS, INT),
        (LISTS, LIST),
        (MAPS, MAP),
        (MAPS_OR_NULL, MAP_OR_NULL),
        (OBJECTS, MAP),
        ("Nodes", Value::is_array as Is),
    ];
    assert_eq!(others(config, &lists), ["Manykube"], "one key is ours");
    assert!(config["Addons"].as_object().is_some_and(|a| a.values().all(Value::is_boolean)));
    assert!(config["VerifyComponents"].as_object().is_some_and(|a| a.values().all(Value::is_boolean)));
    let kubernetes = [(KUBERNETES_STRINGS, STRING), (KUBERNETES_BOOLS, BOOL), (KUBERNETES_LISTS, LIST)];
    assert_eq!(others(&config["KubernetesConfig"], &kubernetes), [""; 0]);
    let node = [(NODE_STRINGS, STRING), (NODE_BOOLS, BOOL), ("Port", INT)];
    for entry in config["Nodes"].as_array().expect("nodes") {
        assert_eq!(others(entry, &node), [""; 0], "nothing else is a node's");
    }
}

/// A CloudEvent; every value of its data is a string.
pub fn event(event: &Value) {
    let keys = [("specversion id source type datacontenttype", STRING), ("data", MAP)];
    assert_eq!(others(event, &keys), [""; 0], "{event}");
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["source"], "https://minikube.sigs.k8s.io/");
    assert_eq!(event["datacontenttype"], "application/json");
    let kind = event["type"].as_str().and_then(|t| t.strip_prefix("io.k8s.sigs.minikube.")).expect("a type");
    let fatal = event["data"].get("exitcode").is_some();
    let data = match kind {
        "step" => "currentstep totalsteps name message",
        "info" | "warning" => "message",
        "error" if fatal => "message exitcode name advice url issues",
        "error" => "message",
        "audit" => "args command endTime id profile startTime user version",
        other => panic!("an event of the type {other}"),
    };
    assert_eq!(others(&event["data"], &[(data, STRING)]), [""; 0], "{event}");
}

fn audit(mk: &Minikube<'_>) {
    let log = std::fs::read_to_string(mk.home().join("logs/audit.json")).expect("the audit log");
    for line in log.lines() {
        event(&serde_json::from_str(line).expect("one event per line"));
    }
}
