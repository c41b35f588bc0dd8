//! The command line: minikube's, read as minikube reads it.

mod complete;
mod examples;
pub mod globals;
pub mod grammar;
mod groups;
pub mod inert;
pub mod layers;
pub mod node_flags;
pub mod suggest;
pub mod values;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use serde_json::{Map, Value};

use crate::commands;
use crate::report::Output;
pub use globals::Globals;

/// The cluster when none is named: as we are called, so that a real minikube's is not taken for ours. The
/// environment may say another one.
pub fn default_profile(tool: &str, env: &dyn Fn(&str) -> Option<String>) -> String {
    let set = ["MANYKUBE_PROFILE", "MINIKUBE_PROFILE"].into_iter().find_map(env);
    set.filter(|name| !name.is_empty()).unwrap_or_else(|| tool.to_owned())
}

/// Local Kubernetes clusters of many nodes
#[derive(Parser)]
#[command(name = "manykube", about, disable_version_flag = true)]
pub struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub command: Option<Commands>,
}

#[derive(Subcommand)]
pub enum Commands {
    /// Start a cluster: make it, or bring it to what is asked for
    Start(Box<commands::start::Args>),
    /// Stop a cluster; its state stays
    Stop(commands::stop::Args),
    /// Delete a cluster and all that belongs to it
    Delete(commands::delete::Args),
    /// Freeze Kubernetes; what runs in other namespaces goes on
    Pause(commands::pause::Args),
    /// Let a paused cluster go on
    #[command(visible_alias = "resume")]
    Unpause(commands::pause::Args),
    /// Show the state of a cluster
    Status(commands::status::Args),
    /// Show or change the active profile
    Profile(commands::profile::Args),
    /// Nodes of a cluster
    Node(Box<commands::node::Args>),
    /// Workers of a cluster: what `node` does, for nodes that are no control planes
    Worker(Box<commands::worker::Args>),
    /// Print how a docker client reaches the Docker engine of a node
    DockerEnv(commands::docker_env::Args),
    /// Container images on the nodes
    Image(commands::image::Args),
    /// Images that are kept on the host and loaded into the nodes
    Cache(commands::cache::Args),
    /// Show a directory of the host in every node, as long as the command runs
    Mount(commands::mount::Args),
    /// Print the address of a node
    Ip(commands::ip::Args),
    /// Open a shell in a node, or run a command there
    Ssh(commands::ssh::Args),
    /// Print the path of the private key that a node lets in
    SshKey(commands::ssh_key::Args),
    /// Print what a node is known by to SSH
    SshHost(commands::ssh_host::Args),
    /// Copy a file to, from or between nodes
    Cp(commands::cp::Args),
    /// Run the kubectl that fits the cluster
    Kubectl(commands::kubectl::Args),
    /// Show where the host reaches services
    Service(commands::service::Args),
    /// Report the addresses of services of type LoadBalancer
    Tunnel(commands::tunnel::Args),
    /// Parts of a cluster that can be switched on and off
    Addons(commands::addons::Args),
    /// Print where the Kubernetes dashboard is, and keep it there until the command is ended
    Dashboard(commands::dashboard::Args),
    /// Print how a podman client reaches the cluster
    PodmanEnv(commands::podman_env::Args),
    /// Show the logs of a cluster
    Logs(commands::logs::Args),
    /// Make kubectl point to the cluster
    UpdateContext(commands::update_context::Args),
    /// Break nodes on purpose, and mend them
    Fault(commands::fault::Args),
    /// What nodes can be made of on this host
    Driver(commands::driver::Args),
    /// Images that nodes are made from
    NodeImage(commands::node_image::Args),
    /// Settings that outlive a command
    Config(commands::config::Args),
    /// Print the version
    Version(commands::version::Args),
    /// Print a script that completes command lines
    Completion(commands::completion::Args),
    /// List the flags that every command takes
    Options,
    /// Print this version and the newest one
    UpdateCheck,
    /// Print the licence
    License(commands::license::Args),
    /// Write docs/cli.md and man pages
    #[command(hide = true)]
    GenerateDocs(commands::generate_docs::Args),
}

