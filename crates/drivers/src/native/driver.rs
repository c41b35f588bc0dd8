//! The driver's verbs, on top of the other files of this folder.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use async_trait::async_trait;
use base::Stream;
use image::registry::{LayerProgress, Reference};
use image::{NodeImage, Store};
use ipnet::Ipv4Net;
use model::{Cluster, DriverKind, Fault};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use super::cgroup::{Cgroup, Limits};
use super::launch::Launch;
use super::{Native, connect, firewall, guard, host, lender, network, preflight};
use crate::driver::{Driver, Machine, MachineSpec, MachineState, NoStream, Notice};
use crate::freeze::Freeze;
use crate::machine::{self, Paths, fresh_dir};
use crate::process::Handle;

/// How long a killed machine may take to be gone: the kernel only has to reap.
const REAP: Duration = Duration::from_secs(10);

#[async_trait]
impl Driver for Native {
    fn kind(&self) -> DriverKind {
        DriverKind::Native
    }

    async fn preflight(&self) -> Result<(), Fault> {
        preflight::check(&self.home)
    }

    async fn network_up(&self, cluster: &Cluster) -> Result<Vec<Notice>> {
        let image = lender::of_cluster(&self.home, cluster)?;
        let mut notices = host::prepare(&self.home, cluster, &image)?;
        network::record(&self.home, cluster)?;
        let own = self.list().await?.into_iter().filter(|m| m.profile.as_deref() == Some(&cluster.name));
        let machines: Vec<String> = own.map(|m| m.name).collect();
        // Rules before the bridge: at no time is there a bridge without guards.
        guard::up(&self.home, cluster, &image, guard::Publish::Nothing)?;
        notices.extend(firewall::open(&self.home, cluster, &image)?);
        network::up(&self.home, cluster, &machines).await?;
        Ok(notices)
    }

