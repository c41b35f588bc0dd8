//! `--node-grace`: how soon Kubernetes gives up a node that is silent, for those who want to see it happen.
//! Nothing but flags of its components, so it is exported and changed as these are. Pure.

use std::time::Duration;

use model::node_config::Component;
use model::{Fault, NodeConfig};

use super::values::usage;

/// Below it, a busy host is taken for a dead one.
const LEAST: u64 = 5;
const MOST: u64 = 3600;

/// Adds the flags; what `config` says itself is the last word.
pub fn add(config: &mut NodeConfig, grace: Duration) -> Result<(), Fault> {
    let seconds = grace.as_secs();
    if grace.subsec_nanos() != 0 || !(LEAST..=MOST).contains(&seconds) {
        return Err(usage(format!("--node-grace must be whole seconds from {LEAST}s to {MOST}s")));
    }
    let mut flags = |component, list: &[(&str, String)]| {
        let own = config.extra_config.entry(component).or_default();
        for (name, value) in list {
            own.entry((*name).to_owned()).or_insert_with(|| value.clone());
        }
    };
    flags(
        Component::ControllerManager,
        &[
            ("node-monitor-grace-period", format!("{seconds}s")),
            // Looked at often enough for the grace to mean something.
            ("node-monitor-period", format!("{}s", (seconds / 10).clamp(1, 5))),
        ],
    );
    flags(
        Component::Apiserver,
        &[
            ("default-not-ready-toleration-seconds", seconds.to_string()),
            ("default-unreachable-toleration-seconds", seconds.to_string()),
        ],
    );
    // A kubelet renews its lease four times within this: it must be able to miss one or two.
    let lease = (seconds * 4 / 5).clamp(4, 40);
    let mut patch = |name: &str, value: serde_json::Value| {
        config.patches.kubelet.entry(name).or_insert(value);
    };
    patch("nodeLeaseDurationSeconds", lease.into());
    // A disk that was full is given as much time before the node counts as well again.
    patch("evictionPressureTransitionPeriod", format!("{seconds}s").into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn flags_of_four_components() {
        let mut config = NodeConfig::default();
        let own = BTreeMap::from([("default-unreachable-toleration-seconds".to_owned(), "7".to_owned())]);
        config.extra_config.insert(Component::Apiserver, own);
        add(&mut config, Duration::from_secs(20)).expect("a good time");
        let flag = |component, name: &str| config.extra_config[&component][name].clone();
        assert_eq!(flag(Component::ControllerManager, "node-monitor-grace-period"), "20s");
        assert_eq!(flag(Component::ControllerManager, "node-monitor-period"), "2s");
        assert_eq!(flag(Component::Apiserver, "default-not-ready-toleration-seconds"), "20");
        assert_eq!(flag(Component::Apiserver, "default-unreachable-toleration-seconds"), "7");
        assert_eq!(config.patches.kubelet["nodeLeaseDurationSeconds"], 16);
        for bad in [0, 4_999, 5_500, 3_601_000] {
            assert!(add(&mut config, Duration::from_millis(bad)).is_err(), "{bad} ms");
        }
    }
}
