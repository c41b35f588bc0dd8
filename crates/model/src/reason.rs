//! Why a command ends: minikube's reason ids and exit codes, which scripts rely on.

use std::fmt;

macro_rules! reasons {
    ($($variant:ident = $id:literal, $code:literal;)*) => {
        /// A reason and its exit code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Reason { $($variant,)* }

        impl Reason {
            pub const ALL: &[Reason] = &[$(Reason::$variant,)*];

            pub fn id(self) -> &'static str {
                match self { $(Reason::$variant => $id,)* }
            }

            pub fn exit_code(self) -> u8 {
                match self { $(Reason::$variant => $code,)* }
            }
        }
    };
}

reasons! {
    Usage = "MK_USAGE", 14;
    UsageNoProfile = "MK_USAGE_NO_PROFILE", 14;
    Interrupted = "MK_INTERRUPTED", 130;
    ReservedProfile = "MK_RESERVED_PROFILE", 11;
    ProfileLocked = "MK_PROFILE_LOCKED", 11;
    Unimplemented = "MK_UNIMPLEMENTED", 16;
    AddonEnable = "MK_ADDON_ENABLE", 10;
    AddonDisable = "MK_ADDON_DISABLE", 10;
    AddonEnablePaused = "MK_ADDON_ENABLE_PAUSED", 11;
    AddonDisablePaused = "MK_ADDON_DISABLE_PAUSED", 11;
    AddonUnsupported = "SVC_ADDON_UNSUPPORTED", 116;
    AddonNotEnabled = "SVC_ADDON_NOT_ENABLED", 11;
    Internal = "MK_INTERNAL", 10;
    K8sClient = "MK_K8S_CLIENT", 109;
    InsufficientCores = "RSRC_INSUFFICIENT_CORES", 29;
    InsufficientReqMemory = "RSRC_INSUFFICIENT_REQ_MEMORY", 23;
    InsufficientSysMemory = "RSRC_INSUFFICIENT_SYS_MEMORY", 23;
    OverAllocMem = "RSRC_OVER_ALLOC_MEM", 10;
    InsufficientStorage = "RSRC_INSUFFICIENT_STORAGE", 26;
    DockerStorage = "RSRC_DOCKER_STORAGE", 26;
    HomeMkdir = "HOST_HOME_MKDIR", 37;
    HomePermission = "HOST_HOME_PERMISSION", 37;
    ConfigLoad = "HOST_CONFIG_LOAD", 38;
    SaveProfile = "HOST_SAVE_PROFILE", 38;
    KubeconfigUpdate = "HOST_KUBECONFIG_UPDATE", 38;
    PathMissing = "HOST_PATH_MISSING", 35;
    HostUnsupported = "HOST_UNSUPPORTED", 36;
    KubectlProxy = "HOST_KUBECTL_PROXY", 30;
    HostPurge = "HOST_PURGE", 30;
    DriverUnsupportedOs = "DRV_UNSUPPORTED_OS", 56;
    DriverNeedsRoot = "DRV_NEEDS_ROOT", 57;
    DriverNotHealthy = "DRV_NOT_HEALTHY", 55;
    DriverMismatch = "GUEST_DRIVER_MISMATCH", 81;
    ProviderNotFound = "PROVIDER_NATIVE_NOT_FOUND", 65;
    SubnetConflict = "IF_SUBNET_CONFLICT", 70;
    NodeRetrieve = "GUEST_NODE_RETRIEVE", 85;
    ProfileNotFound = "GUEST_PROFILE_NOT_FOUND", 85;
    HostNotRunning = "GUEST_HOST_NOT_RUNNING", 83;
    ApiserverNotRunning = "K8S_APISERVER_NOT_RUNNING", 103;
    NoControlPlane = "K8S_NO_CONTROL_PLANE", 105;
    GuestStart = "GUEST_START", 80;
    GuestProvision = "GUEST_PROVISION", 80;
    GuestPause = "GUEST_PAUSE", 80;
    GuestUnpause = "GUEST_UNPAUSE", 80;
    GuestStatus = "GUEST_STATUS", 80;
    GuestDeletion = "GUEST_DELETION", 80;
    NodeAdd = "GUEST_NODE_ADD", 80;
    NodeDelete = "GUEST_NODE_DELETE", 80;
    NodeStart = "GUEST_NODE_START", 80;
    NodeStop = "HOST_NODE_STOP", 30;
    NodeFault = "GUEST_NODE_FAULT", 80;
    StopTimeout = "GUEST_STOP_TIMEOUT", 82;
    ImageBuild = "GUEST_IMAGE_BUILD", 80;
    ImageList = "GUEST_IMAGE_LIST", 80;
    ImageLoad = "GUEST_IMAGE_LOAD", 80;
    ImagePull = "GUEST_IMAGE_PULL", 80;
    ImagePush = "GUEST_IMAGE_PUSH", 80;
    ImageRemove = "GUEST_IMAGE_REMOVE", 80;
    ImageSave = "GUEST_IMAGE_SAVE", 80;
    ImageTag = "GUEST_IMAGE_TAG", 80;
    ImageUnusable = "GUEST_NODE_IMAGE", 80;
    InetRepo = "INET_REPO", 40;
    VersionUnavailable = "INET_VERSION_UNAVAILABLE", 49;
    InstallFailed = "K8S_INSTALL_FAILED", 100;
    ServiceNotFound = "SVC_NOT_FOUND", 115;
    ServiceUnreachable = "SVC_UNREACHABLE", 115;
    ServiceCheckTimeout = "SVC_CHECK_TIMEOUT", 112;
    ServiceList = "SVC_LIST", 119;
    TunnelStart = "SVC_TUNNEL_START", 110;
    TunnelAlreadyRunning = "TUNNEL_ALREADY_RUNNING", 111;
    OldUnsupported = "K8S_OLD_UNSUPPORTED", 106;
    NewUnsupported = "K8S_NEW_UNSUPPORTED", 106;
    DowngradeUnsupported = "K8S_DOWNGRADE_UNSUPPORTED", 106;
}

/// An error that ends the command: what went wrong in one sentence, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub reason: Reason,
    pub message: String,
    pub advice: Option<String>,
}

impl Fault {
    pub fn new(reason: Reason, message: impl Into<String>) -> Fault {
        Fault { reason, message: message.into(), advice: None }
    }

    pub fn advice(mut self, advice: impl Into<String>) -> Fault {
        self.advice = Some(advice.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
