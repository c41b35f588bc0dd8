//! Which commands touch machines, and which of them are about more than one profile.

use crate::args::Commands;
use crate::commands::profile;

pub fn machines(command: &Commands) -> bool {
    match command {
        Commands::Kubectl(args) => args.ssh,
        Commands::Profile(args) => lists(args),
        Commands::Config(_) | Commands::Driver(_) => false,
        other => !other.only_prints(),
    }
}

pub fn all_profiles(command: &Commands) -> bool {
    match command {
        Commands::Delete(args) => args.all,
        Commands::Stop(args) => args.all,
        Commands::Profile(args) => lists(args),
        _ => false,
    }
}

/// Does it end with the code of a program of the user's, which may be any?
pub fn any_code(command: &Commands) -> bool {
    matches!(command, Commands::Kubectl(_))
}

fn lists(args: &profile::Args) -> bool {
    matches!(args.command, Some(profile::Command::List(_)))
}
