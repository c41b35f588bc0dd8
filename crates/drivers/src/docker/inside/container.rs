//! The container that a command runs in.

use anyhow::{Context, Result};
use bollard::models::{ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig};

use super::enter::{Landmark, Orders};
use super::{ENTER, Errand, Input, PROGRAM};
use crate::docker::{CREATED_BY, INSIDE};

pub fn body(errand: &Errand, image: String, tty: bool) -> Result<ContainerCreateBody> {
    let orders =
        Orders { argv: errand.argv.clone(), dir: errand.dir.clone(), landmark: Landmark::of(&errand.home)? };
    let orders = serde_json::to_string(&orders).context("write the container's orders")?;
    let labels = [(CREATED_BY, "true"), (INSIDE, "true")];
    let reads = errand.input != Input::Nothing;
    let host = || Some("host".to_owned());
    Ok(ContainerCreateBody {
        image: Some(image),
        entrypoint: Some(vec![PROGRAM.to_owned(), ENTER.to_owned(), orders]),
        env: Some(errand.env.iter().map(|(k, v)| format!("{k}={v}")).collect()),
        labels: Some(labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into()),
        tty: Some(tty),
        open_stdin: Some(reads),
        // What reads to the end is told that we have come to it.
        stdin_once: Some(reads),
        attach_stdin: Some(reads),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        host_config: Some(HostConfig {
            privileged: Some(true),
            pid_mode: host(),
            network_mode: host(),
            uts_mode: host(),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::HOST),
            auto_remove: Some(true),
            // Only we read what it says.
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    })
}
