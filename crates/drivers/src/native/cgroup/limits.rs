//! How much of the host a machine may use.

use std::path::Path;

use anyhow::Result;

use super::{cpuset, write};

const CPU_PERIOD_US: u64 = 100_000;

pub struct Limits {
    cpus: u32,
    host_cpus: u32,
    memory_mib: u32,
    /// By their numbers on the host.
    processors: Vec<usize>,
}

impl Limits {
    /// `number` differs between machines.
    pub fn new(cpus: u32, memory_mib: u32, number: u32) -> Limits {
        let host = cpuset::of_host();
        let chosen = cpuset::share(&host, cpus, number);
        Limits {
            cpus,
            host_cpus: u32::try_from(host.len()).unwrap_or(u32::MAX),
            memory_mib,
            processors: chosen.unwrap_or(host),
        }
    }

    /// How many processors' time; `None` where that is all the host has.
    pub fn quota(&self) -> Option<u32> {
        (self.cpus > 0 && self.cpus < self.host_cpus).then_some(self.cpus)
    }

    pub fn host_cpus(&self) -> u32 {
        self.host_cpus
    }

    pub fn processors(&self) -> &[usize] {
        &self.processors
    }

    /// As the kernel lists them.
    pub fn cpuset(&self) -> String {
        cpuset::list(&self.processors)
    }
}

/// Writes those that the group has a file for: v1 has a group per controller.
pub fn apply(group: &Path, limits: &Limits) -> Result<()> {
    for (file, value) in settings(limits) {
        let path = group.join(file);
        if path.exists() {
            write(&path, &value)?;
        }
    }
    if limits.processors.is_empty() { Ok(()) } else { cpuset::apply(group, &limits.cpuset()) }
}

/// File and value, of both versions.
fn settings(limits: &Limits) -> Vec<(&'static str, String)> {
    let quota = u64::from(limits.cpus) * CPU_PERIOD_US;
    // A quota as large as the host only costs throttling.
    let (v1_quota, v2_quota) = if limits.cpus < limits.host_cpus {
        (quota.to_string(), format!("{quota} {CPU_PERIOD_US}"))
    } else {
        ("-1".to_owned(), "max".to_owned())
    };
    let mut settings = vec![("cpu.cfs_quota_us", v1_quota), ("cpu.max", v2_quota)];
    if limits.memory_mib > 0 {
        let memory = (u64::from(limits.memory_mib) << 20).to_string();
        settings.extend([("memory.limit_in_bytes", memory.clone()), ("memory.max", memory)]);
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(limits: &Limits, file: &str) -> Option<String> {
        settings(limits).into_iter().find(|(f, _)| *f == file).map(|(_, value)| value)
    }

    #[test]
    fn a_part_of_the_host_is_a_quota_and_all_of_it_is_none() {
        let part = Limits { cpus: 2, host_cpus: 8, memory_mib: 2048, processors: Vec::new() };
        assert_eq!(value(&part, "cpu.max").as_deref(), Some("200000 100000"));
        assert_eq!(value(&part, "cpu.cfs_quota_us").as_deref(), Some("200000"));
        assert_eq!(value(&part, "memory.max").as_deref(), Some("2147483648"));
        let all = Limits { cpus: 8, host_cpus: 8, memory_mib: 0, processors: Vec::new() };
        assert_eq!(value(&all, "cpu.max").as_deref(), Some("max"));
        assert_eq!(value(&all, "cpu.cfs_quota_us").as_deref(), Some("-1"));
        assert_eq!(value(&all, "memory.max"), None);
    }
}
