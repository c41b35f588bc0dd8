//! What no process of a node may do, because it reaches the whole host by the kernel that all share.

use rustix::io;
use rustix::thread::{CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities};

/// Kernel modules, ports and disks as raw bytes, another kernel, files by handle instead of by path.
const DROPPED: [CapabilitySet; 4] = [
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::DAC_READ_SEARCH,
];

/// For this thread and all that it starts.
pub fn drop() -> io::Result<()> {
    DROPPED.into_iter().try_for_each(remove_capability_from_bounding_set)?;
    let mut sets = capabilities(None)?;
    for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
        DROPPED.into_iter().for_each(|capability| set.remove(capability));
    }
    set_capabilities(None, sets)
}
