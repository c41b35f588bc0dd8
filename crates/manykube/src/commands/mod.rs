//! One file per command. Each has its arguments and a `run` that returns the exit code.

pub mod addons;
pub mod cache;
mod cluster;
pub mod completion;
mod components;
pub mod config;
pub mod cp;
pub mod dashboard;
pub mod delete;
pub mod docker_env;
pub mod driver;
pub mod fault;
pub mod generate_docs;
pub mod image;
pub mod ip;
pub mod kubectl;
pub mod license;
pub mod logs;
pub mod mount;
pub mod node;
pub mod node_image;
mod options;
pub mod pause;
pub mod podman_env;
pub mod profile;
mod profile_list;
mod schedule;
pub mod service;
pub mod ssh;
pub mod ssh_host;
pub mod ssh_key;
pub mod start;
pub mod status;
pub mod stop;
pub mod tunnel;
mod update_check;
pub mod update_context;
pub mod version;
pub mod worker;

use std::io::Write as _;

use anyhow::Result;
use model::Reason;

use crate::args::Commands;
use crate::ctx::Ctx;

pub fn run(ctx: &Ctx, command: &Commands) -> Result<u8> {
    match command {
        Commands::Start(args) => start::run(ctx, args),
        Commands::Stop(args) => stop::run(ctx, args),
        Commands::Delete(args) => delete::run(ctx, args),
        Commands::Pause(args) => pause::pause(ctx, args),
        Commands::Unpause(args) => pause::unpause(ctx, args),
        Commands::Status(args) => status::run(ctx, args),
        Commands::Profile(args) => profile::run(ctx, args),
        Commands::Node(args) => node::run(ctx, args),
        Commands::Worker(args) => worker::run(ctx, args),
        Commands::DockerEnv(args) => docker_env::run(ctx, args),
        Commands::Image(args) => image::run(ctx, args),
        Commands::Mount(args) => mount::run(ctx, args),
        Commands::Cache(args) => cache::run(ctx, args),
        Commands::Ip(args) => ip::run(ctx, args),
        Commands::Ssh(args) => ssh::run(ctx, args),
        Commands::SshHost(args) => ssh_host::run(ctx, args),
        Commands::SshKey(args) => ssh_key::run(ctx, args),
        Commands::Cp(args) => cp::run(ctx, args),
        Commands::Kubectl(args) => kubectl::run(ctx, args),
        Commands::Service(args) => service::run(ctx, args),
        Commands::Tunnel(args) => tunnel::run(ctx, args),
        Commands::Addons(args) => addons::run(ctx, args),
        Commands::Dashboard(args) => dashboard::run(ctx, args),
        Commands::PodmanEnv(args) => podman_env::run(ctx, args),
        Commands::Logs(args) => logs::run(ctx, args),
        Commands::UpdateContext(args) => update_context::run(ctx, args),
        Commands::Fault(args) => fault::run(ctx, args),
        Commands::Driver(args) => driver::run(ctx, args),
        Commands::NodeImage(args) => node_image::run(ctx, args),
        Commands::Config(args) => config::run(ctx, args),
        Commands::Version(args) => version::run(ctx, args),
        Commands::Completion(args) => completion::run(ctx, args),
        Commands::Options => options::run(ctx),
        Commands::UpdateCheck => update_check::run(),
        Commands::License(args) => license::run(ctx, args),
        Commands::GenerateDocs(args) => generate_docs::run(ctx, args),
    }
}

/// Points kubectl to a cluster that a start elsewhere has made.
pub fn point_kubectl(ctx: &Ctx, cluster: &model::Cluster) -> Result<(), model::Fault> {
    cluster::write_kubeconfig(ctx, cluster, !cluster.keep_context).map(drop)
}

/// After the address of its API has changed. A cluster that kubectl was not pointed to stays unknown to it.
pub fn move_kubectl(ctx: &Ctx, cluster: &model::Cluster) -> Result<()> {
    let doc = crate::kubeconfig::read(&cluster::kubeconfig_path())?;
    if cluster::is_in_kubeconfig(&ctx.home, &doc, &cluster.name) {
        cluster::write_kubeconfig(ctx, cluster, false)?;
    }
    Ok(())
}

/// The opposite of `point_kubectl`, for one that is gone.
pub fn forget_kubectl(home: &model::Home, profile: &str) -> Result<(), model::Fault> {
    cluster::remove_from_kubeconfig(home, profile).map(drop)
}

/// Before a start makes anything: a name that is another's in the kubeconfig is refused.
pub fn check_kubectl(ctx: &Ctx) -> Result<(), model::Fault> {
    cluster::check_kubeconfig(&ctx.home, &ctx.profile)
}

/// The reason of an error that names none itself.
pub fn default_reason(command: &Commands) -> Reason {
    match command {
        Commands::Start(_) => Reason::GuestStart,
        Commands::Stop(_) => Reason::StopTimeout,
        Commands::Delete(_) => Reason::GuestDeletion,
        Commands::Pause(_) => Reason::GuestPause,
        Commands::Unpause(_) => Reason::GuestUnpause,
        Commands::Status(_) => Reason::GuestStatus,
        Commands::Node(args) => node::default_reason(&args.command),
        Commands::Worker(args) => worker::default_reason(&args.command),
        Commands::Fault(_) => Reason::NodeFault,
        Commands::Cache(_) => Reason::ImageLoad,
        Commands::Image(args) => image::default_reason(&args.command),
        Commands::NodeImage(_) => Reason::ImageUnusable,
        Commands::UpdateContext(_) => Reason::KubeconfigUpdate,
        Commands::Service(_) => Reason::ServiceList,
        Commands::Addons(args) => addons::default_reason(&args.command),
        Commands::Tunnel(_) => Reason::TunnelStart,
        Commands::Dashboard(_) => Reason::KubectlProxy,
        _ => Reason::Internal,
    }
}

/// Output that was asked for, as opposed to messages. A reader that went away is no error.
fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
