//! The command line.

pub const DEFAULT_PROFILE: &str = "minikube";
