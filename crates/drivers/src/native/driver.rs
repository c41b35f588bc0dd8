//! The driver's verbs, on top of the other files of this folder.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use async_trait::async_trait;
use model::node_spec::{AGENT_PATH, NodeFile};
use model::{Cluster, DriverKind, Fault};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use super::cgroup::{Cgroup, Limits};
use super::machine::{DRIVER_NAME, Launch, Paths};
use super::process::Handle;
use super::{Native, faults, guard, host, network, preflight};
use crate::driver::{Driver, Io, Machine, MachineSpec, MachineState, Notice, Output};

/// Suffixes of directories that are not machines yet, or not any more.
const NEW: &str = ".new";
const GONE: &str = ".gone";
/// How long a killed machine may take to be gone: the kernel only has to reap.
const REAP: Duration = Duration::from_secs(10);

#[async_trait]
impl Driver for Native {
    fn kind(&self) -> DriverKind {
        DriverKind::Native
    }

    fn preflight(&self) -> Result<(), Fault> {
        preflight::check(&self.home)
    }

    async fn network_up(&self, cluster: &Cluster) -> Result<Vec<Notice>> {
        let notices = host::prepare(&self.home, cluster)?;
        network::record(&self.home, cluster)?;
        let own = self.list().await?.into_iter().filter(|m| m.profile.as_deref() == Some(&cluster.name));
        let machines: Vec<String> = own.map(|m| m.name).collect();
        // Rules before the bridge: at no time is there a bridge without guards.
        guard::up(&self.home, cluster, &self.any_image()?)?;
        network::up(&self.home, cluster, &machines).await?;
        Ok(notices)
    }

    async fn network_down(&self, profile: &str, forget: bool) -> Result<()> {
        if forget {
            sweep(&self.home.machines(), profile)?;
        }
        // What this home did not make is not its to take away.
        if network::is_recorded(&self.home, profile) {
            if forget {
                let image = self.any_image().unwrap_or_else(|_| "/".into());
                guard::down(&self.home, profile, &image)?;
                faults::forget(&self.home, profile, &image)?;
            }
            network::down(&self.home, profile, forget).await?;
        }
        if self.list().await?.iter().all(|m| m.state == MachineState::Stopped) {
            host::restore(&self.home)?;
        }
        Ok(())
    }

    async fn create(&self, spec: &MachineSpec) -> Result<()> {
        let paths = Paths::new(&self.home, &spec.name);
        if paths.exists() {
            return Ok(());
        }
        let spec = spec.clone();
        tokio::task::spawn_blocking(move || create(&paths, &spec)).await?
    }

    async fn configure(&self, spec: &MachineSpec) -> Result<()> {
        let paths = Paths::new(&self.home, &spec.name);
        if paths.running().is_some() {
            bail!("machine {} runs: its files cannot be replaced", spec.name);
        }
        let spec = spec.clone();
        let place_all = move || {
            spec.files.iter().try_for_each(|file| place(&paths, file))?;
            write_out(paths.dir())
        };
        tokio::task::spawn_blocking(place_all).await?
    }

    async fn resize(&self, spec: &MachineSpec) -> Result<()> {
        let cgroup = Cgroup::of(&spec.name, Paths::new(&self.home, &spec.name).dir())?;
        let limits = limits(spec);
        tokio::task::spawn_blocking(move || cgroup.resize(&limits)).await?
    }

