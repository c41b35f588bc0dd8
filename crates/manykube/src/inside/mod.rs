//! Commands of a user who is not root, but may use a Docker engine: they are run by the engine.
//!
//! All that touches machines needs root on the host of the nodes. Who may use the engine has that by way of it
//! (`drivers::docker::inside`), so the same command line is run there, and this process only passes on what goes in
//! and comes out. What needs no machines stays here.

mod needs;
mod variables;

use anyhow::{Context as _, Result};
use drivers::docker::inside::{Engine, Errand, Input, NOT_RUN};
use model::{DriverKind, Fault, Reason};

use crate::args::Commands;
use crate::commands;
use crate::ctx::Ctx;
use crate::state::{owner, profile};
use crate::{host, kubeconfig};

/// Runs the command by the engine if that is where it belongs; `None` when it is to be run here.
pub fn instead(ctx: &Ctx, command: &Commands, argv: Vec<String>) -> Result<Option<u8>> {
    if host::is_root() || !needs::machines(command) {
        return Ok(None);
    }
    // Not by `ctx.run`: signals are the command's.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("start the runtime")?;
    let done = runtime.block_on(async {
        match is_dockers(ctx, command).await? {
            true => run(ctx, command, argv).await.map(Some),
            false => Ok(None),
        }
    });
    runtime.shutdown_background();
    done
}

/// Are the machines that the command is about containers?
async fn is_dockers(ctx: &Ctx, command: &Commands) -> Result<bool> {
    let engine_answers = async || Engine::find().await.is_ok();
    let of = |name: &str| profile::load(&ctx.home, name).ok().flatten().map(|file| file.cluster.driver);
    Ok(match (of(&ctx.profile), command) {
        _ if needs::all_profiles(command) => has_dockers(ctx)? && engine_answers().await,
        (Some(driver), Commands::Start(args)) => {
            // Another driver than the profile's is refused before anything else.
            commands::start::driver(ctx, args).await? == driver && driver == DriverKind::Docker
        }
        (None, Commands::Start(args)) => commands::start::driver(ctx, args).await? == DriverKind::Docker,
        (Some(driver), _) => driver == DriverKind::Docker,
        // Machines of a lost profile, and images, may be anybody's.
        (None, Commands::Delete(_)) => has_dockers(ctx)? && engine_answers().await,
        (None, Commands::NodeImage(_)) => engine_answers().await,
        (None, _) => false,
    })
}

/// Has this home anything of the engine's? A machine of a lost profile is root's, and says no more than its name.
fn has_dockers(ctx: &Ctx) -> Result<bool> {
    let profiles = profile::list(&ctx.home)?.into_iter();
    let docker = |file: Result<model::config_file::ConfigFile, _>| {
        file.is_ok_and(|f: model::config_file::ConfigFile| f.cluster.driver == DriverKind::Docker)
    };
    let machines = || std::fs::read_dir(ctx.home.machines()).is_ok_and(|mut all| all.next().is_some());
    Ok(profiles.map(|(_, file)| file).any(docker) || machines())
}

async fn run(ctx: &Ctx, command: &Commands, argv: Vec<String>) -> Result<u8> {
    owner::is_own(&ctx.home)?;
    let engine = Engine::find().await?;
    // Made now: what the engine makes is root's.
    if let Some(dir) = kubeconfig::path(&host::env).parent().filter(|d| !d.as_os_str().is_empty()) {
        fs_err::create_dir_all(dir)?;
    }
    let errand = Errand {
        argv,
        env: variables::kept(std::env::vars()),
        dir: std::env::current_dir().context("find the current directory")?,
        home: ctx.home.root().to_owned(),
        input: input(command),
    };
    match engine.run(&errand).await? {
        NOT_RUN => Err(Fault::new(
            Reason::DriverNotHealthy,
            "The Docker engine did not run the command: what it says stands above",
        )
        .advice("Use an engine of this host, or run the same command with sudo")
        .into()),
        code => Ok(code),
    }
}

fn input(command: &Commands) -> Input {
    match command {
        Commands::Start(args) => match &args.input {
            Some(input) if input.is_stdin() => Input::Bytes(input.text.clone().into_bytes()),
            // It may ask whether nodes are to go.
            Some(_) if !args.yes => Input::Ours,
            _ => Input::Nothing,
        },
        Commands::Ssh(_) | Commands::Image(_) | Commands::Kubectl(_) => Input::Ours,
        _ => Input::Nothing,
    }
}
