use super::How::{Never, Run, Test};
use super::When::{Broken, Demo, Nobody, Nothing, Paused, Running, Tunnel};
use super::{How, Row, Wrong};

const fn row(id: &'static str, code: i32, how: How) -> Row {
    Row { id, code, how }
}

/// Podman and virtual machines are not driven.
const DOCKER: How = Never("an engine that cannot be used is DRV_NOT_HEALTHY");
const FAILS_BY_ITSELF: How =
    Never("something in the cluster must fail by itself; what can be broken on purpose is mended");

/// In the order of minikube's list.
pub const ROWS: &[Row] = &[
    // status: a sum of bits.
    row("a host that does not run", 7, Run(Demo, "status -p demo", "host: Nonexistent")),
    row("a paused API server", 2, Run(Paused, "status", "apiserver: Paused")),
    row(
        "a kubeconfig that points elsewhere",
        4,
        Run(Running, "KUBECONFIG=$DIR/none status", "kubeconfig: Misconfigured"),
    ),
    row("only the host's bit", 1, Never("a host that does not run has no kubelet either")),
    // What commands need of a cluster.
    row("GUEST_PROFILE_NOT_FOUND", 85, Run(Nothing, "ip -p gone", "Profile \"gone\" not found")),
    row("GUEST_HOST_NOT_RUNNING", 83, Run(Demo, "ip -p demo", "host is not running: state=Nonexistent")),
    row("K8S_APISERVER_NOT_RUNNING", 103, Run(Paused, "service list", "is paused")),
    row(
        "the API server's state is an error",
        100,
        Never("an API server that answers with errors is not running: 103"),
    ),
    row(
        "K8S_NO_CONTROL_PLANE",
        105,
        Run(Broken(Wrong::NoControlPlane), "ip -p demo", "has no control plane"),
    ),
    // MK: of the program.
    row("MK_USAGE", 14, Run(Nothing, "start --memory=lots", "MK_USAGE")),
    row("an unknown flag", 14, Run(Nothing, "start --frob", "Error: unknown flag")),
    row("MK_USAGE_NO_PROFILE", 14, Run(Nothing, "profile list", "MK_USAGE_NO_PROFILE")),
    row("MK_PATCH_NOT_FOUND", 14, Never("no option names a file of patches: they stand in the cluster file")),
    row("MK_INTERRUPTED", 130, Test("tests/tests/interrupted.rs (minikube: 130 or 11)")),
    row("MK_UNIMPLEMENTED", 16, Run(Nothing, "start --no-kubernetes", "MK_UNIMPLEMENTED")),
    row("MK_RESERVED_PROFILE", 11, Run(Nothing, "profile status", "MK_RESERVED_PROFILE")),
    row(
        "MK_PROFILE_LOCKED",
        11,
        Test("tests/tests/interrupted.rs (ours: minikube waits or fails otherwise)"),
    ),
    row("MK_ADDON_ENABLE", 10, Run(Nothing, "addons enable frob", "MK_ADDON_ENABLE")),
    row("MK_ADDON_DISABLE", 10, FAILS_BY_ITSELF),
    row("MK_ADDON_ENABLE_PAUSED", 11, Run(Paused, "addons enable registry", "MK_ADDON_ENABLE_PAUSED")),
    row("MK_ADDON_DISABLE_PAUSED", 11, Run(Paused, "addons disable registry", "MK_ADDON_DISABLE_PAUSED")),
    row("MK_COMMAND_RUNNER", 10, Never("there is none to be had: machines are entered")),
    row("MK_CONFIG_SET", 10, Never("a wrong key or value is MK_USAGE, a file that is none HOST_CONFIG_LOAD")),
    row("MK_CONFIG_UNSET", 10, Never("as MK_CONFIG_SET")),
    row("MK_CONFIG_VIEW", 10, Never("as MK_CONFIG_SET")),
    row("MK_DAEMONIZE", 10, FAILS_BY_ITSELF),
    row("MK_INTERNAL", 10, FAILS_BY_ITSELF),
    row("MK_K8S_CLIENT", 109, Never("a cluster without certificate is one whose API does not answer: 103")),
    // RSRC: of what the host has.
    row("RSRC_INSUFFICIENT_CORES", 29, Run(Nothing, "start --cpus=99999", "RSRC_INSUFFICIENT_CORES")),
    row("RSRC_DOCKER_CORES", 29, DOCKER),
    row(
        "RSRC_INSUFFICIENT_REQ_MEMORY",
        23,
        Run(Nothing, "start --memory=1024", "RSRC_INSUFFICIENT_REQ_MEMORY"),
    ),
    row(
        "RSRC_INSUFFICIENT_SYS_MEMORY",
        23,
        Run(Running, "start -p big --control-planes=250 --dry-run", "RSRC_INSUFFICIENT_SYS_MEMORY"),
    ),
    row("RSRC_INSUFFICIENT_CONTAINER_MEMORY", 23, DOCKER),
    row("RSRC_DOCKER_MEMORY", 23, DOCKER),
    row("RSRC_OVER_ALLOC_MEM", 10, Run(Nothing, "start --memory=3999g", "RSRC_OVER_ALLOC_MEM")),
    row("RSRC_DOCKER_STORAGE", 26, Test("tests/tests/docker/refused.rs")),
    row("RSRC_PODMAN_STORAGE", 26, DOCKER),
    row(
        "RSRC_INSUFFICIENT_STORAGE",
        26,
        Run(Nothing, "MINIKUBE_TEST_AVAILABLE_STORAGE=1 start --dry-run", "RSRC_INSUFFICIENT_STORAGE"),
    ),
    // HOST: of files of the host.
    row("HOST_HOME_MKDIR", 37, Run(Nothing, "MANYKUBE_HOME=/dev/null/home status", "HOST_HOME_MKDIR")),
    row("HOST_CONFIG_LOAD", 38, Run(Broken(Wrong::Config), "status -p demo", "HOST_CONFIG_LOAD")),
    row("HOST_HOME_PERMISSION", 37, Run(Broken(Wrong::Mode), "status -p demo", "HOST_HOME_PERMISSION")),
    row(
        "HOST_KUBECONFIG_UPDATE",
        38,
        Run(Running, "KUBECONFIG=$DIR/broken update-context", "HOST_KUBECONFIG_UPDATE"),
    ),
    row(
        "HOST_KUBECONFIG_DELETE_CTX",
        38,
        Never("delete warns and goes on: the cluster is gone, the broken file is its user's"),
    ),
    row("HOST_PATH_MISSING", 35, Run(Nothing, "node-image import /nowhere", "HOST_PATH_MISSING")),
    row("HOST_PATH_STAT", 30, FAILS_BY_ITSELF),
    row("HOST_PURGE", 30, FAILS_BY_ITSELF),
    row("HOST_SAVE_PROFILE", 38, FAILS_BY_ITSELF),
    row(
        "HOST_DEL_CACHE",
        30,
        Never("an image that the cache does not have is MK_USAGE; a file that is gone is no failure"),
    ),
    row("HOST_KILL_MOUNT_PROC", 30, FAILS_BY_ITSELF),
    row("HOST_BROWSER", 30, Never("no browser is opened: the address is printed")),
    row("HOST_KUBECTL_PROXY", 30, FAILS_BY_ITSELF),
    row("HOST_UNSUPPORTED", 36, Never("a host without the control groups or namespaces that machines need")),
    row("HOST_NODE_STOP", 30, FAILS_BY_ITSELF),
    // PROVIDER, DRV: of drivers.
    row(
        "PROVIDER_NATIVE_NOT_FOUND",
        65,
        Never("a host without what builds the node image, or without what the kernel must have"),
    ),
    row("PROVIDER_DOCKER_NOT_RUNNING", 63, DOCKER),
    row("PROVIDER_DOCKER_ERROR", 69, DOCKER),
    row("DRV_UNSUPPORTED_OS", 56, Run(Nothing, "start --driver=hyperfoo", "DRV_UNSUPPORTED_OS")),
    row("DRV_UNSUPPORTED_MULTINODE", 51, Never("every driver here makes many nodes")),
    row("DRV_UNSUPPORTED_PROFILE", 56, Never("of minikube's driver none")),
    row("DRV_NOT_DETECTED", 55, Never("the native driver is always there")),
    row("DRV_NOT_HEALTHY", 55, Run(Nothing, "start --driver=docker --dry-run", "DRV_NOT_HEALTHY")),
    row("DRV_DOCKER_NOT_RUNNING", 55, DOCKER),
    row("DRV_NOT_FOUND", 55, DOCKER),
    row("DRV_AS_ROOT", 57, Never("the native driver needs root")),
    row("DRV_NEEDS_ROOT", 57, Run(Nobody, "start --dry-run", "DRV_NEEDS_ROOT")),
    row("DRV_CP_ENDPOINT", 50, DOCKER),
    row("DRV_PORT_FORWARD", 50, DOCKER),
    // GUEST: of nodes.
    row("GUEST_NODE_RETRIEVE", 85, Run(Demo, "status -p demo -n m09", "GUEST_NODE_RETRIEVE")),
    row("GUEST_NODE_ADD", 80, Run(Broken(Wrong::Name), "node add -p demo", "GUEST_NODE_ADD")),
    row("GUEST_NODE_DELETE", 80, Run(Demo, "node delete m09 -p demo", "GUEST_NODE_DELETE")),
    row("GUEST_NODE_START", 80, Test("tests/tests/own_configuration.rs: a kubelet that does not start")),
    row("GUEST_NODE_PROVISION", 80, Never("the reason of node start: GUEST_NODE_START")),
    row(
        "GUEST_START",
        80,
        Test("tests/tests/own_configuration.rs: an API server with a flag that it does not know"),
    ),
    row("GUEST_PROVISION", 80, Never("the reason of start: GUEST_START")),
    row("GUEST_CERT", 80, FAILS_BY_ITSELF),
    row("GUEST_PAUSE", 80, FAILS_BY_ITSELF),
    row("GUEST_UNPAUSE", 80, FAILS_BY_ITSELF),
    row("GUEST_STATUS", 80, FAILS_BY_ITSELF),
    row("GUEST_LOAD_HOST", 80, FAILS_BY_ITSELF),
    row("GUEST_DELETION", 80, FAILS_BY_ITSELF),
    row("GUEST_NODE_FAULT", 80, Test("tests/tests/faults.rs (ours)")),
    row("GUEST_NODE_IMAGE", 80, Test("tests/tests/single_node.rs: an image that is damaged (ours)")),
    row("GUEST_MOUNT", 80, FAILS_BY_ITSELF),
    row("GUEST_CACHE_LOAD", 80, Never("the reason of what it does: GUEST_IMAGE_LOAD")),
    row("GUEST_IMAGE_LIST", 80, FAILS_BY_ITSELF),
    row("GUEST_IMAGE_LOAD", 80, Run(Running, "image load $DIR/broken", "GUEST_IMAGE_LOAD")),
    row("GUEST_IMAGE_REMOVE", 80, Run(Running, "image rm nothing:1", "GUEST_IMAGE_REMOVE")),
    row("GUEST_IMAGE_PULL", 80, Run(Running, "image pull 127.0.0.1:9/nothing:1", "GUEST_IMAGE_PULL")),
    row("GUEST_IMAGE_BUILD", 80, Test("tests/tests/images.rs: a build that fails")),
    row("GUEST_IMAGE_SAVE", 80, Run(Running, "image save nothing:1 $DIR/saved", "GUEST_IMAGE_SAVE")),
    row("GUEST_IMAGE_PUSH", 80, Run(Running, "image push nothing:1", "GUEST_IMAGE_PUSH")),
    row("GUEST_IMAGE_TAG", 80, Run(Running, "image tag nothing:1 other:1", "GUEST_IMAGE_TAG")),
    row("GUEST_STOP_TIMEOUT", 82, FAILS_BY_ITSELF),
    row("GUEST_MOUNT_CONFLICT", 81, Never("no ports are used by mounts")),
    row("GUEST_DRIVER_MISMATCH", 81, Run(Demo, "start -p demo --driver=docker", "GUEST_DRIVER_MISMATCH")),
    row("GUEST_CP_CONFIG", 88, Never("a configuration that cannot be is HOST_CONFIG_LOAD")),
    // IF, INET, RUNTIME.
    row(
        "IF_SUBNET_CONFLICT",
        70,
        Run(Running, "start -p other --subnet=192.168.49.0 --dry-run", "IF_SUBNET_CONFLICT"),
    ),
    row(
        "INET_REPO",
        40,
        Run(
            Running,
            "start -p other --ha --vip=kube-vip --vip-image=127.0.0.1:9/nothing:1 --dry-run",
            "INET_REPO",
        ),
    ),
    row(
        "INET_VERSION_UNAVAILABLE",
        49,
        Run(Nothing, "start --kubernetes-version=v1.37.99", "INET_VERSION_UNAVAILABLE"),
    ),
    row("RUNTIME_ENABLE", 90, Never("the runtime is part of the node image")),
    row("SSH_AGENT_START", 90, Never("docker-env works by TLS: no agent is started")),
    // SVC: of services and addons.
    row("SVC_NOT_FOUND", 115, Run(Running, "service nothing --url --wait=0", "SVC_NOT_FOUND")),
    row("SVC_UNREACHABLE", 115, Run(Running, "service kubernetes --url", "SVC_UNREACHABLE")),
    row("SVC_TIMEOUT", 112, Never("what does not come in time is 115, as for a service without pods")),
    row("SVC_CHECK_TIMEOUT", 112, FAILS_BY_ITSELF),
    row("SVC_URL_TIMEOUT", 112, Never("as SVC_TIMEOUT")),
    row("SVC_LIST", 119, FAILS_BY_ITSELF),
    row("SVC_TUNNEL_START", 110, FAILS_BY_ITSELF),
    row("SVC_TUNNEL_STOP", 110, Never("a tunnel leaves nothing that would have to be removed")),
    row("TUNNEL_ALREADY_RUNNING", 111, Run(Tunnel, "tunnel", "TUNNEL_ALREADY_RUNNING")),
    row("SVC_ADDON_UNSUPPORTED", 116, Run(Nothing, "addons disable frob", "SVC_ADDON_UNSUPPORTED")),
    row("SVC_ADDON_NOT_ENABLED", 11, Run(Running, "addons open registry", "SVC_ADDON_NOT_ENABLED")),
    // ENV: of docker-env and podman-env.
    row("ENV_DRIVER_CONFLICT", 51, Never("of minikube's driver none")),
    row("ENV_MULTINODE_CONFLICT", 81, Never("docker-env works with many nodes")),
    row("ENV_PODMAN_UNAVAILABLE", 99, Never("podman-env is MK_USAGE, as with containerd in minikube")),
    row("podman-env", 14, Run(Running, "podman-env", "MK_USAGE")),
    // K8S: of Kubernetes.
    row("K8S_INSTALL_FAILED", 100, Never("the reason of start: GUEST_START")),
    row("K8S_OLD_UNSUPPORTED", 106, Run(Nothing, "start --kubernetes-version=v1.2.3", "K8S_OLD_UNSUPPORTED")),
    row(
        "K8S_NEW_UNSUPPORTED",
        106,
        Run(Nothing, "start --kubernetes-version=v1.99.0", "K8S_NEW_UNSUPPORTED"),
    ),
    row(
        "K8S_DOWNGRADE_UNSUPPORTED",
        106,
        Run(Running, "start --kubernetes-version=1.36 --dry-run", "K8S_DOWNGRADE_UNSUPPORTED"),
    ),
    row("K8S_FAIL_CONNECT", 40, Never("an API that does not answer is 103")),
    // What ends without a reason.
    row("ssh", 1, Run(Running, "ssh -- exit 3", "ssh: ")),
    row("kubectl", 1, Run(Running, "kubectl -- get nothing", "the server doesn't have a resource type")),
    row(
        "config get",
        14,
        Run(Nothing, "config get memory", "Error: specified key could not be found in config"),
    ),
];
