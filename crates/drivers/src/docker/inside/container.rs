//! The container that a command runs in.

use std::collections::HashMap;

use anyhow::{Context, Result};
use bollard::Docker as Client;
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, ContainerSummaryStateEnum, HostConfig, HostConfigCgroupnsModeEnum,
    HostConfigLogConfig, Mount, MountType,
};
use bollard::query_parameters::{KillContainerOptionsBuilder, ListContainersOptionsBuilder};

use super::caller::Caller;
use super::enter::{Landmark, Orders};
use super::seek::Sought;
use super::{ENTER, Errand, PROGRAM, Place};
use crate::docker::container::remove;
use crate::docker::{CREATED_BY, INSIDE};

/// Removes those whose caller was killed before it could, and ends the commands that nobody waits for any more.
pub async fn sweep(client: &Client) {
    use ContainerSummaryStateEnum::{CREATED, DEAD, EXITED, RUNNING};
    let Some(own) = Caller::own() else { return };
    let filters = HashMap::from([("label", vec![INSIDE])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let Ok(found) = client.list_containers(Some(options)).await else { return };
    for container in found {
        let whose = container.labels.and_then(|mut labels| labels.remove(INSIDE)).unwrap_or_default();
        let Some(id) = container.id.filter(|_| own.outlived(&whose)) else { continue };
        match container.state {
            Some(CREATED | EXITED | DEAD) => drop(remove(client, &id).await),
            // As if the caller had been able to pass it on.
            Some(RUNNING) => drop(signal(client, &id, "SIGTERM").await),
            _ => {}
        }
    }
}

pub async fn signal(client: &Client, id: &str, name: &str) -> Result<(), Error> {
    let options = KillContainerOptionsBuilder::default().signal(name).build();
    client.kill_container(id, Some(options)).await
}

pub fn body(
    errand: &Errand,
    image: String,
    tty: bool,
    engine: Option<Sought>,
) -> Result<ContainerCreateBody> {
    let (landmark, volume) = match &errand.home {
        Place::Same(home) => (Some(Landmark::of(home)?), None),
        Place::There { volume, .. } => (None, Some(volume)),
    };
    let orders = Orders {
        argv: errand.argv.clone(),
        dir: errand.dir.clone(),
        luggage: !errand.luggage.is_empty(),
        landmark,
        engine,
    };
    let orders = serde_json::to_string(&orders).context("write the container's orders")?;
    let caller = Caller::own().map(|own| own.label()).unwrap_or_default();
    let labels = [(CREATED_BY, "true".to_owned()), (INSIDE, caller)];
    let reads = errand.input.is_some();
    let host = || Some("host".to_owned());
    Ok(ContainerCreateBody {
        image: Some(image),
        entrypoint: Some(vec![PROGRAM.to_owned(), ENTER.to_owned(), orders]),
        env: Some(errand.env.iter().map(|(k, v)| format!("{k}={v}")).collect()),
        labels: Some(labels.map(|(k, v)| (k.to_owned(), v)).into()),
        tty: Some(tty),
        open_stdin: Some(reads),
        // What reads to the end is told that we have come to it.
        stdin_once: Some(reads),
        attach_stdin: Some(reads),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        host_config: Some(HostConfig {
            privileged: Some(true),
            // The command is the first process: one of the engine's would be its parent, and taken for the engine.
            init: Some(false),
            pid_mode: host(),
            network_mode: host(),
            uts_mode: host(),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::HOST),
            // The command finds it on the engine's host; here it is for files to be put and fetched.
            mounts: volume.map(|volume| {
                vec![Mount {
                    typ: Some(MountType::VOLUME),
                    source: Some(volume.name.clone()),
                    target: Some(volume.path.to_string_lossy().into_owned()),
                    ..Mount::default()
                }]
            }),
            // Only we read what it says.
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    })
}
