//! What a node says of its own size. The kubelet reads it from where the kernel tells the host's, so
//! these files are covered by the node's own: then its capacity in the API, `free` and `nproc` agree
//! with what its control group enforces.

mod meminfo;

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use tokio::task::spawn_local;
use tokio::time::sleep;

use meminfo::Usage;

const DIR: &str = "/run/manykube/capacity";
const MEMINFO: &str = "/proc/meminfo";
const CPUS_ONLINE: &str = "/sys/devices/system/cpu/online";
/// Whoever looks at `free` does it by eye.
const EVERY: Duration = Duration::from_secs(1);

/// The files, and what was there before they were covered.
pub struct Capacity {
    host_memory: File,
    host_cpus: String,
    shown: RefCell<Shown>,
}

#[derive(Default)]
struct Shown {
    memory: Option<(File, u64)>,
    cpus: Option<File>,
}

/// Covers the files, and keeps the one that changes true from then on.
pub fn show(memory_mib: Option<u32>) -> Result<Rc<Capacity>> {
    let capacity = Rc::new(Capacity {
        host_memory: File::open(MEMINFO).context("read the host's memory")?,
        host_cpus: std::fs::read_to_string(CPUS_ONLINE).unwrap_or_default(),
        shown: RefCell::default(),
    });
    capacity.set(memory_mib)?;
    let follow = capacity.clone();
    spawn_local(async move {
        loop {
            sleep(EVERY).await;
            if let Err(e) = follow.refresh() {
                tracing::warn!("{MEMINFO}: {e:#}");
            }
        }
    });
    Ok(capacity)
}

impl Capacity {
    /// The size is this from now on; the processors are those that the driver has given this node by now.
    pub fn set(&self, memory_mib: Option<u32>) -> Result<()> {
        self.set_cpus()?;
        let host = read(&self.host_memory)?;
        let total = meminfo::total(&host).unwrap_or(u64::MAX);
        // More than there is is no limit, and must not look like one.
        let limit = memory_mib.map_or(total, |mib| (u64::from(mib) << 20).min(total));
        let mut shown = self.shown.borrow_mut();
        match &mut shown.memory {
            Some((_, old)) => *old = limit,
            None if limit < total => {
                let text = meminfo::render(&host, limit, usage().unwrap_or_default());
                shown.memory = Some((cover(MEMINFO, &text)?, limit));
            }
            None => {}
        }
        drop(shown);
        self.refresh()
    }

    fn set_cpus(&self) -> Result<()> {
        let status = fs_err::read_to_string("/proc/self/status")?;
        let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).map(str::trim);
        let Some(allowed) = allowed.filter(|_| !self.host_cpus.is_empty()) else { return Ok(()) };
        let mut shown = self.shown.borrow_mut();
        let text = format!("{allowed}\n");
        match &shown.cpus {
            Some(own) => replace(own, &text)?,
            None if allowed != self.host_cpus.trim() => shown.cpus = Some(cover(CPUS_ONLINE, &text)?),
            None => {}
        }
        Ok(())
    }

    fn refresh(&self) -> Result<()> {
        let shown = self.shown.borrow();
        let (Some((own, limit)), Some(usage)) = (&shown.memory, usage()) else { return Ok(()) };
        replace(own, &meminfo::render(&read(&self.host_memory)?, *limit, usage))
    }
}

/// In one piece and mostly of the same length, so that nobody reads half of it.
fn replace(own: &File, text: &str) -> Result<()> {
    own.write_all_at(text.as_bytes(), 0)?;
    Ok(own.set_len(text.len() as u64)?)
}

/// The kernel makes the text anew for whoever reads from the beginning.
fn read(file: &File) -> Result<String> {
    let mut text = vec![0; 16 << 10];
    let length = file.read_at(&mut text, 0).context("read the host's memory")?;
    text.truncate(length);
    String::from_utf8(text).context("read the host's memory")
}

/// The cgroup namespace shows the node's own group as the root.
fn usage() -> Option<Usage> {
    let of = |path: &str| std::fs::read_to_string(Path::new("/sys/fs/cgroup").join(path)).ok();
    let used = of("memory/memory.usage_in_bytes").or_else(|| of("memory.current"))?;
    let stat = of("memory/memory.stat").or_else(|| of("memory.stat"))?;
    meminfo::usage(&used, &meminfo::only_totals(&stat))
}

/// Puts a text of the node in the place of one of the kernel's.
pub fn cover(path: &str, text: &str) -> Result<File> {
    let name = path.trim_start_matches('/').replace('/', "-");
    fs_err::create_dir_all(DIR)?;
    let own = Path::new(DIR).join(name);
    fs_err::write(&own, text)?;
    mount(Some(&own), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .with_context(|| format!("cover {path}"))?;
    Ok(fs_err::OpenOptions::new().write(true).open(&own)?.into_parts().0)
}
