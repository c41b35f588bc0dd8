//! `node-image`: the images that nodes are made from.

mod registry;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use image::{BuildEvent, BuildOptions, Store};
use indicatif::{ProgressBar, ProgressStyle};
use model::{Fault, Reason};

use super::print;
use crate::ctx::Ctx;
use crate::report::{Event, Style, elapsed};
use crate::{host, table};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

impl Args {
    /// Is an image to come from standard input?
    pub fn reads(&self) -> bool {
        matches!(&self.command, Command::Import { file } if file == Path::new("-"))
    }
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Build an image from sources
    Build {
        /// The Kubernetes version in it
        #[arg(long, value_name = "VERSION")]
        kubernetes_version: Option<String>,
        /// Only kubelet and kube-proxy, for nodes of an older version than their cluster
        #[arg(long)]
        kubelet: bool,
        /// With Debian's packages as they are now, not as they were when the cache got them
        #[arg(long, conflicts_with = "kubelet")]
        refresh: bool,
        /// How many things a compiler does at once
        #[arg(long, value_name = "N")]
        jobs: Option<usize>,
    },
    /// List the images
    #[command(visible_alias = "ls")]
    List,
    /// Remove images
    Rm {
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Write an image to a file
    Export {
        file: PathBuf,
        /// The image; the one of the default Kubernetes version if left out
        #[arg(long)]
        name: Option<String>,
    },
    /// Take an image from a file, or from standard input (-)
    Import { file: PathBuf },
    /// Take an image from a registry
    Pull {
        /// HOST/NAME:TAG, or with a digest
        image: String,
        /// Without encryption, which a registry of this machine never needs
        #[arg(long)]
        insecure: bool,
    },
    /// Give an image to a registry, from which others and engines can take it
    Push {
        /// HOST/NAME:TAG
        image: String,
        /// The image; the one of the default Kubernetes version if left out
        #[arg(long)]
        name: Option<String>,
        /// Without encryption, which a registry of this machine never needs
        #[arg(long)]
        insecure: bool,
    },
    /// Check every file of the images
    Verify { names: Vec<String> },
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let store = Store::new(ctx.home.cache());
    match &args.command {
        Command::Build { kubernetes_version, kubelet, refresh, jobs } => {
            let options = BuildOptions { jobs: *jobs, refresh: *refresh, ..BuildOptions::default() };
            build(ctx, &store, kubernetes_version.as_deref(), *kubelet, options)?
        }
        Command::List => {
            let rows = image::rows(&store)?;
            let cells = |r: image::Row| vec![r.name, r.kubernetes, image::human_size(r.size), r.built_at];
            let rows: Vec<_> = rows.into_iter().map(cells).collect();
            print(&table::render(&["Name", "Kubernetes", "Size", "Built"], &rows));
        }
        Command::Rm { names } => {
            for name in names {
                refuse_if_used(ctx, &store, name)?;
                store.remove(name)?;
                ctx.emit(Event::info(Style::Deleted, format!("Removed the node image {name}")));
            }
        }
        Command::Export { file, name } => {
            let name = name.clone().map_or_else(|| found(&store), Ok)?;
            let bar = bar();
            store.export(&name, file, &shower(&bar))?;
            bar.finish_and_clear();
            ctx.emit(Event::info(Style::Sparkle, format!("Wrote {name} to {}", file.display())));
        }
        Command::Import { file } => {
            let file = if file.as_os_str() == "-" { Path::new("/dev/stdin") } else { file };
            if !file.exists() {
                let message = format!("There is no file {}", file.display());
                return Err(Fault::new(Reason::PathMissing, message).into());
            }
            let bar = bar();
            let image = store.import(file, &shower(&bar))?;
            bar.finish_and_clear();
            ctx.emit(Event::info(Style::Sparkle, format!("Imported the node image {}", image.name)));
        }
        Command::Pull { image, insecure } => registry::pull(ctx, &store, image, *insecure)?,
        Command::Push { image, name, insecure } => {
            let name = name.clone().map_or_else(|| found(&store), Ok)?;
            registry::push(ctx, &store, &name, image, *insecure)?;
        }
        Command::Verify { names } => verify(ctx, &store, names)?,
    }
    Ok(0)
}

fn build(
    ctx: &Ctx,
    store: &Store,
    version: Option<&str>,
    kubelet: bool,
    options: BuildOptions,
) -> Result<()> {
    let asked = version.unwrap_or(image::default_version());
    let version =
        image::resolve_version(asked).map_err(|e| Fault::new(Reason::VersionUnavailable, e.to_string()))?;
    if !host::is_root() {
        return Err(Fault::new(Reason::DriverNeedsRoot, "Building a node image requires root privileges.")
            .advice(format!(
                "Run it with sudo -E, or take one from a file: {} node-image import FILE",
                ctx.tool
            ))
            .into());
    }
    if kubelet && store.node_programs(&version)?.is_some() {
        ctx.emit(Event::info(Style::Ready, format!("The kubelet {version} is ready")));
        return Ok(());
    }
    let what = if kubelet { "kubelet" } else { "node image" };
    let phase = format!("Building the {what} of Kubernetes {version}");
    ctx.emit(Event::PhaseStarted { phase: phase.clone(), step: None });
    let show = |event| {
        pass(&event);
        if let Some(event) = progress(&phase, event) {
            ctx.emit(event);
        }
    };
    let name = if kubelet {
        ctx.run(image::build_node_programs(store, &version, options, &show))?;
        version
    } else {
        ctx.run(image::build(store, &version, options, &show))?.name
    };
    ctx.emit(Event::info(Style::Ready, format!("The {what} {name} is ready")));
    Ok(())
}

/// A build may be made to die at any of its stages.
fn pass(event: &BuildEvent) {
    match event {
        BuildEvent::Started { component } => engine::crash::place(&format!("image/{component}"), "before"),
        BuildEvent::Finished { component, .. } => {
            engine::crash::place(&format!("image/{component}"), "after")
        }
        _ => {}
    }
}

fn progress(phase: &str, event: BuildEvent) -> Option<Event> {
    let (phase, node) = (phase.to_owned(), String::new());
    Some(match event {
        BuildEvent::Waiting => Event::info(Style::Waiting, "Waiting for another build ..."),
        BuildEvent::Started { component } => Event::StepStarted { phase, step: component, node },
        BuildEvent::Finished { component, elapsed, .. } => {
            Event::StepFinished { phase, step: component, node, elapsed }
        }
        BuildEvent::Failed { component, elapsed } => {
            Event::StepFailed { phase, step: component, node, elapsed, message: String::new() }
        }
    })
}

/// The image of the default version.
fn found(store: &Store) -> Result<String> {
    let version = image::default_version();
    let image = store.find(version)?.ok_or_else(|| {
        Fault::new(Reason::PathMissing, format!("There is no node image of Kubernetes {version}"))
            .advice("Name one with --name; see node-image list")
    })?;
    Ok(image.name)
}

/// The root of every node, running or not, lies on its image.
fn refuse_if_used(ctx: &Ctx, store: &Store, name: &str) -> Result<()> {
    // An image that cannot be read any more is nobody's root.
    let Ok(image) = store.get(name) else { return Ok(()) };
    match drivers::machine::on_image(&ctx.home, &image.rootfs()) {
        Some(node) => {
            let message = format!("The node image {name} is what {node} is made of");
            Err(Fault::new(Reason::ImageUnusable, message).advice("Delete the cluster first").into())
        }
        None => Ok(()),
    }
}

fn verify(ctx: &Ctx, store: &Store, names: &[String]) -> Result<()> {
    let images = match names {
        [] => store.list()?,
        names => names.iter().map(|n| store.get(n)).collect::<Result<_>>()?,
    };
    for image in images {
        let begin = std::time::Instant::now();
        image.verify().map_err(|damaged| {
            Fault::new(Reason::ImageUnusable, damaged.to_string()).advice(format!(
                "Remove it with '{0} node-image rm {1}' and build or import it again",
                ctx.tool, image.name
            ))
        })?;
        let time = elapsed::human(begin.elapsed());
        ctx.emit(Event::info(Style::Sparkle, format!("{} is undamaged ({time})", image.name)));
    }
    Ok(())
}

fn bar() -> ProgressBar {
    if !std::io::stdout().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    // The template is a constant: it parses, or the plain bar is shown.
    if let Ok(style) =
        ProgressStyle::with_template("    {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} [{elapsed}]")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Shares the bar: cloning one clones a handle.
fn shower(bar: &ProgressBar) -> impl Fn(u64, u64) + Send + Sync + 'static {
    let bar = bar.clone();
    move |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    }
}
