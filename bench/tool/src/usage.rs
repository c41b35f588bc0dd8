//! What the machines of a home have used, from outside: CPU seconds, memory, kernel objects.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use model::Home;

#[derive(Default)]
struct Usage {
    cpu: f64,
    pss_kib: u64,
    processes: u64,
    tasks: u64,
    files: u64,
    inotify: u64,
}

/// One line per machine.
pub fn print(home: &Home) -> Result<()> {
    println!("machine cpu_s pss_kib processes tasks files inotify");
    for (machine, group) in groups(home) {
        let mut usage = Usage { cpu: cpu_of(&group)?, ..Usage::default() };
        for process in processes(&group) {
            usage.count(&process);
        }
        let Usage { cpu, pss_kib, processes, tasks, files, inotify } = usage;
        println!("{machine} {cpu:.2} {pss_kib} {processes} {tasks} {files} {inotify}");
    }
    Ok(())
}

/// CPU seconds of all machines that run.
pub fn cpu(home: &Home) -> f64 {
    groups(home).values().filter_map(|group| cpu_of(group).ok()).sum()
}

impl Usage {
    fn count(&mut self, process: &Path) {
        let entries = |dir: &str| fs::read_dir(process.join(dir)).into_iter().flatten().flatten();
        let rollup = fs::read_to_string(process.join("smaps_rollup")).unwrap_or_default();
        let pss =
            rollup.lines().find_map(|l| l.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse().ok());
        self.pss_kib += pss.unwrap_or(0u64);
        self.processes += 1;
        self.tasks += entries("task").count() as u64;
        for file in entries("fd") {
            self.files += 1;
            let target = fs::read_link(file.path()).unwrap_or_default();
            self.inotify += u64::from(target.to_string_lossy() == "anon_inode:inotify");
        }
    }
}

/// The machines that run, and their groups as /proc names them: `/manykube/minikube-…`, `/docker/…`.
fn groups(home: &Home) -> BTreeMap<String, String> {
    let machines = fs::read_dir(home.machines()).into_iter().flatten().flatten();
    machines
        .filter_map(|machine| {
            let record: serde_json::Value =
                serde_json::from_slice(&fs::read(machine.path().join("init.json")).ok()?).ok()?;
            let text = fs::read_to_string(format!("/proc/{}/cgroup", record["pid"])).ok()?;
            Some((machine.file_name().into_string().ok()?, group_in(&text)?.to_owned()))
        })
        .collect()
}

/// With v1 the one of the hierarchy that counts CPU time. With v2 the agent lives in a leaf of its machine's group.
fn group_in(text: &str) -> Option<&str> {
    let fields = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let counts = fields().find(|(controllers, _)| controllers.split(',').any(|c| c == "cpuacct"));
    let (_, path) = counts.or_else(|| fields().find(|(controllers, _)| controllers.is_empty()))?;
    Some(path.strip_suffix("/init.scope").unwrap_or(path))
}

fn cpu_of(group: &str) -> Result<f64> {
    let v1 = ["cpuacct", "cpu,cpuacct"].map(|c| format!("/sys/fs/cgroup/{c}{group}/cpuacct.usage"));
    if let Some(text) = v1.iter().find_map(|file| fs::read_to_string(file).ok()) {
        return Ok(text.trim().parse::<f64>()? / 1e9);
    }
    let text = fs_err::read_to_string(format!("/sys/fs/cgroup{group}/cpu.stat"))?;
    let usage = text.lines().find_map(|l| l.strip_prefix("usage_usec "));
    Ok(usage.context("cpu.stat has no usage_usec")?.trim().parse::<f64>()? / 1e6)
}

/// All processes below a group, whoever made the groups in between.
fn processes(group: &str) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter(|e| e.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()));
    let below = format!("{group}/");
    let inside = |process: &PathBuf| {
        let text = fs::read_to_string(process.join("cgroup")).unwrap_or_default();
        text.lines().filter_map(|l| l.splitn(3, ':').nth(2)).any(|p| p == group || p.starts_with(&below))
    };
    numbers.map(|e| e.path()).filter(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::group_in;

    #[test]
    fn the_group_of_a_machine() {
        assert_eq!(group_in("4:cpu,cpuacct:/docker/ab\n0::/x\n"), Some("/docker/ab"));
        assert_eq!(group_in("0::/manykube/m-1/init.scope\n"), Some("/manykube/m-1"));
        assert_eq!(group_in(""), None);
    }
}
