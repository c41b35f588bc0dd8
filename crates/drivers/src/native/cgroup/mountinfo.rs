//! Which hierarchies the host has mounted, by its list of mounts.

use std::path::{Path, PathBuf};

use super::{Hierarchy, Version};

pub fn parse(text: &str) -> Option<Version> {
    let mut v1 = Vec::new();
    let mut v2 = None;
    for line in text.lines() {
        let (left, right) = line.split_once(" - ")?;
        let mount = PathBuf::from(left.split(' ').nth(4)?);
        let mut right = right.split(' ');
        let (kind, _, options) = (right.next()?, right.next()?, right.next().unwrap_or_default());
        match kind {
            "cgroup" if mount.starts_with("/sys/fs/cgroup") => {
                v1.push(Hierarchy { mount, options: v1_options(options) });
            }
            "cgroup2" if mount == Path::new("/sys/fs/cgroup") => {
                v2 = Some(Hierarchy { mount, options: String::new() });
            }
            _ => {}
        }
    }
    if v1.iter().any(|h| h.options.split(',').any(|o| o == "memory")) {
        return Some(Version::V1(v1));
    }
    v2.map(Version::V2)
}

/// The super options that name controllers: without `rw`, `xattr` and the like.
fn v1_options(options: &str) -> String {
    let skip = ["rw", "ro", "xattr", "noprefix", "clone_children", "cpuset_v2_mode"];
    let keep: Vec<&str> =
        options.split(',').filter(|o| !skip.contains(o) && !o.starts_with("release_agent=")).collect();
    let named_only = keep.iter().all(|o| o.starts_with("name="));
    if named_only { format!("none,{}", keep.join(",")) } else { keep.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hybrid_hosts_give_v1() {
        let text = "24 20 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
            25 24 0:22 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n\
            26 24 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            27 24 0:24 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n\
            28 24 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let Some(Version::V1(all)) = parse(text) else { panic!("not v1") };
        let options: Vec<&str> = all.iter().map(|h| h.options.as_str()).collect();
        assert_eq!(options, ["cpu,cpuacct", "memory", "none,name=systemd"]);
    }

    #[test]
    fn unified_hosts_give_v2() {
        let text = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        assert!(matches!(parse(text), Some(Version::V2(_))));
        assert_eq!(parse("30 23 0:26 / /proc rw - proc proc rw"), None);
    }
}