impl Commands {
    /// As it is typed.
    pub fn name(&self) -> &'static str {
        match self {
            Commands::Start(_) => "start",
            Commands::Stop(_) => "stop",
            Commands::Delete(_) => "delete",
            Commands::Pause(_) => "pause",
            Commands::Unpause(_) => "unpause",
            Commands::Status(_) => "status",
            Commands::Profile(_) => "profile",
            Commands::Node(_) => "node",
            Commands::Worker(_) => "worker",
            Commands::DockerEnv(_) => "docker-env",
            Commands::Image(_) => "image",
            Commands::Cache(_) => "cache",
            Commands::Mount(_) => "mount",
            Commands::Ip(_) => "ip",
            Commands::Ssh(_) => "ssh",
            Commands::SshKey(_) => "ssh-key",
            Commands::SshHost(_) => "ssh-host",
            Commands::Cp(_) => "cp",
            Commands::Kubectl(_) => "kubectl",
            Commands::Service(_) => "service",
            Commands::Tunnel(_) => "tunnel",
            Commands::Dashboard(_) => "dashboard",
            Commands::PodmanEnv(_) => "podman-env",
            Commands::Logs(_) => "logs",
            Commands::UpdateContext(_) => "update-context",
            Commands::Fault(_) => "fault",
            Commands::Driver(_) => "driver",
            Commands::NodeImage(_) => "node-image",
            Commands::Config(_) => "config",
            Commands::Version(_) => "version",
            Commands::Completion(_) => "completion",
            Commands::Options => "options",
            Commands::UpdateCheck => "update-check",
            Commands::License(_) => "license",
            Commands::Addons(_) => "addons",
            Commands::GenerateDocs(_) => "generate-docs",
        }
    }

    /// Needs no home, no profile and no record.
    pub fn only_prints(&self) -> bool {
        match self {
            Commands::Version(args) => !args.components,
            Commands::Completion(_) | Commands::Options | Commands::UpdateCheck => true,
            Commands::License(_) | Commands::GenerateDocs(_) => true,
            _ => false,
        }
    }

    /// How progress is to be reported.
    pub fn output(&self) -> Output {
        match self {
            Commands::Start(a) => a.output,
            Commands::Stop(a) => a.output,
            Commands::Delete(a) => a.output,
            Commands::Pause(a) | Commands::Unpause(a) => a.output,
            _ => Output::Text,
        }
    }
}

/// How parsing ended.
pub enum Parsed {
    Cli(Box<Cli>),
    /// Help was asked for: this is it.
    Help(String),
    /// One line for standard error.
    Wrong(String),
}

/// clap's definition with pflag's rules.
pub fn definition(tool: &'static str) -> clap::Command {
    examples::add(groups::add(grammar::pflag(Cli::command())), tool).name(tool).bin_name(tool)
}

/// The same for a shell that asks for words to complete.
pub fn completed(tool: &'static str) -> clap::Command {
    complete::add(definition(tool))
}

/// Reads a command line; what it does not say is looked up in the environment and in `config`.
pub fn parse(
    argv: Vec<OsString>,
    tool: &'static str,
    env: &dyn Fn(&str) -> Option<String>,
    config: &Map<String, Value>,
) -> Parsed {
    let root = definition(tool);
    let first = root.clone().try_get_matches_from(&argv);
    let cli = first.and_then(|matches| match layers::extra_args(&root, &matches, env, config) {
        extra if extra.is_empty() => Cli::from_arg_matches(&matches),
        extra => root
            .clone()
            .try_get_matches_from(layers::with_extra(argv, extra))
            .and_then(|m| Cli::from_arg_matches(&m)),
    });
    match cli {
        Ok(cli) => Parsed::Cli(Box::new(cli)),
        Err(e) if !e.use_stderr() => Parsed::Help(e.render().to_string()),
        Err(e) => Parsed::Wrong(grammar::error_line(&e, tool)),
    }
}
