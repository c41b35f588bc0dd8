//! Files that our caller had open are not for what we start in a node or leave behind. A directory of the host that
//! is open in a node is a way out of it (CVE-2024-21626), and a pipe that stays open keeps its reader waiting.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;

/// After standard input, output and error.
const FIRST: u32 = 3;

/// Nothing that this process runs from now on has more than the standard three, unless it is given to it on purpose.
pub fn keep_here() -> io::Result<()> {
    match close_on_exec() {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) => one_by_one(),
        done => done,
    }
}

/// The same for one command.
pub fn keep_from(command: &mut Command) {
    // SAFETY: one system call, which is async-signal-safe. A kernel that does not know it (before 5.11) is let be: nothing
    // else can be done between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let _ = close_on_exec();
            Ok(())
        });
    }
}

fn close_on_exec() -> io::Result<()> {
    // SAFETY: no memory is handed over, and no descriptor is closed now.
    let done = unsafe { libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn one_by_one() -> io::Result<()> {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd: &i32| fd.cast_unsigned() >= FIRST)
        .collect();
    for fd in open {
        // SAFETY: only looked at by the kernel; the one of the list itself is closed by now, which it says.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        let _ = fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd as _;

    use super::*;

    /// As a shell's `7</etc` or a CI runner leaves it.
    fn leaked() -> File {
        let file = File::open("/etc").unwrap();
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        file
    }

    fn sees(file: &File, prepare: impl FnOnce(&mut Command)) -> bool {
        let mut look = Command::new("test");
        look.args(["-e", &format!("/proc/self/fd/{}", file.as_raw_fd())]);
        prepare(&mut look);
        look.status().unwrap().success()
    }

    #[test]
    fn what_is_started_has_not_what_its_caller_had_open() {
        let file = leaked();
        assert!(sees(&file, |_| ()), "the test shows nothing");
        assert!(!sees(&file, keep_from));
        keep_here().unwrap();
        assert!(!sees(&file, |_| ()));
        let file = leaked();
        one_by_one().unwrap();
        assert!(!sees(&file, |_| ()), "with an older kernel");
        assert!(file.metadata().is_ok(), "it is still ours");
    }
}
