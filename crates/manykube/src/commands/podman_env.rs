//! `podman-env`: for the CRI-O runtime, which nodes do not have. Said in minikube's words and codes.

use std::io::IsTerminal as _;

use anyhow::Result;
use model::{Fault, Reason};

use super::{cluster as common, print};
use crate::ctx::Ctx;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The shell to print for
    #[arg(long)]
    pub shell: Option<String>,
    /// Print what takes the variables back
    #[arg(short, long)]
    pub unset: bool,
}

/// What podman-env sets.
const VARIABLES: [&str; 3] = ["CONTAINER_HOST", "CONTAINER_SSHKEY", "MINIKUBE_ACTIVE_PODMAN"];

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    if args.unset {
        let fish = args.shell.as_deref() == Some("fish");
        let line = |name: &str| if fish { format!("set -e {name};\n") } else { format!("unset {name};\n") };
        print(&VARIABLES.map(line).concat());
        return Ok(0);
    }
    common::load(ctx)?;
    let fault = Fault::new(
        Reason::Usage,
        "The podman-env command is only compatible with the \"crio\" runtime, but this cluster was configured to use the \"containerd\" runtime.",
    );
    // For `eval`, which does not look at our exit code.
    if !std::io::stdout().is_terminal() {
        print(&format!("false exit code {}\n", fault.reason.exit_code()));
    }
    Err(fault.into())
}
