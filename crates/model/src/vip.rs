//! Who holds the virtual address of the control planes.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VipBy {
    /// The agents, by an election of their own.
    #[default]
    Agent,
    /// kube-vip, a static pod on each control plane, with the API's leases.
    KubeVip { image: String },
}
