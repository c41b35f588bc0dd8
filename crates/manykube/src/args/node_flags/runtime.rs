//! Container runtimes, and the flags of one that nodes do not have.

use model::{Fault, Reason};

use super::ConfigFlags;

/// `--container-runtime`; `None` when it says nothing.
pub fn runtime(asked: Option<&str>) -> Result<Option<String>, Fault> {
    match asked {
        None | Some("" | "auto") => Ok(None),
        Some("containerd") => Ok(Some("containerd".to_owned())),
        Some(name @ ("docker" | "cri-o" | "crio")) => Err(Fault::new(
            Reason::Unimplemented,
            format!("--container-runtime={name} is not supported yet: the node image has containerd only"),
        )
        .advice("Use --container-runtime=containerd, or leave it out")),
        Some(name) => Err(Fault::new(
            Reason::Usage,
            format!("--container-runtime: {name:?} is not a container runtime: containerd, docker or cri-o"),
        )),
    }
}

/// Flags that mean something elsewhere only.
pub fn check(flags: &ConfigFlags) -> Result<(), Fault> {
    let said = |list: &[String]| list.iter().any(|v| !v.is_empty());
    let docker = [("--docker-env", &flags.docker_env), ("--docker-opt", &flags.docker_opt)];
    if let Some((flag, _)) = docker.iter().find(|(_, list)| said(list)) {
        let message = format!("{flag} is for the docker runtime, and nodes run containerd");
        return Err(Fault::new(Reason::Usage, message).advice(format!("Leave {flag} out")));
    }
    if said(&flags.iso_url) {
        let message = "--iso-url is for virtual machines, and nodes of the native driver are none";
        return Err(Fault::new(Reason::Usage, message).advice("Use --base-image for another node image"));
    }
    Ok(())
}
