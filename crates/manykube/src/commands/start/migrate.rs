//! A profile of minikube's that is started here for the first time: there are no machines of ours yet,
//! so its version and its subnet may still be chosen.

use anyhow::{Context, Result};
use ipnet::Ipv4Net;
use model::config_file::ConfigFile;
use model::{Cluster, address, minikube};

use super::Args;
use crate::core;
use crate::ctx::Ctx;

/// Makes the cluster of `file` one that can be started on this host. What to say about it.
pub async fn settle(ctx: &Ctx, args: &Args, file: &mut ConfigFile) -> Result<Vec<String>> {
    let Some(migrated) = file.migrated.clone() else { return Ok(Vec::new()) };
    let mut notes = migrated.notes;
    notes.extend(take_version(&mut file.cluster, args.kubernetes_version.as_deref()));
    let taken = core::network_in_use(ctx, file.cluster.driver).await?;
    notes.extend(take_subnet(&mut file.cluster, &taken)?);
    let machines = minikube::machines(&file.raw).join(", ");
    let first = format!(
        "The profile \"{}\" was made by minikube with the driver \"{}\". Its configuration is used, in new machines; \
         minikube's own ({machines}) and what is in them stay as they are, and the file is kept as config.json.minikube",
        file.cluster.name, migrated.driver
    );
    Ok([first].into_iter().chain(notes).collect())
}

/// The same minor version where we have it. What was asked for is looked at later, as for every cluster.
fn take_version(cluster: &mut Cluster, asked: Option<&str>) -> Option<String> {
    let had = cluster.kubernetes_version.clone();
    let minor = had.rsplit_once('.').map_or(had.as_str(), |(minor, _)| minor);
    let resolved = match asked.filter(|asked| !asked.is_empty()) {
        Some(asked) => image::resolve_version(asked),
        None => image::resolve_version(&had).or_else(|_| image::resolve_version(minor)),
    };
    let version = resolved.unwrap_or_else(|_| image::default_version().to_owned());
    for node in &mut cluster.nodes {
        node.kubernetes_version.clone_from(&version);
    }
    cluster.kubernetes_version.clone_from(&version);
    (version != had).then(|| format!("it gets Kubernetes {version} instead of {had}"))
}

/// minikube's machines may run beside ours, in the network that the file names.
fn take_subnet(cluster: &mut Cluster, taken: &[Ipv4Net]) -> Result<Option<String>> {
    let old = cluster.network.subnet;
    if !taken.iter().any(|t| address::overlap(*t, old)) {
        return Ok(None);
    }
    let new = address::free_subnet(None, taken).context("find a free subnet for the nodes")?;
    for node in &mut cluster.nodes {
        let [a, b, c, _] = new.network().octets();
        node.ip = [a, b, c, node.ip.octets()[3]].into();
    }
    cluster.network.subnet = new;
    Ok(Some(format!("its nodes lie in {new}, because {old} is taken")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::sample;

    #[test]
    fn the_nearest_version_that_there_is() {
        let take = |had: &str, asked: Option<&str>| {
            let mut cluster = sample("old");
            cluster.kubernetes_version = had.to_owned();
            let note = take_version(&mut cluster, asked);
            assert!(cluster.nodes.iter().all(|n| n.kubernetes_version == cluster.kubernetes_version));
            (cluster.kubernetes_version, note.is_some())
        };
        let newest = image::default_version();
        assert_eq!(take(newest, None), (newest.to_owned(), false));
        assert_eq!(take("v1.26.3", None), (newest.to_owned(), true));
        let (same_minor, told) = take("v1.36.2", None);
        assert!(same_minor.starts_with("v1.36.") && told);
        assert!(take("v1.26.3", Some("1.36")).0.starts_with("v1.36."));
    }

    #[test]
    fn a_taken_subnet_is_left_to_whom_it_belongs() {
        let mut cluster = sample("old");
        let old = cluster.network.subnet;
        assert_eq!(take_subnet(&mut cluster, &[]).unwrap(), None);
        let note = take_subnet(&mut cluster, &[old]).unwrap().unwrap();
        assert!(note.contains(&old.to_string()), "{note}");
        let new = cluster.network.subnet;
        assert!(!address::overlap(old, new));
        assert!(cluster.nodes.iter().all(|n| new.contains(&n.ip)));
    }
}
