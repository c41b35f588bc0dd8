//! A node's size in the engine's words.

use bollard::models::ContainerUpdateBody;

use crate::driver::MachineSpec;
use crate::native::cgroup::Limits;

pub struct Size {
    pub nano_cpus: Option<i64>,
    pub cpuset: Option<String>,
    pub memory: Option<i64>,
    /// Swap is the host's business, as with the native driver.
    pub memory_swap: Option<i64>,
}

pub fn limits(spec: &MachineSpec) -> Limits {
    Limits::new(spec.cpus, spec.memory_mib, u32::from(spec.ip))
}

/// What is as large as the host is no limit. The engine refuses more processors than there are.
pub fn size(spec: &MachineSpec) -> Size {
    let limits = limits(spec);
    let memory = (spec.memory_mib > 0).then(|| i64::from(spec.memory_mib) << 20);
    Size {
        nano_cpus: limits.quota().map(|cpus| i64::from(cpus) * 1_000_000_000),
        cpuset: limits.quota().map(|_| limits.cpuset()),
        memory,
        memory_swap: memory.map(|_| -1),
    }
}

/// Of a container that has another one: here what is not said stays.
pub fn change(spec: &MachineSpec) -> ContainerUpdateBody {
    let limits = limits(spec);
    let size = size(spec);
    let cpus = limits.quota().unwrap_or_else(|| limits.host_cpus());
    ContainerUpdateBody {
        nano_cpus: Some(i64::from(cpus) * 1_000_000_000),
        cpuset_cpus: Some(limits.cpuset()),
        memory: size.memory,
        memory_swap: size.memory_swap,
        ..ContainerUpdateBody::default()
    }
}
