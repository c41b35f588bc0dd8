//! Signals that are to end a command, wherever it runs.

use std::io;

use futures::FutureExt as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub struct Signals(Vec<(Signal, &'static str)>);

impl Signals {
    /// From now on they do not end this process. A terminal that goes away is a reason to end, unless somebody wanted it not
    /// to be one (`nohup`).
    pub fn listen() -> io::Result<Signals> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kinds = [
            (SignalKind::interrupt(), "SIGINT"),
            (SignalKind::terminate(), "SIGTERM"),
            (SignalKind::hangup(), "SIGTERM"),
            (SignalKind::quit(), "SIGTERM"),
        ];
        let (always, unless) = kinds.split_at(2);
        let heard = unless.iter().filter(|(kind, _)| !ignores(&status, kind.as_raw_value()));
        let all = always.iter().chain(heard).map(|(kind, name)| Ok((signal(*kind)?, *name)));
        all.collect::<io::Result<_>>().map(Signals)
    }

    /// What the command is to be told.
    pub async fn next(&mut self) -> &'static str {
        let all = self.0.iter_mut().map(|(signal, name)| {
            let name = *name;
            async move { signal.recv().await.map(|()| name) }.boxed()
        });
        match futures::future::select_all(all).await.0 {
            Some(name) => name,
            None => std::future::pending().await,
        }
    }
}

/// By /proc/PID/status.
fn ignores(status: &str, number: i32) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (number - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_has_done() {
        let status =
            "Name:\tsh\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000006\n";
        assert!(ignores(status, 1) && ignores(status, 13));
        assert!(!ignores(status, 3) && !ignores("", 1));
    }
}
