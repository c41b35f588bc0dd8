//! `addons`: parts of a cluster that can be switched on and off.

mod images;
mod list;
mod open;
mod switch;

use anyhow::Result;
use bootstrap::addons::catalogue::{self, Addon};
use model::{Fault, Reason};

use super::{cluster as common, print};
use crate::args::suggest;
use crate::ctx::Ctx;
use crate::table;

pub use switch::{after_start, switch_on};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// List the addons and whether they are enabled
    List(list::Args),
    /// Enable an addon; on a stopped cluster it comes with the next start
    Enable(switch::EnableArgs),
    /// Disable an addon
    Disable(switch::DisableArgs),
    /// Print where the host reaches what an addon serves
    Open(open::Args),
    /// Ask for an addon's settings; those that there are have none
    Configure {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List the images of an addon
    Images {
        #[arg(value_name = "NAME")]
        name: String,
    },
}

pub fn default_reason(command: &Command) -> Reason {
    match command {
        Command::Disable(_) => Reason::AddonDisable,
        Command::Open(_) => Reason::ServiceList,
        _ => Reason::AddonEnable,
    }
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    match &args.command {
        Command::List(args) => list::run(ctx, args),
        Command::Enable(args) => switch::enable(ctx, args),
        Command::Disable(args) => switch::disable(ctx, args),
        Command::Open(args) => open::run(ctx, args),
        Command::Configure { name } => {
            let addon = find(name, Reason::AddonUnsupported)?;
            ctx.warn(format!("{} has no available configuration options", addon.name));
            Ok(0)
        }
        Command::Images { name } => {
            let addon = find(name, Reason::AddonEnable)?;
            let rows: Vec<Vec<String>> = addon
                .images
                .iter()
                .map(|(word, image)| vec![(*word).to_owned(), (*image).to_owned()])
                .collect();
            print(&table::render(&["IMAGE NAME", "DEFAULT IMAGE"], &rows));
            Ok(0)
        }
    }
}

/// Those that `start --addons` names.
pub fn asked(names: &[String]) -> Result<Vec<(String, bool)>, Fault> {
    let named = names.iter().filter(|n| !n.is_empty());
    named.map(|name| find(name, Reason::AddonEnable).map(|a| (a.name.to_owned(), true))).collect()
}

fn find(name: &str, reason: Reason) -> Result<&'static Addon, Fault> {
    catalogue::find(name).ok_or_else(|| {
        let fault =
            Fault::new(reason, format!("addon '{name}' is not a valid addon packaged with minikube."));
        match suggest::nearest(name, catalogue::ADDONS.iter().map(|a| a.name)) {
            Some(near) => fault.advice(format!("Did you mean {near}? 'addons list' has all of them")),
            None => fault.advice("To see the list of available addons, run: addons list"),
        }
    })
}
