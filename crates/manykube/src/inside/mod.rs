//! Commands that the engine runs: those of a user who is not root, and all where the engine is elsewhere.
//!
//! All that touches machines needs root on the host of the nodes. Who may use the engine has that by way of it
//! (`drivers::docker::inside`), so the same command line is run there, and this process only passes on what goes in
//! and comes out. What needs no machines stays here. Where the engine does not see our files its home is a volume
//! (`there`), and where we do not see its network there is a door on loopback (`door`).

pub mod door;
mod doorman;
mod files;
pub mod mark;
mod mirror;
mod needs;
pub mod others;
mod place;
mod service;
mod there;
mod variables;
mod ways;

use anyhow::{Context as _, Result};
use drivers::docker::inside::{Engine, Errand, Input, Luggage, NOT_RUN, Outcome, Place, Whereabouts};
use drivers::docker::{Address, ENGINE};
use model::{DriverKind, Fault, Reason};

use self::others::By;
use crate::args::{Commands, Globals};
use crate::commands;
use crate::ctx::Ctx;
use crate::report::{Event, Style};
use crate::state::{owner, profile};
use crate::{host, kubeconfig};

/// Set for a command that is run by the engine: it is where it belongs.
pub const INSIDE: &str = "MANYKUBE_INSIDE";
/// What we say to ourselves, and the user did not.
pub const VARIABLES: [&str; 4] = [INSIDE, ENGINE, others::VARIABLE, crate::state::handout::VARIABLE];

/// Runs the command by the engine if that is where it belongs; `None` when it is to be run here.
pub fn instead(ctx: &Ctx, globals: &Globals, command: &Commands, argv: Vec<String>) -> Result<Option<u8>> {
    if host::env(INSIDE).is_some() || !needs::machines(command) {
        return Ok(None);
    }
    if matches!(command, Commands::Start(_)) {
        commands::check_kubectl(ctx)?;
    }
    let fresh =
        matches!(command, Commands::Start(_)) && matches!(profile::load(&ctx.home, &ctx.profile), Ok(None));
    let done = by_engine(ctx, globals, command, argv, fresh)?;
    if fresh && done.is_none() {
        // Of a start that was killed: no door leads to what is made here.
        door::forget(&ctx.home, &ctx.profile)?;
    }
    Ok(done)
}

fn by_engine(
    ctx: &Ctx,
    globals: &Globals,
    command: &Commands,
    argv: Vec<String>,
    fresh: bool,
) -> Result<Option<u8>> {
    let known = || door::address(&ctx.home, &ctx.profile).or_else(|| mark::address(&ctx.home, &ctx.profile));
    // A door of a start that was killed does not say where another one goes.
    let behind = if fresh { None } else { known() };
    let address = behind.clone().unwrap_or_else(Address::of_environment);
    let root = host::is_root() && address.is_socket();
    if root {
        let own = owner::is_own(&ctx.home).is_ok();
        if behind.is_some() && !own {
            // Root here would look for its machines at another engine, or in another network.
            let message =
                format!("The cluster \"{}\" is at an engine of the user whose home this is", ctx.profile);
            let advice = "Run the same command as that user, without sudo";
            return Err(Fault::new(Reason::DriverNotHealthy, message).advice(advice).into());
        }
        // Images are for nodes of any engine.
        let is_image = matches!(command, Commands::NodeImage(_));
        if !own || is_image || (behind.is_none() && (!may_be_dockers(ctx, command)? || address.is_here())) {
            return Ok(None);
        }
    }
    // Not by `ctx.run`: signals are the command's.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("start the runtime")?;
    let done = runtime.block_on(async {
        if !is_dockers(ctx, command, &address, behind.is_some()).await? {
            return Ok(None);
        }
        owner::is_own(&ctx.home)?;
        let found = Engine::find(address.clone()).await;
        let is_lost = behind.is_some() && !address.is_socket() && matches!(command, Commands::Delete(_));
        let engine = found.map_err(|fault| if is_lost { for_good(ctx, fault) } else { fault })?;
        if matches!(command, Commands::Start(_)) {
            // Before it is asked to run anything: what it lacks would show as something else.
            engine.suits().await?;
        }
        let where_it_is = place::of(ctx, &engine).await?;
        if root && where_it_is.files && where_it_is.network {
            return Ok(None);
        }
        let errand = Call { ctx, globals, command, argv, engine, where_it_is };
        errand.run().await.map(Some)
    });
    runtime.shutdown_background();
    done
}

