//! The container that a command runs in.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use bollard::Docker as Client;
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, Mount, MountType,
};
use bollard::query_parameters::ListContainersOptionsBuilder;

use super::enter::{Landmark, Orders};
use super::seek::Sought;
use super::{ENTER, Errand, PROGRAM, Place};
use crate::docker::container::remove;
use crate::docker::{CREATED_BY, INSIDE};

/// Whom a container is there for: a process of this host.
fn caller(pid: impl std::fmt::Display) -> String {
    format!("{}/{pid}", crate::boot_id())
}

/// Removes those whose caller was killed before it could.
pub async fn sweep(client: &Client) {
    let ended = vec!["created", "exited", "dead"];
    let filters = HashMap::from([("label", vec![INSIDE]), ("status", ended)]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let Ok(found) = client.list_containers(Some(options)).await else { return };
    for container in found {
        let whose = container.labels.and_then(|mut labels| labels.remove(INSIDE)).unwrap_or_default();
        let pid = whose.strip_prefix(&caller("")).and_then(|pid| pid.parse::<u32>().ok());
        let dead = pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
        if let Some(id) = container.id.filter(|_| dead) {
            let _ = remove(client, &id).await;
        }
    }
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
    let labels = [(CREATED_BY, "true".to_owned()), (INSIDE, caller(std::process::id()))];
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
