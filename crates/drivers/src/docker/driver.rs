//! The driver's verbs, on top of the other files of this folder.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::image::registry::{LayerProgress, Reference};
use ::image::{NodeImage, Store};
use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use base::Stream;
use bollard::Docker as Client;
use bollard::errors::Error;
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::{KillContainerOptions, StartContainerOptions, StopContainerOptionsBuilder};
use ipnet::Ipv4Net;
use model::{Cluster, DriverKind, Fault, Reason};

use super::container::{self, is_missing};
use super::init::{IMAGES, MACHINE, PROGRAMS};
use super::{Address, Docker, connect, engine, image, network, podman, pull, refused, size};
use crate::driver::{Driver, Machine, MachineSpec, MachineState, NoStream, Notice};
use crate::freeze::Freeze;
use crate::machine::{self, Paths};
use crate::native::cgroup::{Cgroup, Version};
use crate::native::launch::Launch;
use crate::native::{guard, host, lender};
use crate::process;

#[async_trait]
impl Driver for Docker {
    fn kind(&self) -> DriverKind {
        self.kind
    }

    async fn preflight(&self) -> Result<(), Fault> {
        let here = match self.kind {
            DriverKind::Podman => podman::is_roots().map(|()| true)?,
            _ => Address::of_environment().is_socket(),
        };
        engine::suits(self.client().await?, here).await
    }

    async fn network_up(&self, cluster: &Cluster) -> Result<Vec<Notice>> {
        let image = lender::of_cluster(&self.home, cluster)?;
        let notices = host::prepare(&self.home, cluster, &image)?;
        // Rules before the bridge: at no time is there a bridge without guards.
        guard::up(&self.home, cluster, &image, guard::Publish::Ports)?;
        let client = self.client().await?;
        match network::up(client, &self.home, &self.owner(), cluster).await {
            Ok(()) => Ok(notices),
            Err(e) => {
                guard::down(&self.home, &cluster.name, &image)?;
                Err(e)
            }
        }
    }

    /// The engine keeps the bridge while nobody is on it, and with it the addresses.
    async fn network_down(&self, profile: &str, forget: bool) -> Result<()> {
        let image = lender::of_profile(&self.home, profile).unwrap_or_else(|_| "/".into());
        guard::forget_faults(&self.home, profile, &image);
        if forget {
            machine::sweep(&self.home.machines(), profile)?;
            network::down(self.client().await?, &self.home, &self.owner(), profile).await?;
            guard::down(&self.home, profile, &image)?;
        }
        if self.list().await?.iter().all(|m| m.state == MachineState::Stopped) {
            host::restore(&self.home, &image).await?;
        }
        Ok(())
    }

    async fn create(&self, spec: &MachineSpec) -> Result<()> {
        machine::create(&self.home, spec, self.kind()).await
    }

    async fn configure(&self, spec: &MachineSpec) -> Result<()> {
        machine::configure(&self.home, spec).await
    }

    /// The groups below the container's have to follow, which the engine does not know of; then it is told.
    async fn resize(&self, spec: &MachineSpec) -> Result<()> {
        let Some(cgroup) = self.cgroup(&spec.name)? else { return Ok(()) };
        let limits = size::limits(spec);
        tokio::task::spawn_blocking(move || cgroup.resize(&limits)).await??;
        let client = self.client().await?;
        let Some(found) = container::inspect(client, &spec.name).await? else { return Ok(()) };
        let told = client.update_container(container::id(&found)?, size::change(spec)).await;
        told.with_context(|| format!("tell the engine the size of {}", spec.name))
    }