/// Of a cluster that is to be deleted, at an engine that does not answer.
fn for_good(ctx: &Ctx, fault: Fault) -> Fault {
    let (profile, door) = (ctx.home.profile(&ctx.profile), door::file(&ctx.home, &ctx.profile, "json"));
    let advice = format!(
        "{}. If it is gone for good, remove {} and {}, and run '{}' again: what the engine has of the cluster stays there",
        fault.advice.as_deref().unwrap_or("Start the engine"),
        profile.display(),
        door.display(),
        ctx.hint("delete")
    );
    fault.advice(advice)
}

/// Are the machines that the command is about containers?
async fn is_dockers(ctx: &Ctx, command: &Commands, address: &Address, behind: bool) -> Result<bool> {
    if matches!(command, Commands::Start(_)) && owner::is_own(&ctx.home).is_ok() {
        // Which driver it is stands in the file.
        profile::mend(ctx, &ctx.profile).await?;
    }
    let engine_answers = async || Engine::find(address.clone()).await.is_ok();
    // What a home in a volume has is known there only.
    let any = !address.is_socket() || has_dockers(ctx)?;
    let of = |name: &str| profile::load(&ctx.home, name).ok().flatten().map(|file| file.cluster.driver);
    Ok(match (of(&ctx.profile), command) {
        _ if needs::all_profiles(command) => any && engine_answers().await,
        // Another driver than the profile's is refused before anything else.
        (_, Commands::Start(args)) => commands::start::driver(ctx, args).await? == DriverKind::Docker,
        (Some(driver), _) => driver == DriverKind::Docker,
        // Machines of a lost profile, and images, may be anybody's.
        (None, Commands::Delete(_)) => behind || (any && engine_answers().await),
        (None, Commands::NodeImage(_)) => address.is_socket() && engine_answers().await,
        (None, _) => false,
    })
}

/// Without asking anybody: an engine that was stopped may be one that starts when somebody comes to its socket.
fn may_be_dockers(ctx: &Ctx, command: &Commands) -> Result<bool> {
    let driver = match profile::load(&ctx.home, &ctx.profile) {
        Ok(Some(file)) => Some(file.cluster.driver),
        _ => None,
    };
    Ok(match (driver, command) {
        _ if needs::all_profiles(command) => has_dockers(ctx)?,
        (Some(driver), _) => driver == DriverKind::Docker,
        (None, Commands::Start(args)) => args.driver.as_deref() != Some("native"),
        (None, Commands::Delete(_)) => has_dockers(ctx)?,
        (None, _) => false,
    })
}

/// Has this home anything of the engine's? A machine of a lost profile is root's, and says no more than its name; root
/// needs no engine to look at it.
fn has_dockers(ctx: &Ctx) -> Result<bool> {
    let profiles = profile::list(&ctx.home)?.into_iter();
    let mut kinds = profiles.filter_map(|(_, file)| Some(file.ok()?.cluster.driver));
    let machines = || std::fs::read_dir(ctx.home.machines()).is_ok_and(|mut all| all.next().is_some());
    Ok(kinds.any(|kind| kind == DriverKind::Docker) || (!host::is_root() && machines()))
}

/// A command on its way to the engine.
struct Call<'a> {
    ctx: &'a Ctx,
    globals: &'a Globals,
    command: &'a Commands,
    argv: Vec<String>,
    engine: Engine,
    where_it_is: Whereabouts,
}

