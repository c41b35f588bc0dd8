//! Flags that every command takes.

use std::time::Duration;

use clap::Args;

use super::values::go_duration;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// The cluster that is meant
    #[arg(short, long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// Write the log to standard error too
    #[arg(long, global = true)]
    pub alsologtostderr: bool,
    /// Write the log to standard error instead of a file
    #[arg(long, global = true)]
    pub logtostderr: bool,
    /// How much to log
    #[arg(short, long = "v", global = true, value_name = "LEVEL")]
    pub verbosity: Option<String>,
    /// Write the log to a file in this directory
    #[arg(long = "log_dir", global = true, value_name = "DIR")]
    pub log_dir: Option<String>,
    /// Write the log to this file
    #[arg(long = "log_file", global = true, value_name = "FILE")]
    pub log_file: Option<String>,
    /// Who runs the command, for the audit log
    #[arg(long, global = true)]
    pub user: Option<String>,
    /// Keep this command out of the audit log
    #[arg(long = "skip-audit", global = true)]
    pub skip_audit: bool,
    /// How long to wait for another command that changes the same cluster; as long as it takes unless said
    #[arg(long = "lock-timeout", global = true, value_name = "DURATION", value_parser = go_duration)]
    pub lock_timeout: Option<Duration>,

    #[arg(short, long, global = true, hide = true)]
    bootstrapper: Option<String>,
    #[arg(long, global = true, hide = true)]
    rootless: bool,
    #[arg(long, global = true, hide = true)]
    vmodule: Option<String>,
    #[arg(long = "log_file_max_size", global = true, hide = true)]
    log_file_max_size: Option<String>,
    #[arg(long, global = true, hide = true)]
    stderrthreshold: Option<String>,
    #[arg(long = "add_dir_header", global = true, hide = true)]
    add_dir_header: bool,
    #[arg(long = "skip_headers", global = true, hide = true)]
    skip_headers: bool,
    #[arg(long = "skip_log_headers", global = true, hide = true)]
    skip_log_headers: bool,
    #[arg(long = "one_output", global = true, hide = true)]
    one_output: bool,
    #[arg(long = "log_backtrace_at", global = true, hide = true)]
    log_backtrace_at: Option<String>,
}

impl Globals {
    /// The same again, for a command line that is made anew; files of this host are left out.
    pub fn words(&self, profile: &str) -> Vec<String> {
        let flags = [
            ("--alsologtostderr", self.alsologtostderr),
            ("--logtostderr", self.logtostderr),
            ("--skip-audit", self.skip_audit),
        ];
        let lock_timeout = self.lock_timeout.map(|time| format!("{}ms", time.as_millis()));
        let values = [
            ("--profile", Some(profile)),
            ("--v", self.verbosity.as_deref()),
            ("--user", self.user.as_deref()),
            ("--lock-timeout", lock_timeout.as_deref()),
        ];
        let flags = flags.into_iter().filter(|(_, on)| *on).map(|(name, _)| name.to_owned());
        flags
            .chain(values.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?))))
            .collect()
    }
}
