//! The command lines of `fault`.

use std::time::Duration;

use model::injected::{LOSS_OF, Slowness};
use model::{Fault, Reason};

use crate::args::values::go_duration;
use crate::report::Output;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Take a node's power away; it boots again at heal or start
    Kill(Target),
    /// Let everything in a node stand still
    Freeze(Target),
    /// Let a frozen node go on
    Thaw {
        /// m02, or the machine's name
        node: String,
    },
    /// Cut a node from the network: from everybody, or from some nodes
    Cut {
        #[command(flatten)]
        target: Target,
        /// Only from these nodes
        #[arg(long, value_delimiter = ',', value_name = "NODE")]
        from: Vec<String>,
    },
    /// Kill a program in a node; with --for again and again
    KillProcess {
        #[command(flatten)]
        target: ProcessTarget,
    },
    /// Leave a node no space on its disk, which must be its own (--disk-size)
    FillDisk {
        #[command(flatten)]
        target: Target,
        /// What is left
        #[arg(long, value_name = "SIZE", default_value = "0")]
        leave: String,
    },
    /// Delay or lose packets from and to a node
    Slow {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        how: SlowArgs,
    },
    /// Undo all faults, or those of one node
    Heal {
        /// m02, or the machine's name
        node: Option<String>,
        /// Of all nodes, as without a name
        #[arg(long)]
        all: bool,
    },
    /// List the faults that last
    #[command(visible_alias = "ls")]
    List {
        /// text or json
        #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
        output: Output,
    },
    /// What undoes a fault when its time is up.
    #[command(hide = true)]
    Watch { machine: String, kind: String },
}

#[derive(Debug, Clone, clap::Args)]
pub struct Target {
    /// m02, or the machine's name
    pub node: String,
    /// Undo it after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = some_time)]
    pub time: Option<Duration>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ProcessTarget {
    /// m02, or the machine's name
    pub node: String,
    /// etcd, apiserver, controller-manager, scheduler, kubelet, containerd, kube-proxy, or a program's name
    pub process: String,
    /// Kill it whenever it comes back within this time
    #[arg(long = "for", value_name = "DURATION", value_parser = some_time)]
    pub time: Option<Duration>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct SlowArgs {
    /// How long a packet is held back, each way
    #[arg(long, value_name = "DURATION", value_parser = go_duration)]
    pub delay: Option<Duration>,
    /// How much that differs from packet to packet
    #[arg(long, value_name = "DURATION", value_parser = go_duration)]
    pub jitter: Option<Duration>,
    /// How many packets are lost, each way
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub loss: Option<u16>,
}

impl SlowArgs {
    pub fn slowness(&self) -> Result<Slowness, Fault> {
        let micros = |flag: &str, time: Option<Duration>| {
            let limit = Duration::from_secs(60);
            let time = time.unwrap_or_default();
            let within = u32::try_from(time.as_micros()).ok().filter(|_| time <= limit);
            within.ok_or_else(|| Fault::new(Reason::Usage, format!("--{flag} may be 60s at most")))
        };
        let slowness = Slowness {
            delay_us: micros("delay", self.delay)?,
            jitter_us: micros("jitter", self.jitter)?,
            loss: self.loss.unwrap_or(0),
        };
        if slowness.delay_us == 0 && slowness.loss == 0 {
            return Err(Fault::new(Reason::Usage, "Say how slow: --delay 100ms, --loss 5, or both"));
        }
        if slowness.jitter_us > slowness.delay_us {
            return Err(Fault::new(Reason::Usage, "--jitter cannot be more than --delay"));
        }
        Ok(slowness)
    }
}

fn some_time(text: &str) -> Result<Duration, String> {
    match go_duration(text)? {
        time if time < Duration::from_secs(1) => Err("at least 1s".to_owned()),
        time => Ok(time),
    }
}

/// `5`, `5%`, `0.5`: of a hundred, kept in hundredths of one.
fn percent(text: &str) -> Result<u16, String> {
    let bad = || "not a percentage: give one like 5 or 0.5".to_owned();
    let number: f64 = text.trim_end_matches('%').trim().parse().map_err(|_| bad())?;
    let share = (number * f64::from(LOSS_OF) / 100.0).round();
    if !(0.0..=f64::from(LOSS_OF)).contains(&share) {
        return Err(bad());
    }
    // Within a range that fits, and whole.
    Ok(share as u16)
}

/// What Kubernetes' parts are called on a command line, and as programs.
pub fn program(name: &str) -> &str {
    match name {
        "apiserver" | "api-server" => "kube-apiserver",
        "controller-manager" => "kube-controller-manager",
        "scheduler" => "kube-scheduler",
        "proxy" => "kube-proxy",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_packets() {
        for (text, want) in [("5", 500), ("5%", 500), ("0.25 %", 25), ("0", 0), ("100", 10_000)] {
            assert_eq!(percent(text), Ok(want), "{text}");
        }
        for bad in ["", "x", "-1", "101", "NaN"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn slow_means_something() {
        let ms = |n| Some(Duration::from_millis(n));
        let slow = |delay, jitter, loss| SlowArgs { delay, jitter, loss }.slowness();
        assert!(slow(None, None, None).is_err());
        assert!(slow(ms(5), ms(10), None).is_err());
        assert!(slow(ms(61_000), None, None).is_err());
        assert_eq!(
            slow(ms(5), ms(1), Some(7)).map(|s| (s.delay_us, s.jitter_us, s.loss)),
            Ok((5000, 1000, 7))
        );
        assert!(some_time("0.5s").is_err() && some_time("90s").is_ok());
    }
}
