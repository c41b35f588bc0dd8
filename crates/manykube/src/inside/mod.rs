//! Commands that the engine runs: those of a user who is not root, and all where the engine is elsewhere.
//!
//! All that touches machines needs root on the host of the nodes. Who may use the engine has that by way of it
//! (`drivers::docker::inside`), so the same command line is run there, and this process only passes on what goes in
//! and comes out. What needs no machines stays here. Where the engine does not see our files its home is a volume
//! (`there`), and where we do not see its network there is a door on loopback (`door`).

pub mod door;
mod files;
mod mirror;
mod needs;
mod place;
mod service;
mod there;
mod variables;
mod ways;

use anyhow::{Context as _, Result};
use drivers::docker::inside::{Engine, Errand, Input, Luggage, NOT_RUN, Outcome, Place, Whereabouts};
use drivers::docker::{Address, ENGINE};
use model::{DriverKind, Fault, Reason};

use crate::args::{Commands, Globals};
use crate::commands;
use crate::ctx::Ctx;
use crate::report::{Event, Style};
use crate::state::{owner, profile};
use crate::{host, kubeconfig};

/// Set for a command that is run by the engine: it is where it belongs.
const INSIDE: &str = "MANYKUBE_INSIDE";
/// What we say to ourselves, and the user did not.
pub const VARIABLES: [&str; 3] = [INSIDE, ENGINE, crate::state::handout::VARIABLE];

/// Runs the command by the engine if that is where it belongs; `None` when it is to be run here.
pub fn instead(ctx: &Ctx, globals: &Globals, command: &Commands, argv: Vec<String>) -> Result<Option<u8>> {
    let behind = door::address(&ctx.home, &ctx.profile);
    let address = behind.clone().unwrap_or_else(Address::of_environment);
    let here = host::is_root() && address.is_socket();
    if here && behind.is_some() && host::env(INSIDE).is_none() && needs::machines(command) {
        // Root here would look for its machines at another engine, or in another network.
        let message =
            format!("The cluster \"{}\" is at an engine of the user whose home this is", ctx.profile);
        let advice = "Run the same command as that user, without sudo";
        return Err(Fault::new(Reason::DriverNotHealthy, message).advice(advice).into());
    }
    if here || host::env(INSIDE).is_some() || !needs::machines(command) {
        return Ok(None);
    }
    // Not by `ctx.run`: signals are the command's.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("start the runtime")?;
    let done = runtime.block_on(async {
        if !is_dockers(ctx, command, &address).await? {
            return Ok(None);
        }
        owner::is_own(&ctx.home)?;
        let engine = Engine::find(address).await?;
        if matches!(command, Commands::Start(_)) {
            // Before it is asked to run anything: what it lacks would show as something else.
            engine.suits().await?;
        }
        let where_it_is = place::of(ctx, &engine).await?;
        let errand = Call { ctx, globals, command, argv, engine, where_it_is };
        errand.run().await.map(Some)
    });
    runtime.shutdown_background();
    done
}

/// Are the machines that the command is about containers?
async fn is_dockers(ctx: &Ctx, command: &Commands, address: &Address) -> Result<bool> {
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
        (None, Commands::Delete(_)) => any && engine_answers().await,
        (None, Commands::NodeImage(_)) => address.is_socket() && engine_answers().await,
        (None, _) => false,
    })
}

/// Has this home anything of the engine's? A machine of a lost profile is root's, and says no more than its name.
fn has_dockers(ctx: &Ctx) -> Result<bool> {
    let profiles = profile::list(&ctx.home)?.into_iter();
    let mut kinds = profiles.filter_map(|(_, file)| Some(file.ok()?.cluster.driver));
    let machines = || std::fs::read_dir(ctx.home.machines()).is_ok_and(|mut all| all.next().is_some());
    Ok(kinds.any(|kind| kind == DriverKind::Docker) || machines())
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
        let reserved = !network
            && matches!(self.command, Commands::Start(_))
            && door::reserve(home, profile, &self.engine.address, &label)?;
        let outcome = match &volume {
            Some(there) => there.run(&self).await?,
            None => self.engine.run(self.errand()?).await?,
        };
        if reserved && matches!(profile::load(home, profile), Ok(None)) {
            // It made no cluster: a door would say of the next one where it is.
            door::forget(home, profile)?;
        }
        if outcome.code == NOT_RUN {
            return Err(Fault::new(
                Reason::DriverNotHealthy,
                "The Docker engine did not run the command: why stands above",
            )
            .advice("Use an engine of this host, or run the same command with sudo")
            .into());
        }
        if network { Ok(outcome.code) } else { self.afterwards(outcome).await }
    }

    /// What it takes to reach from here what the command has made there.
    async fn afterwards(&self, outcome: Outcome) -> Result<u8> {
        let (ctx, profile) = (self.ctx, &self.ctx.profile);
        match (self.command, profile::load(&ctx.home, profile)?) {
            (Commands::Delete(_), None) => door::forget(&ctx.home, profile)?,
            (Commands::Stop(_), _) | (_, None) => {}
            (_, Some(file)) => {
                let revived = door::keep(&ctx.home, profile).await?;
                if revived && matches!(self.command, Commands::Status(_)) {
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
