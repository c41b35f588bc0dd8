//! What a node says of its own size. The kubelet reads it from where the kernel tells the host's, so
//! these files are covered by the node's own: then its capacity in the API, `free` and `nproc` agree
//! with what its control group enforces.

mod meminfo;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use tokio::time::sleep;

use meminfo::Usage;

const DIR: &str = "/run/manykube/capacity";
const MEMINFO: &str = "/proc/meminfo";
const CPUS_ONLINE: &str = "/sys/devices/system/cpu/online";
/// Whoever looks at `free` does it by eye.
const EVERY: Duration = Duration::from_secs(1);

/// Covers the files, and keeps the one that changes true from then on.
pub fn show(memory_mib: Option<u32>) -> Result<()> {
    fs_err::create_dir_all(DIR)?;
    show_cpus()?;
    let host = File::open(MEMINFO).context("read the host's memory")?;
    let text = read(&host)?;
    let limit = memory_mib.map(|mib| u64::from(mib) << 20);
    // More than there is is no limit, and must not look like one.
    if let (Some(limit), Some(total)) = (limit, meminfo::total(&text))
        && limit < total
    {
        let own = cover(MEMINFO, &meminfo::render(&text, limit, usage().unwrap_or_default()))?;
        tokio::task::spawn_local(follow(host, own, limit));
    }
    Ok(())
}

/// The processors this node may run on, which the driver decides.
fn show_cpus() -> Result<()> {
    let status = fs_err::read_to_string("/proc/self/status")?;
    let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).map(str::trim);
    let online = std::fs::read_to_string(CPUS_ONLINE).unwrap_or_default();
    match allowed {
        Some(allowed) if !online.is_empty() && allowed != online.trim() => {
            cover(CPUS_ONLINE, &format!("{allowed}\n")).map(drop)
        }
        _ => Ok(()),
    }
}

async fn follow(host: File, own: File, limit: u64) {
    loop {
        sleep(EVERY).await;
        let (Ok(text), Some(usage)) = (read(&host), usage()) else { continue };
        let text = meminfo::render(&text, limit, usage);
        // In one piece and of the same length, so that nobody reads half of it.
        let written = own.write_all_at(text.as_bytes(), 0).and_then(|()| own.set_len(text.len() as u64));
        if let Err(e) = written {
            tracing::warn!("{MEMINFO}: {e}");
        }
    }
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

fn cover(path: &str, text: &str) -> Result<File> {
    let name = path.trim_start_matches('/').replace('/', "-");
    let own = Path::new(DIR).join(name);
    fs_err::write(&own, text)?;
    mount(Some(&own), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .with_context(|| format!("cover {path}"))?;
    Ok(fs_err::OpenOptions::new().write(true).open(&own)?.into_parts().0)
}
