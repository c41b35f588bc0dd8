//! minikube's numbered steps: scripts that read `-o json` know them by number and name.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub number: u8,
    pub total: u8,
    pub name: &'static str,
}

macro_rules! steps {
    ($module:ident, $total:literal: $($id:ident = $number:literal $name:literal,)*) => {
        #[allow(dead_code, reason = "the list is minikube's and complete; not every command passes through all of it")]
        pub mod $module {
            use super::Step;
            $(pub const $id: Step = Step { number: $number, total: $total, name: $name };)*
        }
    };
}

steps! { start, 19:
    INITIAL_SETUP = 0 "Initial Minikube Setup",
    SELECTING_DRIVER = 1 "Selecting Driver",
    DOWNLOADING_ARTIFACTS = 2 "Downloading Artifacts",
    STARTING_NODE = 3 "Starting Node",
    UPDATING_DRIVER = 4 "Updating Driver",
    PULLING_BASE_IMAGE = 5 "Pulling Base Image",
    RUNNING_LOCALHOST = 6 "Running on Localhost",
    LOCAL_OS_RELEASE = 7 "Local OS Release",
    CREATING_CONTAINER = 8 "Creating Container",
    CREATING_VM = 9 "Creating VM",
    RUNNING_REMOTELY = 10 "Running Remotely",
    PREPARING_KUBERNETES = 11 "Preparing Kubernetes",
    GENERATING_CERTS = 12 "Generating certificates",
    BOOTING_CONTROL_PLANE = 13 "Booting control plane",
    CONFIGURING_RBAC = 14 "Configuring RBAC rules",
    CONFIGURING_CNI = 15 "Configuring CNI",
    CONFIGURING_LOCALHOST = 16 "Configuring Localhost Environment",
    VERIFYING_KUBERNETES = 17 "Verifying Kubernetes",
    ENABLING_ADDONS = 18 "Enabling Addons",
    DONE = 19 "Done",
}

steps! { stop, 2:
    STOPPING = 0 "Stopping",
    POWER_OFF = 1 "PowerOff",
    DONE = 2 "Done",
}

steps! { pause, 1:
    PAUSING = 0 "Pausing",
    DONE = 1 "Done",
}

steps! { unpause, 1:
    UNPAUSING = 0 "Unpausing",
    DONE = 1 "Done",
}

steps! { delete, 3:
    DELETING = 0 "Deleting",
    STOPPING = 1 "Stopping",
    DONE = 2 "Done",
    PURGE = 3 "Purging home dir",
}