    async fn boot(&self, spec: &MachineSpec) -> Result<()> {
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
        let dir = paths.dir().to_owned();
        // Out of sight in one step: a removal that is cut short leaves no half machine.
        let gone = dir.with_file_name(format!(".{machine}{GONE}"));
        remove_dir(&gone)?;
        match fs_err::rename(&dir, &gone) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed?,
        }
        tokio::task::spawn_blocking(move || remove_dir(&gone)).await?
    }

    async fn list(&self) -> Result<Vec<Machine>> {
        let entries = match std::fs::read_dir(self.home.machines()) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e).context("list machines"),
        };
        let names = entries.flatten().filter_map(|e| e.file_name().into_string().ok());
        let names = names.filter(|name| !name.starts_with('.'));
        let mut machines: Vec<Machine> = names
            .filter_map(|name| {
                let paths = Paths::new(&self.home, &name);
                let running = paths.running().is_some();
                let state = if running { MachineState::Running } else { MachineState::Stopped };
                (running || paths.exists()).then(|| Machine { name, profile: paths.profile(), state })
            })
            .collect();
        machines.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(machines)
    }

    async fn run(&self, machine: &str, argv: &[String], io: Io) -> Result<Output> {
        let paths = Paths::new(&self.home, machine);
        let Some(identity) = paths.running() else { bail!("machine {machine} is not running") };
        let cgroup = Cgroup::of(machine, paths.dir())?;
        // Whoever entered would stand still with the others.
        if cgroup.is_frozen() {
            bail!("machine {machine} is frozen: nothing can run in it until it is thawed");
        }
        let cgroup = serde_json::to_string(&cgroup)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(super::ENTER).arg(identity.pid.to_string()).arg(cgroup).kill_on_drop(true);
        match io {
            Io::Inherit { tty } => {
                command.arg(if tty { "tty" } else { "plain" }).args(argv);
                let status = command.status().await.context("enter the machine")?;
                Ok(Output { code: status.code().unwrap_or(1), ..Output::default() })
            }
            Io::Captured { stdin } => {
                command.arg("plain").args(argv);
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                let mut child = command.spawn().context("enter the machine")?;
                let mut input = child.stdin.take().context("the command's input")?;
                let feed = async move {
                    // A command that does not read its input ends the pipe, which is its right.
                    let _ = input.write_all(&stdin).await;
                };
                let (output, ()) = tokio::join!(child.wait_with_output(), feed);
                let output = output.context("wait for the command")?;
                Ok(Output {
                    code: output.status.code().unwrap_or(1),
                    stdout: output.stdout,
                    stderr: output.stderr,
                })
            }
        }
    }
}

impl Native {
    /// The root of an image, to borrow programs from.
    pub(super) fn any_image(&self) -> Result<PathBuf> {
        let images = image::Store::new(self.home.cache()).list()?;
        Ok(images.first().context("no node image is in the store")?.rootfs())
    }