    async fn boot(&self, spec: &MachineSpec) -> Result<()> {
        machine::note(&self.home)?;
        let client = self.client().await?;
        let found = container::inspect(client, &spec.name).await?;
        if let Some(found) = &found {
            self.is_ours(&spec.name, found)?;
            if container::is_running(found) {
                return self.record(&spec.name, found);
            }
        }
        let reference = {
            let _one = self.bringing.lock().await;
            image::ensure(client, &spec.image, Arc::new(|_| ())).await?
        };
        let paths = Paths::new(&self.home, &spec.name);
        paths.forget_init()?;
        machine::fresh_dir(&paths.work())?;
        let program = crate::agent::program(&self.home)?;
        let (programs, name) = program.parent().zip(program.file_name()).context("the agent's program")?;
        let agent = Path::new(PROGRAMS).join(name);
        let launch = Launch {
            machine: spec.name.clone(),
            dir: MACHINE.into(),
            image_rootfs: "/".into(),
            images: IMAGES.into(),
            agent: agent.clone(),
            binds: container::staged(&spec.binds),
            // What the container finds is another one.
            cgroup: Cgroup { version: Version::of_host()?, path: "".into() },
            processors: size::limits(spec).processors().to_vec(),
        };
        fs_err::write(paths.launch_file(), serde_json::to_vec(&launch)?)?;
        let images = paths.images()?;
        // One that ended is made anew: what it is to be may have changed since.
        if let Some(found) = &found {
            container::remove(client, container::id(found)?).await?;
        }
        let own = [(paths.dir(), MACHINE, false), (programs, PROGRAMS, true), (&images, IMAGES, true)];
        let body = container::body(spec, &self.owner(), reference, &agent, own);
        let made = container::create(client, Some(&spec.name), body).await;
        let id = made.map_err(|e| refused::machine(spec, "make", e))?;
        let started = client.start_container(&id, None::<StartContainerOptions>).await;
        started.map_err(|e| refused::machine(spec, "start", e))?;
        match container::inspect(client, &spec.name).await? {
            Some(found) => self.record(&spec.name, &found),
            None => bail!("the container {} was removed as it started", spec.name),
        }
    }

    async fn power_off(&self, machine: &str, grace: Duration) -> Result<()> {
        let client = self.client().await?;
        let paths = Paths::new(&self.home, machine);
        let Some(found) = container::inspect(client, machine).await? else { return paths.forget_init() };
        if self.is_ours(machine, &found).is_err() {
            return Ok(());
        }
        if container::is_running(&found) {
            self.thaw(machine).await?;
            let id = container::id(&found)?;
            let ended = if grace.is_zero() {
                client.kill_container(id, None::<KillContainerOptions>).await
            } else {
                let seconds = i32::try_from(grace.as_secs()).unwrap_or(i32::MAX);
                let options = StopContainerOptionsBuilder::default().t(seconds).build();
                client.stop_container(id, Some(options)).await
            };
            match ended {
                Err(e) if !is_missing(&e) && !has_ended(&e) => {
                    return Err(e).with_context(|| format!("stop the container {machine}"));
                }
                _ => {}
            }
            ended_for_good(client, id).await?;
        }
        paths.forget_init()
    }

    async fn remove(&self, machine: &str) -> Result<()> {
        let client = self.client().await?;
        if let Some(found) = container::inspect(client, machine).await?
            && self.is_ours(machine, &found).is_ok()
        {
            self.thaw(machine).await?;
            container::remove(client, container::id(&found)?).await?;
        }
        let paths = Paths::new(&self.home, machine);
        if paths.is_anothers() {
            return Ok(());
        }
        tokio::task::spawn_blocking(move || machine::discard(&paths)).await?
    }

    /// By their directories, and such that have lost theirs.
    async fn list(&self) -> Result<Vec<Machine>> {
        let client = self.client().await?;
        let containers = container::list(client, &self.owner()).await?;
        let mut machines = Vec::new();
        for (name, _) in machine::of_home(&self.home).into_iter().filter(|(_, k)| *k == self.kind) {
            let paths = Paths::new(&self.home, &name);
            let running = containers.iter().any(|c| c.machine == name && c.running);
            // Somebody else may have started it.
            if running
                && paths.running().is_none()
                && let Some(found) = container::inspect(client, &name).await?
            {
                self.record(&name, &found)?;
            }
            let state = if running { MachineState::Running } else { MachineState::Stopped };
            machines.push(Machine { profile: paths.profile(), name, state });
        }
        for stray in containers {
            if !machines.iter().any(|m| m.name == stray.machine) {
                let state = if stray.running { MachineState::Running } else { MachineState::Stopped };
                machines.push(Machine { name: stray.machine, profile: stray.profile, state });
            }
        }
        machines.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(machines)
    }

