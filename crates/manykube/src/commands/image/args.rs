//! The command lines of `image`.

use clap::ArgAction;

use crate::args::values::go_bool;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Load images from a file, standard input (-), the Docker engine or a registry
    Load(LoadArgs),
    /// Build an image on a node; all nodes get it
    Build(BuildArgs),
    /// List the images of the nodes
    #[command(name = "ls", visible_alias = "list")]
    List(ListArgs),
    /// Remove images
    #[command(visible_aliases = ["remove", "unload"])]
    Rm(NamedArgs),
    /// Give an image a second name
    Tag(TagArgs),
    /// Save an image to a file, or to standard output (-)
    Save(SaveArgs),
    /// Pull images from a registry
    Pull(NamedArgs),
    /// Push images to a registry
    Push(NamedArgs),
}

#[derive(Debug, Clone, Default, clap::Args)]
pub struct LoadArgs {
    /// Names, archives (Docker's or the OCI's), OCI layouts, or - for standard input
    #[arg(required = true, value_name = "IMAGE | FILE | -")]
    pub sources: Vec<String>,
    /// From the Docker engine of this machine
    #[arg(long)]
    pub daemon: bool,
    /// From a registry
    #[arg(long)]
    pub remote: bool,
    /// Ask the registry, also when the Docker engine has the image
    #[arg(long)]
    pub pull: bool,
    /// Load it, also when the nodes have an image of that name
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = "true", default_missing_value = "true", value_parser = go_bool
    )]
    pub overwrite: bool,
    /// Only on these nodes
    #[arg(short, long, value_delimiter = ',')]
    pub node: Vec<String>,
}

#[derive(Debug, Clone, Default, clap::Args)]
pub struct BuildArgs {
    /// The directory with what goes in, a Git repository, an archive, or - for one on standard input
    #[arg(value_name = "PATH | URL | FILE | -")]
    pub path: String,
    /// The name of the image
    #[arg(short, long)]
    pub tag: Option<String>,
    /// The Dockerfile, relative to PATH
    #[arg(short, long)]
    pub file: Option<String>,
    /// A variable of the build: NAME=VALUE
    #[arg(long, value_name = "NAME=VALUE")]
    pub build_arg: Vec<String>,
    /// The same, as minikube calls it
    #[arg(long, value_name = "NAME=VALUE")]
    pub build_env: Vec<String>,
    /// An option of `docker build`, without its dashes: no-cache, target=NAME, build-arg=NAME=VALUE
    #[arg(long, value_name = "OPTION")]
    pub build_opt: Vec<String>,
    /// Push it to its registry, too
    #[arg(long)]
    pub push: bool,
    /// Only on these nodes, the first of which builds
    #[arg(short, long, value_delimiter = ',')]
    pub node: Vec<String>,
    /// On all nodes, as without it
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ListArgs {
    /// short, table, json or yaml
    #[arg(long, default_value = "short")]
    pub format: String,
    /// Only of these nodes
    #[arg(short, long, value_delimiter = ',')]
    pub node: Vec<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct NamedArgs {
    #[arg(required = true, value_name = "IMAGE")]
    pub images: Vec<String>,
    /// Only on these nodes
    #[arg(short, long, value_delimiter = ',')]
    pub node: Vec<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct TagArgs {
    pub source: String,
    pub target: String,
}

#[derive(Debug, Clone, Default, clap::Args)]
pub struct SaveArgs {
    pub image: String,
    /// The file, or - for standard output; the cache if left out
    #[arg(value_name = "FILE | -")]
    pub file: Option<String>,
    /// Into the Docker engine of this machine
    #[arg(long)]
    pub daemon: bool,
    /// Into its registry
    #[arg(long)]
    pub remote: bool,
}