    async fn launch(&self, spec: &MachineSpec, paths: &Paths) -> Result<u32> {
        let image_rootfs = paths.image_rootfs()?;
        if !image_rootfs.is_dir() {
            bail!("the node image {} that {} was made of is gone", image_rootfs.display(), spec.name);
        }
        network::detach(&self.home, &spec.name).await?;
        let cgroup = Cgroup::of(&spec.name, paths.dir())?;
        cgroup.remove()?;
        cgroup.create(&limits(spec))?;
        let launch = Launch {
            machine: spec.name.clone(),
            dir: paths.dir().to_owned(),
            image_rootfs,
            agent: self.agent_program()?,
            binds: spec.binds.clone(),
            cgroup,
        };
        fs_err::write(paths.launch_file(), serde_json::to_vec(&launch)?)?;
        fresh_dir(&paths.work())?;
        fresh_dir(&paths.shared())?;

        let mut child = Command::new("/proc/self/exe")
            .arg(super::LAUNCH)
            .arg(paths.dir())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("start the launcher")?;
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

    /// A copy of this program for the nodes: the command itself may be replaced while they run.
    fn agent_program(&self) -> Result<PathBuf> {
        let own = fs_err::metadata("/proc/self/exe")?;
        let modified = own.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let dir = self.home.root().join("bin");
        let program = dir.join(format!("agent-{}-{modified}", own.len()));
        if !program.exists() {
            fs_err::create_dir_all(&dir)?;
            // Always the same name, so that what a dead one left is used up; locked, because two may come.
            let half = program.with_extension("new");
            let mut file = std::fs::File::options().create(true).truncate(false).write(true).open(&half)?;
            file.lock().with_context(|| format!("lock {}", half.display()))?;
            if program.exists() {
                // The one who had the lock has renamed the file that we hold, or left us an empty one.
                let _ = std::fs::remove_file(&half);
                return Ok(program);
            }
            file.set_len(0)?;
            std::io::copy(&mut fs_err::File::open("/proc/self/exe")?, &mut file)?;
            fs_err::set_permissions(&half, PermissionsExt::from_mode(0o755))?;
            // All nodes hang on it: half of it after a power cut would be found and believed.
            file.sync_all()?;
            drop(file);
            fs_err::rename(&half, &program)?;
        }
        Ok(program)
    }
}

fn limits(spec: &MachineSpec) -> Limits {
    Limits::new(spec.cpus, spec.memory_mib, u32::from(spec.ip))
}

/// Everything is made beside its final place and renamed, so that a machine exists as a whole.
fn create(paths: &Paths, spec: &MachineSpec) -> Result<()> {
    let parent = paths.dir().parent().context("machines directory")?;
    fs_err::create_dir_all(parent)?;
    let building = Paths::at(parent.join(format!(".{}{NEW}", spec.name)));
    remove_dir(building.dir())?;
    std::fs::DirBuilder::new().mode(0o700).create(building.dir()).context("make the machine's directory")?;
    for dir in [building.upper(), building.work(), building.merged(), building.var(), building.shared()] {
        fs_err::create_dir(dir)?;
    }
    spec.image.clone_var(&building.var()).context("fill the machine's /var")?;
    for file in &spec.files {
        place(&building, file)?;
    }
    place(&building, &NodeFile::new(AGENT_PATH, 0o755, Vec::new()))?;
    place(&building, &NodeFile::new("/etc/hostname", 0o644, format!("{}\n", spec.name)))?;
    let record = serde_json::json!({
        "ConfigVersion": 3,
        "DriverName": DRIVER_NAME,
        "Name": spec.name,
        "Driver": {
            "IPAddress": spec.ip,
            "MachineName": spec.name,
            "Profile": spec.cluster.name,
            "CPU": spec.cpus,
            "Memory": spec.memory_mib,
            "ImageRootfs": spec.image.rootfs(),
        },
    });
    fs_err::write(building.config_file(), serde_json::to_vec_pretty(&record)?)?;
    fs_err::set_permissions(building.config_file(), PermissionsExt::from_mode(0o600))?;
    if paths.is_anothers() {
        fs_err::rename(paths.dir(), paths.aside()).context("put minikube's machine aside")?;
    }
    // A host that loses power would keep the names of fresh files without what was in them, and the rename.
    write_out(parent)?;
    fs_err::rename(building.dir(), paths.dir()).context("put the machine in place")
}

/// All that was written to the disk of a directory is on it, in one go: a machine has hundreds of files.
fn write_out(dir: &Path) -> Result<()> {
    let dir = fs_err::File::open(dir)?;
    rustix::fs::syncfs(&dir).with_context(|| format!("write out the disk of {}", dir.path().display()))
}

fn place(paths: &Paths, file: &NodeFile) -> Result<()> {
    let relative = file.path.trim_start_matches('/');
    let target = match relative.strip_prefix("var/") {
        Some(in_var) => paths.var().join(in_var),
        None => paths.upper().join(relative),
    };
    if let Some(parent) = target.parent() {
        fs_err::create_dir_all(parent)?;
    }
    fs_err::write(&target, &file.data)?;
    fs_err::set_permissions(&target, PermissionsExt::from_mode(file.mode)).map_err(Into::into)
}

/// What a creation or a removal left that was cut short.
fn sweep(machines: &Path, profile: &str) -> Result<()> {
    for entry in std::fs::read_dir(machines).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(name) = name.strip_prefix('.') else { continue };
        // One that is being made may belong to a profile that another command is starting now.
        let half_made = name.strip_suffix(NEW).is_some_and(|m| model::names::belongs(profile, m));
        if half_made || name.ends_with(GONE) {
            remove_dir(&entry.path())?;
        }
    }
    Ok(())
}

fn fresh_dir(dir: &Path) -> Result<()> {
    remove_dir(dir)?;
    fs_err::create_dir_all(dir).map_err(Into::into)
}

fn remove_dir(dir: &Path) -> Result<()> {
    match fs_err::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.into()),
        _ => Ok(()),
    }
}