    async fn network_down(&self, profile: &str, forget: bool) -> Result<()> {
        if forget {
            machine::sweep(&self.home.machines(), profile)?;
        }
        let image = lender::of_profile(&self.home, profile).unwrap_or_else(|_| "/".into());
        // What this home did not make is not its to take away.
        if network::is_recorded(&self.home, profile) {
            guard::forget_faults(&self.home, profile, &image);
            if forget {
                firewall::close(&self.home, profile, &image);
                guard::down(&self.home, profile, &image)?;
            }
            network::down(&self.home, profile, forget).await?;
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

    async fn resize(&self, spec: &MachineSpec) -> Result<()> {
        let cgroup = self.cgroup(&spec.name)?;
        let limits = limits(spec);
        tokio::task::spawn_blocking(move || cgroup.resize(&limits)).await?
    }

    async fn boot(&self, spec: &MachineSpec) -> Result<()> {
        machine::note(&self.home)?;
        let paths = Paths::new(&self.home, &spec.name);
        let pid = match paths.running() {
            Some(identity) => identity.pid,
            None => self.launch(spec, &paths).await?,
        };
        network::attach(&self.home, &spec.cluster, &spec.name, spec.ip, pid).await
    }

    async fn power_off(&self, machine: &str, grace: Duration) -> Result<()> {
        let paths = Paths::new(&self.home, machine);
        if let Some(identity) = paths.running()
            && let Some(init) = Handle::open(&identity)?
        {
            // Who is frozen hears no signal, with cgroup v1 not even that which kills.
            Cgroup::of(machine, paths.dir())?.thaw();
            if !grace.is_zero() {
                init.signal(Signal::TERM)?;
            }
            if grace.is_zero() || !init.wait(grace).await? {
                init.signal(Signal::KILL)?;
                if !init.wait(REAP).await? {
                    bail!("machine {machine} (pid {}) does not end", identity.pid);
                }
            }
        }
        paths.forget_init()?;
        network::detach(&self.home, machine).await?;
        // A kubelet that finds pods' groups of an earlier life never starts its static pods.
        let cgroup = Cgroup::of(machine, paths.dir())?;
        // Waits for the kernel: other machines that end need not wait with it.
        tokio::task::spawn_blocking(move || cgroup.remove()).await?
    }

    async fn remove(&self, machine: &str) -> Result<()> {
        self.power_off(machine, Duration::ZERO).await?;
        let paths = Paths::new(&self.home, machine);
        if paths.is_anothers() {
            return Ok(());
        }
        tokio::task::spawn_blocking(move || machine::discard(&paths)).await?
    }

    async fn list(&self) -> Result<Vec<Machine>> {
        let own = machine::of_home(&self.home).into_iter().filter(|(_, kind)| *kind == DriverKind::Native);
        let machine = |name: String| {
            let paths = Paths::new(&self.home, &name);
            let state = if paths.running().is_some() { MachineState::Running } else { MachineState::Stopped };
            Machine { name, profile: paths.profile(), state }
        };
        Ok(own.map(|(name, _)| machine(name)).collect())
    }

    async fn is_frozen(&self, machine: &str) -> bool {
        self.cgroup(machine).is_ok_and(|c| c.is_frozen())
    }

    async fn is_connected(&self, machine: &str) -> Result<bool> {
        network::is_connected(&self.home, machine).await
    }

    async fn network_is_up(&self, cluster: &Cluster, running: &[String]) -> Result<bool> {
        if !network::is_up(&self.home, cluster, running).await? {
            return Ok(false);
        }
        let Ok(image) = lender::of_cluster(&self.home, cluster) else { return Ok(false) };
        let (home, cluster) = (self.home.clone(), cluster.clone());
        let look =
            move || guard::is_up(&home, &cluster.name, &image) && firewall::is_open(&home, &cluster, &image);
        Ok(tokio::task::spawn_blocking(look).await?)
    }

    async fn networks_in_use(&self) -> Result<Vec<Ipv4Net>> {
        network::in_use().await
    }

    /// Nodes lie on the store's own files.
    async fn has_image(&self, _: &NodeImage) -> Result<bool> {
        Ok(true)
    }

    async fn bring_image(&self, _: &NodeImage, _: Arc<LayerProgress>) -> Result<()> {
        Ok(())
    }

    async fn pull_image(
        &self,
        reference: &Reference,
        progress: Arc<LayerProgress>,
    ) -> Result<(NodeImage, String)> {
        image::registry::pull(&Store::new(self.home.cache()), reference, false, progress).await
    }

    fn freezer(&self) -> &dyn Freeze {
        self
    }

    async fn connect(&self, machine: &str) -> Result<Stream, NoStream> {
        let paths = Paths::new(&self.home, machine);
        if paths.running().is_none() {
            return Err(NoStream::NotRunning(machine.to_owned()));
        }
        // Its socket takes connections, and nothing would answer.
        if self.is_frozen(machine).await {
            return Err(NoStream::Frozen(machine.to_owned()));
        }
        connect::connect(machine, &paths).await
    }
}

impl Native {
    async fn launch(&self, spec: &MachineSpec, paths: &Paths) -> Result<u32> {
        let images = paths.images()?;
        network::detach(&self.home, &spec.name).await?;
        let cgroup = Cgroup::of(&spec.name, paths.dir())?;
        cgroup.remove()?;
        cgroup.create(&limits(spec))?;
        let launch = Launch {
            machine: spec.name.clone(),
            dir: paths.dir().to_owned(),
            image_rootfs: paths.image_rootfs()?,
            images,
            agent: crate::agent::program(&self.home)?,
            binds: spec.binds.clone(),
            cgroup,
            processors: Vec::new(),
        };
        fs_err::write(paths.launch_file(), serde_json::to_vec(&launch)?)?;
        fresh_dir(&paths.work())?;

        let mut launcher = Command::new("/proc/self/exe");
        launcher.arg(super::LAUNCH).arg(paths.dir());
        launcher.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        dies_with_us(&mut launcher);
        let mut child = launcher.spawn().context("start the launcher")?;
        let mut stderr = child.stderr.take().context("the launcher's messages")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the launcher's answer")?;
        BufReader::new(stdout).read_line(&mut line).await.context("read the launcher's answer")?;
        // The machine's end of the cable can be plugged in while it is still mounting.
        let attached = match line.trim().parse::<u32>() {
            Ok(pid) => {
                network::attach(&self.home, &spec.cluster, &spec.name, spec.ip, pid).await.map(|()| pid)
            }
            Err(_) => Err(anyhow!("the launcher gave no pid")),
        };
        let mut message = String::new();
        stderr.read_to_string(&mut message).await.context("read the launcher's messages")?;
        if !child.wait().await.context("wait for the launcher")?.success() {
            bail!("machine {} could not be started: {}", spec.name, message.trim());
        }
        attached
    }
}

fn limits(spec: &MachineSpec) -> Limits {
    Limits::new(spec.cpus, spec.memory_mib, u32::from(spec.ip))
}

/// A launcher whose command is killed must not go on: the next command may remove the machine before it is recorded.
fn dies_with_us(command: &mut Command) {
    let own = rustix::process::getpid();
    // SAFETY: system calls only, which are async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // It may have been killed before this.
            if rustix::process::getppid() == Some(own) {
                Ok(())
            } else {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
        });
    }
}