    async fn is_frozen(&self, machine: &str) -> bool {
        let Ok(client) = self.client().await else { return false };
        matches!(container::inspect(client, machine).await, Ok(Some(found)) if container::is_paused(&found))
    }

    async fn is_connected(&self, machine: &str) -> Result<bool> {
        let Some(profile) = Paths::new(&self.home, machine).profile() else { return Ok(false) };
        let found = container::inspect(self.client().await?, machine).await?;
        Ok(found.is_some_and(|found| container::is_on(&found, &profile)))
    }

    async fn network_is_up(&self, cluster: &Cluster, running: &[String]) -> Result<bool> {
        if !network::is_up(self.client().await?, &self.home, cluster, running).await? {
            return Ok(false);
        }
        let Ok(image) = lender::of_cluster(&self.home, cluster) else { return Ok(false) };
        let (home, profile) = (self.home.clone(), cluster.name.clone());
        Ok(tokio::task::spawn_blocking(move || guard::is_up(&home, &profile, &image)).await?)
    }

    async fn networks_in_use(&self) -> Result<Vec<Ipv4Net>> {
        let mut all = crate::native::network::in_use().await?;
        all.extend(network::in_use(self.client().await?).await?);
        Ok(all)
    }

    async fn has_image(&self, image: &NodeImage) -> Result<bool> {
        image::has(self.client().await?, image).await
    }

    async fn bring_image(&self, image: &NodeImage, progress: Arc<LayerProgress>) -> Result<()> {
        let _one = self.bringing.lock().await;
        image::ensure(self.client().await?, image, progress).await.map(drop)
    }

    async fn pull_image(
        &self,
        reference: &Reference,
        progress: Arc<LayerProgress>,
    ) -> Result<(NodeImage, String)> {
        pull::pull(self.client().await?, &Store::new(self.home.cache()), reference, progress).await
    }

    fn freezer(&self) -> &dyn Freeze {
        self
    }

    async fn connect(&self, machine: &str) -> Result<Stream, NoStream> {
        let client = self
            .client()
            .await
            .map_err(|fault| NoStream::Silent { machine: machine.to_owned(), why: fault.to_string() })?;
        connect::connect(client, machine).await
    }
}

impl Docker {
    /// Another home, or somebody else altogether, may have a container of that name.
    fn is_ours(&self, name: &str, found: &ContainerInspectResponse) -> Result<(), Fault> {
        let whose = match container::owner_of(found) {
            Some(owner) if owner == self.owner() => return Ok(()),
            Some(other) => format!("belongs to a cluster of {other}"),
            None => "is not manykube's".to_owned(),
        };
        let message = format!("The engine has a container \"{name}\" that {whose}");
        Err(Fault::new(Reason::GuestStart, message)
            .advice("Remove it, or choose another name for the cluster with -p"))
    }

    /// `None` of a machine that does not run.
    fn cgroup(&self, machine: &str) -> Result<Option<Cgroup>> {
        let init = Paths::new(&self.home, machine).running();
        init.map(|init| Cgroup::of_process(init.pid)).transpose()
    }

    /// By its first process the rest of the host knows a machine that runs.
    fn record(&self, machine: &str, found: &ContainerInspectResponse) -> Result<()> {
        // One that has ended already is found to be down by whoever waits for it.
        let Some(pid) = container::pid(found) else { return Ok(()) };
        let Ok(init) = process::identify(pid) else { return Ok(()) };
        host::note_contained(&init)?;
        Paths::new(&self.home, machine).record_init(&init)
    }
}

/// The engine's word for "it does not run": 304 of stop, 409 of kill.
fn has_ended(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 304 | 409, .. })
}

/// A kill returns before the container has ended.
async fn ended_for_good(client: &Client, id: &str) -> Result<()> {
    use futures::StreamExt as _;
    let options = None::<bollard::query_parameters::WaitContainerOptions>;
    // It ends with the container's exit code, which is an error unless it is 0.
    match client.wait_container(id, options).next().await {
        Some(Err(e @ Error::DockerResponseServerError { .. })) if !is_missing(&e) => {
            Err(e).with_context(|| format!("wait for the end of the container {id}"))
        }
        _ => Ok(()),
    }
}
