//! `profile`: which cluster is meant when none is named.

use anyhow::Result;
use model::{Fault, Reason, names};

use super::profile_list;
use crate::ctx::Ctx;
use crate::kubeconfig::{self, document};
use crate::report::{Event, Style};
use crate::state::{profile, settings};

#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The profile to make the active one; without it the active one is printed
    pub name: Option<String>,
}

impl Args {
    /// It does not ask for anybody's state.
    pub fn is_light(&self) -> bool {
        matches!(&self.command, Some(Command::List(list)) if list.light)
    }
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// List all profiles
    List(profile_list::Args),
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    match (&args.command, args.name.as_deref()) {
        (Some(Command::List(args)), _) => profile_list::run(ctx, args),
        (None, None) => {
            ctx.emit(Event::info(Style::Normal, ctx.profile.clone()));
            Ok(0)
        }
        (None, Some("default")) => activate(ctx, &ctx.default_profile),
        (None, Some(name)) => activate(ctx, name),
    }
}

/// Earlier versions called the first cluster of a home `minikube`, under either name of the program.
pub fn mention_older(ctx: &Ctx) {
    let exists = |name: &str| ctx.home.profile_config(name).exists();
    let (older, own) = ("minikube", ctx.tool);
    if ctx.profile == own && ctx.default_profile == own && !exists(own) && exists(older) {
        ctx.warn(format!(
            "The cluster \"{older}\" of this home needs '-p {older}', or '{own} profile {older}' once"
        ));
    }
}

/// Refuses names that are no names, for every command.
pub fn check_name(name: &str) -> Result<(), Fault> {
    if names::is_valid_profile(name) {
        return Ok(());
    }
    Err(Fault::new(Reason::Usage, format!("The profile name {name:?} is not valid"))
        .advice("Use letters, digits and dashes inside; at least two and at most 40 characters"))
}

pub fn reserved(name: &str) -> Fault {
    Fault::new(Reason::ReservedProfile, format!("The profile name {name:?} is reserved"))
        .advice("Choose another name")
}

fn activate(ctx: &Ctx, name: &str) -> Result<u8> {
    if names::is_reserved_profile(name) {
        return Err(reserved(name).into());
    }
    check_name(name)?;
    // The default one need not exist; any other one that does not is refused, but is no failure.
    let file = profile::load(&ctx.home, name)?;
    if file.is_none() && name != ctx.default_profile {
        ctx.warn(format!("profile \"{name}\" not found. To create it, run: {} start -p {name}", ctx.tool));
        return Ok(0);
    }
    settings::set(&ctx.home, "profile", Some(name.into()))?;
    if let Some(file) = file.filter(|f| !f.cluster.keep_context) {
        let name = &file.cluster.name;
        kubeconfig::edit(&super::cluster::kubeconfig_path(), |doc| {
            let known = super::cluster::is_in_kubeconfig(&ctx.home, doc, name);
            if known {
                document::set_current(doc, name);
            }
            known
        })?;
    }
    ctx.emit(Event::info(Style::Sparkle, format!("minikube profile was successfully set to {name}")));
    Ok(0)
}
