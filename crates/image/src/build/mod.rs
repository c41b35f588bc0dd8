//! Builds a node image from sources.
//!
//! The components are independent of each other and cached by what goes into them; the image is put
//! together from them in a temporary directory, and renamed when its manifest is written.

mod assembly;
mod command;
mod containerd;
mod debian;
mod events;
mod golang;
mod gomod;
mod images;
mod layer;
mod libraries;
mod lock;
mod mirror;
mod oci;
mod pause;
mod recipe;
mod rootfs;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::future::try_join_all;
use tokio::sync::Semaphore;

use crate::pins::{self, Pins};
use crate::store::{NodeImage, Store, sweep};
use crate::tools::missing_tools;
use command::{Log, Shell};
use events::Step;
use recipe::{Make, Recipe};

pub(crate) use oci::architecture;

/// How to build.
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// Where the output of all commands goes; `<cache>/build/build.log` unless named.
    pub log: Option<PathBuf>,
    /// How many things a compiler does at once; the number of cores unless named.
    pub jobs: Option<usize>,
    /// Debian's packages as they are now, also where the cache has older ones.
    pub refresh: bool,
}

/// What happens during a build, for a progress display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildEvent {
    /// Another build holds the lock of this cache.
    Waiting,
    Started {
        component: String,
    },
    /// Components overlap: the time since it started may have some waiting for the compiler's turn in it.
    Finished {
        component: String,
        elapsed: Duration,
        cached: bool,
    },
    /// Also when the build was cancelled.
    Failed {
        component: String,
        elapsed: Duration,
    },
}

/// A command of a build failed. The message has the end of its output.
#[derive(Debug, thiserror::Error)]
#[error("building {component}: `{command}` {what}; the full output is in {}\n{tail}", log.display())]
pub struct BuildFailed {
    pub component: String,
    pub command: String,
    /// e.g. `exited with status 1`.
    pub what: String,
    pub tail: String,
    pub log: PathBuf,
}

type Events<'a> = &'a (dyn Fn(BuildEvent) + Send + Sync);

/// What all components of one build share.
struct Build<'a> {
    store: &'a Store,
    pins: &'static Pins,
    log: Log,
    events: Events<'a>,
    toolchain: String,
    jobs: usize,
    /// One compiler at a time: each uses all cores.
    compile: Semaphore,
}

/// Builds the image of a known Kubernetes version (`resolve_version`), or finds it already built from the
/// same recipes. Needs root. Dropping the future ends everything it started.
pub async fn build(
    store: &Store,
    version: &str,
    options: BuildOptions,
    progress: Events<'_>,
) -> Result<NodeImage> {
    let pins = pins::pins();
    let kubernetes = pins.kubernetes(version)?;
    let missing = missing_tools();
    if !missing.is_empty() {
        let packages: Vec<_> = missing.iter().map(|tool| tool.package).collect();
        bail!("building a node image needs the Debian packages {}", packages.join(" "));
    }
    store.make_build_dir()?;
    let log = Log::open(&options.log.unwrap_or_else(|| store.build_dir().join("build.log")))?;
    let toolchain = golang::toolchain(&Shell::new("go", &log)).await?;
    let refreshed =
        options.refresh.then(|| jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let recipes = recipe::recipes(pins, kubernetes, refreshed);
    let name = recipe::image_name(version, &recipes, &toolchain, &pins.busybox.tag);
    if let Some(there) = store.open(&name)? {
        Step::begin(progress, "image").finish(true);
        return Ok(there);
    }
    if !rustix::process::geteuid().is_root() {
        bail!("building a node image needs root: its files belong to root, and container layers are mounted");
    }

    let _lock = alone(store, progress).await?;
    if let Some(there) = store.open(&name)? {
        // The build that held the lock made it.
        return Ok(there);
    }
    let build = Build::new(store, log, toolchain, options.jobs, progress)?;
    let components: BTreeMap<_, _> =
        try_join_all(recipes.iter().map(|recipe| build.component(recipe))).await?.into_iter().collect();
    let step = Step::begin(progress, "image");
    let image = assembly::assemble(&build, kubernetes, &recipes, components, &name).await?;
    step.finish(false);
    Ok(image)
}

/// One build at a time in a cache.
async fn alone(store: &Store, progress: Events<'_>) -> Result<lock::Lock> {
    lock::acquire(&store.build_dir().join("lock"), || progress(BuildEvent::Waiting)).await
}

/// kubelet and kube-proxy of a known version alone, for nodes that run older ones than their cluster:
/// minutes less than an image.
pub async fn build_node_programs(
    store: &Store,
    version: &str,
    options: BuildOptions,
    progress: Events<'_>,
) -> Result<()> {
    let kubernetes = pins::pins().kubernetes(version)?;
    store.make_build_dir()?;
    let log = Log::open(&options.log.unwrap_or_else(|| store.build_dir().join("build.log")))?;
    let toolchain = golang::toolchain(&Shell::new("go", &log)).await?;
    let _lock = alone(store, progress).await?;
    let build = Build::new(store, log, toolchain, options.jobs, progress)?;
    let (_, programs) = build.component(&recipe::node_programs(kubernetes)).await?;
    store.keep_programs(version, &programs, &recipe::OF_A_NODE)
}

impl<'a> Build<'a> {
    fn new(
        store: &'a Store,
        log: Log,
        toolchain: String,
        jobs: Option<usize>,
        events: Events<'a>,
    ) -> Result<Build<'a>> {
        log.clear()?;
        // Half a component of an interrupted build is of no use; what it compiled is in Go's cache.
        sweep(&store.build_dir(), &["."])?;
        let jobs = jobs.or(std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
        let pins = pins::pins();
        Ok(Build { store, pins, log, events, toolchain, jobs, compile: Semaphore::new(1) })
    }

    /// The directory with a component's programs, made unless it is in the cache.
    async fn component(&self, recipe: &Recipe) -> Result<(&'static str, PathBuf)> {
        let directory = recipe.directory(&self.toolchain);
        let finished = self.store.build_dir().join(&directory);
        let step = Step::begin(self.events, recipe.name);
        let cached = finished.exists();
        if !cached {
            let work = self.store.build_dir().join(format!(".{directory}"));
            fs_err::create_dir_all(&work)?;
            self.make(recipe, &work).await?;
            fs_err::rename(&work, &finished)?;
        }
        step.finish(cached);
        Ok((recipe.name, finished.join("out")))
    }

    async fn make(&self, recipe: &Recipe, work: &std::path::Path) -> Result<()> {
        let shell = Shell::new(recipe.name, &self.log);
        match &recipe.make {
            Make::Debian { packages, .. } => debian::build(&shell, &recipe.version, packages, work).await,
            Make::Pause { kubernetes } => {
                pause::build(&shell, self.pins, &recipe.version, kubernetes, work).await
            }
            Make::Go(go) => {
                golang::build(&shell, self.pins, (recipe.name, go), work, &self.compile, self.jobs).await
            }
        }
    }
}
