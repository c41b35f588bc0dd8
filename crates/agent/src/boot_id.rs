//! Every boot of a node has an id of its own, as every boot of a machine has. The kernel knows only the
//! host's, so the file is covered. The kubelet tells the API, where others see by it that the node was
//! restarted, and that it has spoken since.

use anyhow::Result;

use crate::capacity::cover;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// A new one at each reading.
const UUID: &str = "/proc/sys/kernel/random/uuid";

pub fn make() -> Result<String> {
    let id = fs_err::read_to_string(UUID)?;
    cover(BOOT_ID, &id)?;
    Ok(id.trim().to_owned())
}