impl Call<'_> {
    async fn run(self) -> Result<u8> {
        let Whereabouts { files, network } = self.where_it_is;
        let volume = if files { None } else { Some(there::home(&self).await?) };
        let label = match &volume {
            Some(there) => there.root(self.ctx.tool),
            None => self.ctx.home.root().to_owned(),
        };
        let (home, profile) = (&self.ctx.home, &self.ctx.profile);
        let is_start = matches!(self.command, Commands::Start(_));
        let reserved = is_start && !network && door::reserve(home, profile, &self.engine.address, &label)?;
        if is_start && network {
            door::forget(home, profile)?;
        }
        let by = match &volume {
            Some(there) => By::There(&there.own),
            None => By::Same(&self.engine.address, network),
        };
        let outcome = match &volume {
            Some(there) => there.run(&self).await,
            None => self.run_here(by).await,
        };
        if reserved && matches!(profile::load(home, profile), Ok(None)) {
            // It made no cluster: a door would say of the next one where it is.
            door::forget(home, profile)?;
        }
        let outcome = outcome?;
        if outcome.code == NOT_RUN && !needs::any_code(self.command) {
            return Err(Fault::new(
                Reason::DriverNotHealthy,
                "The Docker engine did not run the command: why stands above",
            )
            .advice("Use an engine of this host, or run the same command with sudo")
            .into());
        }
        let code = if files && network { outcome.code } else { self.afterwards(outcome).await? };
        if code == 0 && needs::all_profiles(self.command) {
            self.pass_over(by)?;
        }
        Ok(code)
    }

    /// Where the engine sees the same home.
    async fn run_here(&self, by: By<'_>) -> Result<Outcome> {
        let others: Vec<String> =
            others::of(&self.ctx.home, by).into_iter().map(|other| other.name).collect();
        let mut errand = self.errand()?;
        errand.env.push((others::VARIABLE.to_owned(), others.join(",")));
        self.engine.run(errand).await
    }

    /// What was for all was for those of this engine.
    fn pass_over(&self, by: By<'_>) -> Result<(), Fault> {
        let others = others::of(&self.ctx.home, by);
        match self.command {
            Commands::Profile(args) if args.is_light() => {}
            Commands::Profile(_) => others::warn(self.ctx, &others),
            command => {
                others::refuse(self.ctx, command.name(), commands::default_reason(command), &others)?;
            }
        }
        Ok(())
    }

    /// What it takes to reach from here what the command has made there.
    async fn afterwards(&self, outcome: Outcome) -> Result<u8> {
        let (ctx, profile) = (self.ctx, &self.ctx.profile);
        match (self.command, profile::load(&ctx.home, profile)?) {
            (Commands::Delete(_), None) => door::forget(&ctx.home, profile)?,
            (Commands::Stop(_), _) | (_, None) => {}
            (_, Some(file)) => {
                let kept = door::look_after(ctx, &file.cluster).await?;
                if kept != door::Kept::There && matches!(self.command, Commands::Status(_)) {
                    ctx.warn("The process that leads to the API server had ended, and was started again");
                }
                let points = matches!(self.command, Commands::Start(_) | Commands::UpdateContext(_));
                if points && outcome.code == 0 && !self.where_it_is.files {
                    commands::point_kubectl(ctx, &file.cluster)?;
                    let server = crate::core::server(ctx, &file.cluster);
                    ctx.emit(Event::info(Style::Ready, format!("From here, the API server is {server}")));
                }
                if self.keeps() && outcome.code == 0 {
                    return service::forward(self, &outcome.said).await;
                }
            }
        }
        Ok(outcome.code)
    }

    /// Addresses of services are of no use here as they are.
    fn keeps(&self) -> bool {
        matches!(self.command, Commands::Service(args) if args.command.is_none()) && !self.where_it_is.network
    }

    fn errand(&self) -> Result<Errand> {
        // Made now: what the engine makes is root's.
        if let Some(dir) = kubeconfig::path(&host::env).parent().filter(|d| !d.as_os_str().is_empty()) {
            fs_err::create_dir_all(dir)?;
        }
        Ok(Errand {
            argv: self.argv.clone(),
            env: self.variables(),
            dir: std::env::current_dir().context("find the current directory")?,
            home: Place::Same(self.ctx.home.root().to_owned()),
            luggage: Luggage::default(),
            input: self.input(),
            keep: self.keeps(),
        })
    }

    fn variables(&self) -> Vec<(String, String)> {
        let mut kept = variables::kept(std::env::vars());
        kept.retain(|(name, _)| !VARIABLES.contains(&name.as_str()));
        kept.push((INSIDE.to_owned(), "1".to_owned()));
        // It may be known by variables that do not go along. Elsewhere it has another one, which is found there.
        if self.where_it_is.files && self.engine.address.is_socket() {
            kept.push((ENGINE.to_owned(), self.engine.address.host.clone()));
        }
        kept
    }

    fn input(&self) -> Input {
        match self.command {
            Commands::Start(args) => match &args.input {
                Some(input) if input.is_stdin() || !self.where_it_is.files => {
                    Input::Bytes(input.text.clone().into_bytes())
                }
                // It may ask whether nodes are to go.
                Some(_) if !args.yes => Input::Ours,
                _ => Input::Nothing,
            },
            Commands::NodeImage(args) if args.reads() => Input::Ours,
            Commands::Ssh(_) | Commands::Image(_) | Commands::Kubectl(_) => Input::Ours,
            _ => Input::Nothing,
        }
    }
}
