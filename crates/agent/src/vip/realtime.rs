//! The election before all else that wants the processor.

use nix::libc;

/// Above ordinary threads, below those of the kernel that matter more.
const PRIORITY: i32 = 10;

/// For the calling thread, where the kernel allows it: in a user namespace, or in a cgroup without a
/// budget for it, it does not, and the thread is one like any other.
pub fn request() {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: `parameters` outlives the call; 0 is the calling thread.
    let _ = unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    };
}
