//! A second host, as far as networks and files go.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Its end of the cable.
pub const ADDRESS: &str = "10.99.0.2";

pub struct Far {
    holder: Child,
}

impl Far {
    /// With a cable to this thread's network namespace.
    pub fn new(hidden: &Path) -> Far {
        let holder = Command::new("unshare")
            .args(["--net", "--mount", "sleep", "infinity"])
            .stdin(Stdio::null())
            .spawn()
            .expect("make the namespaces");
        let far = Far { holder };
        let pid = far.holder.id();
        let ours = std::fs::read_link("/proc/thread-self/ns/mnt").expect("own namespace");
        crate::eventually("the other namespaces", Duration::from_secs(5), || {
            let other = std::fs::read_link(format!("/proc/{pid}/ns/mnt")).map_err(|e| e.to_string())?;
            if other == ours { Err("still ours".into()) } else { Ok(()) }
        });
        std::fs::create_dir_all(hidden).expect("make what is hidden");
        let script = format!(
            "ip link add near0 type veth peer name far0 netns {pid} && ip addr add 10.99.0.1/24 dev near0 && \
             ip link set near0 up && nsenter -t {pid} -n sh -ec 'ip link set lo up; ip addr add {ADDRESS}/24 dev far0; \
             ip link set far0 up' && nsenter -t {pid} -m mount -t tmpfs none {}",
            hidden.display()
        );
        let done = Command::new("sh").args(["-ec", &script]).status().expect("run sh");
        assert!(done.success(), "lay the cable");
        far
    }

    /// What comes before a program that is to run there.
    pub fn enter(&self) -> Vec<String> {
        ["nsenter", "-t", &self.holder.id().to_string(), "-n", "-m"].map(str::to_owned).to_vec()
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
