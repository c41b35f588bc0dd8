//! Faults that somebody put into a cluster on purpose and that last. (An error that ends a command is
//! a [`crate::Fault`].)

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// What is wrong with a machine, and since when. Times are seconds of the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injected {
    pub machine: String,
    #[serde(flatten)]
    pub harm: Harm,
    pub since: i64,
    /// When it is undone by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Harm {
    /// Without a word, as by a loss of power.
    Killed,
    /// Nothing in it runs, but all is there.
    Frozen,
    /// No packet passes between it and these machines; with none named, between it and anybody.
    Cut {
        #[serde(default)]
        from: Vec<String>,
    },
    Slow(Slowness),
    /// Only so much is left on its disk.
    DiskFull {
        #[serde(default)]
        left_mib: u32,
    },
    /// Killed again whenever it comes back.
    ProcessKilled {
        process: String,
    },
}

/// Of every packet from and to a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slowness {
    #[serde(default)]
    pub delay_us: u32,
    #[serde(default)]
    pub jitter_us: u32,
    /// Packets of ten thousand that are lost.
    #[serde(default)]
    pub loss: u16,
}

/// How many packets [`Slowness::loss`] is a share of.
pub const LOSS_OF: u16 = 10_000;

/// What a node does to its own packets: the document at [`crate::node_spec::PACKET_FAULTS_PATH`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PacketFaults {
    /// All packets are lost.
    pub cut: bool,
    /// All packets from and to these nodes are lost.
    pub cut_from: BTreeSet<Ipv4Addr>,
    pub slowness: Slowness,
}

impl PacketFaults {
    pub fn is_none(&self) -> bool {
        *self == PacketFaults::default()
    }
}

impl Harm {
    /// As `fault list` names it. A machine has at most one of each.
    pub fn kind(&self) -> &'static str {
        match self {
            Harm::Killed => "killed",
            Harm::Frozen => "frozen",
            Harm::Cut { .. } => "cut",
            Harm::Slow(_) => "slow",
            Harm::DiskFull { .. } => "disk-full",
            Harm::ProcessKilled { .. } => "process-killed",
        }
    }

    /// Is it about packets, which the nodes lose themselves?
    pub fn is_of_network(&self) -> bool {
        matches!(self, Harm::Cut { .. } | Harm::Slow(_))
    }

    /// In words.
    pub fn text(&self) -> String {
        match self {
            Harm::Killed => "killed".to_owned(),
            Harm::Frozen => "frozen".to_owned(),
            Harm::Cut { from } if from.is_empty() => "cut off".to_owned(),
            Harm::Cut { from } => format!("cut from {}", from.join(", ")),
            Harm::Slow(slowness) => format!("slow ({})", slowness.text()),
            Harm::DiskFull { left_mib: 0 } => "disk full".to_owned(),
            Harm::DiskFull { left_mib } => format!("disk full but for {left_mib} MiB"),
            Harm::ProcessKilled { process } => format!("{process} is killed again and again"),
        }
    }
}

impl Slowness {
    pub fn text(&self) -> String {
        let ms = |us: u32| format!("{} ms", f64::from(us) / 1000.0);
        let mut parts = Vec::new();
        if self.delay_us > 0 {
            let jitter =
                if self.jitter_us > 0 { format!(" ± {}", ms(self.jitter_us)) } else { String::new() };
            parts.push(format!("delay {}{jitter}", ms(self.delay_us)));
        }
        if self.loss > 0 {
            parts.push(format!("loss {} %", f64::from(self.loss) / 100.0));
        }
        parts.join(", ")
    }
}

impl Injected {
    /// In words, with what is left of its time at `now`.
    pub fn text(&self, now: i64) -> String {
        match self.until {
            Some(until) => format!("{} ({} s left)", self.harm.text(), (until - now).max(0)),
            None => self.harm.text(),
        }
    }

    pub fn is_same(&self, other: &Injected) -> bool {
        self.machine == other.machine && self.harm.kind() == other.harm.kind()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_files() {
        let slow = Slowness { delay_us: 50_500, jitter_us: 5_000, loss: 250 };
        for (harm, text) in [
            (Harm::Frozen, "frozen"),
            (Harm::Cut { from: vec![] }, "cut off"),
            (Harm::Cut { from: vec!["a".into(), "b".into()] }, "cut from a, b"),
            (Harm::DiskFull { left_mib: 0 }, "disk full"),
            (Harm::DiskFull { left_mib: 7 }, "disk full but for 7 MiB"),
            (Harm::Slow(slow), "slow (delay 50.5 ms ± 5 ms, loss 2.5 %)"),
            (Harm::ProcessKilled { process: "etcd".into() }, "etcd is killed again and again"),
        ] {
            assert_eq!(harm.text(), text);
            let fault = Injected { machine: "m".into(), harm, since: 10, until: Some(40) };
            assert_eq!(fault.text(30), format!("{text} (10 s left)"));
            let file = serde_json::to_string(&fault).expect("a document");
            assert_eq!(serde_json::from_str::<Injected>(&file).expect("read back"), fault);
        }
    }
}
