//! What a set of pods still waits for. Pure: `Err` says what.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

const COMPONENTS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
/// Starts before there is an API to tell of it: its kubelet tries again only at its next round, and
/// that etcd runs is proved by every answer of the API server.
const UNTOLD: &str = "etcd";

/// Are the static pods of these machines ready?
pub fn static_pods_wait(pods: &[Pod], control_planes: &[String]) -> Result<(), String> {
    for machine in control_planes {
        for component in COMPONENTS {
            let name = format!("{component}-{machine}");
            match pods.iter().find(|p| p.name_any() == name) {
                Some(pod) if is_ready(pod) => {}
                Some(_) => return Err(format!("pod {name} is not ready")),
                None if component == UNTOLD => {}
                None => return Err(format!("pod {name} is missing")),
            }
        }
    }
    Ok(())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions.is_some_and(|c| c.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

pub fn daemon_set_waits(set: &DaemonSet) -> Result<(), String> {
    let name = set.name_any();
    let status = set.status.as_ref().ok_or_else(|| format!("{name} has no status yet"))?;
    let (ready, wanted) = (status.number_ready, status.desired_number_scheduled);
    // A status of before the last change, or of before the first look, says nothing.
    let current = status.observed_generation == set.metadata.generation;
    if current && wanted > 0 && ready >= wanted {
        Ok(())
    } else {
        Err(format!("{name}: {ready} of {wanted} pods ready"))
    }
}

pub fn deployment_waits(deployment: &Deployment) -> Result<(), String> {
    let name = deployment.name_any();
    let status = deployment.status.as_ref().ok_or_else(|| format!("{name} has no status yet"))?;
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let ready = status.available_replicas.unwrap_or(0).min(status.updated_replicas.unwrap_or(0));
    let current = status.observed_generation == deployment.metadata.generation;
    if current && ready >= wanted {
        Ok(())
    } else {
        Err(format!("{name}: {ready} of {wanted} pods available"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn pod(name: &str, ready: &str) -> Pod {
        from_value(json!({
            "metadata": { "name": name },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }))
        .unwrap()
    }

    #[test]
    fn static_pods_of_every_control_plane() {
        let mut pods: Vec<Pod> = COMPONENTS.iter().map(|c| pod(&format!("{c}-demo"), "True")).collect();
        assert_eq!(static_pods_wait(&pods, &["demo".into()]), Ok(()));
        let two = ["demo".to_owned(), "demo-m02".to_owned()];
        assert_eq!(static_pods_wait(&pods, &two), Err("pod kube-apiserver-demo-m02 is missing".into()));
        assert_eq!(static_pods_wait(&pods[1..], &["demo".into()]), Ok(()), "etcd may be untold");
        pods[3] = pod("kube-scheduler-demo", "False");
        assert_eq!(
            static_pods_wait(&pods, &["demo".into()]),
            Err("pod kube-scheduler-demo is not ready".into())
        );
    }

    fn daemon_set(status: Value) -> DaemonSet {
        from_value(json!({ "metadata": { "name": "kube-proxy", "generation": 2 }, "status": status }))
            .unwrap()
    }

    #[test]
    fn a_daemon_set_is_ready_on_every_node() {
        let status = |ready: i32, wanted: i32, generation: i64| {
            daemon_set(json!({
                "numberReady": ready, "desiredNumberScheduled": wanted, "observedGeneration": generation,
                "currentNumberScheduled": wanted, "numberMisscheduled": 0,
            }))
        };
        assert_eq!(daemon_set_waits(&status(3, 3, 2)), Ok(()));
        assert_eq!(daemon_set_waits(&status(2, 3, 2)), Err("kube-proxy: 2 of 3 pods ready".into()));
        assert!(daemon_set_waits(&status(3, 3, 1)).is_err(), "an old status");
        assert!(daemon_set_waits(&status(0, 0, 2)).is_err(), "not looked at yet");
    }

    #[test]
    fn a_deployment_is_available_in_its_last_form() {
        let deployment = |available: i32, updated: i32| -> Deployment {
            from_value(json!({
                "metadata": { "name": "coredns", "generation": 1 },
                "spec": { "replicas": 2, "selector": {}, "template": {} },
                "status": { "availableReplicas": available, "updatedReplicas": updated, "observedGeneration": 1 },
            }))
            .unwrap()
        };
        assert_eq!(deployment_waits(&deployment(2, 2)), Ok(()));
        assert_eq!(deployment_waits(&deployment(2, 1)), Err("coredns: 1 of 2 pods available".into()));
    }
}
