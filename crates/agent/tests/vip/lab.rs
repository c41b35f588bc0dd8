//! Nodes and the host they are on.

use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use model::node_spec::{Election, Kubelet, NodeNetwork, NodeSpec, NodeState, Peers};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::api::PORT;

pub const VIP: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 254);

pub struct Lab {
    dir: TempDir,
    pub nodes: Vec<Node>,
}

pub struct Node {
    pub ip: Ipv4Addr,
    dir: PathBuf,
    agent: Option<Child>,
    api: Option<Child>,
    /// Its agent stands still.
    frozen: bool,
}

impl Lab {
    pub fn new(size: u8) -> Result<Lab> {
        let dir = tempfile::tempdir()?;
        ip("link set lo up")?;
        // As the driver does: without an address of its own it has the lowest of its ports.
        ip("link add br0 address 02:6d:c0:a8:31:01 type bridge")?;
        ip("addr add 192.168.49.1/24 dev br0")?;
        ip("link set br0 up")?;
        let mut nodes = Vec::new();
        for last in 2..2 + size {
            let node = Node {
                ip: Ipv4Addr::new(192, 168, 49, last),
                dir: dir.path().join(last.to_string()),
                agent: None,
                api: None,
                frozen: false,
            };
            std::fs::create_dir(&node.dir)?;
            // The first is told, as the only control plane of a cluster, to have the address.
            let vip = (last == 2).then_some(VIP);
            std::fs::write(node.dir.join("node.json"), serde_json::to_vec(&spec(node.ip, vip))?)?;
            std::fs::write(node.dir.join("election.json"), r#"{"key":"of this lab alone"}"#)?;
            nodes.push(node);
        }
        Ok(Lab { dir, nodes })
    }

    /// As the host does it: a new file in place of the old one.
    pub fn tell_peers(&self, control_planes: &[Ipv4Addr], nodes: &[Ipv4Addr]) -> Result<()> {
        let peers = Peers {
            control_planes: control_planes.to_vec(),
            nodes: nodes.to_vec(),
            election: Some(Election::new(VIP, PORT)),
            load_balancers: None,
        };
        let new = self.dir.path().join("new");
        for node in &self.nodes {
            std::fs::write(&new, serde_json::to_vec(&peers)?)?;
            std::fs::rename(&new, node.dir.join("peers.json"))?;
        }
        Ok(())
    }

    pub fn ips(&self) -> Vec<Ipv4Addr> {
        self.nodes.iter().map(|n| n.ip).collect()
    }

    /// Nodes that answer for the address, by their agents or by their kernels.
    pub fn holders(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|i| self.nodes[*i].holds()).collect()
    }

    /// No packet between these two. All else goes on, also with the host.
    pub fn cut_link(&self, a: usize, b: usize) -> Result<()> {
        let (a, b) = (self.nodes[a].cable(), self.nodes[b].cable());
        let rules = [(&a, &b), (&b, &a)].map(|(from, to)| format!("iifname {from} oifname {to} drop"));
        run("nft", &["add", "table", "bridge", "cut"])?;
        let chain = "{ type filter hook forward priority 0; policy accept; }";
        run("nft", &["add", "chain", "bridge", "cut", "links", chain])?;
        for rule in rules {
            let words: Vec<&str> = rule.split(' ').collect();
            run("nft", &[&["add", "rule", "bridge", "cut", "links"], &words[..]].concat())?;
        }
        Ok(())
    }

    /// As those of many pods do: how many.
    pub fn links_come_and_go(&self, count: u32) -> Result<u32> {
        for n in 0..count {
            ip(&format!("link add pod{n} type veth peer name dop{n}"))?;
        }
        for n in 0..count {
            ip(&format!("link del pod{n}"))?;
        }
        Ok(count)
    }

    pub fn heal_links(&self) -> Result<()> {
        run("nft", &["delete", "table", "bridge", "cut"]).map(drop)
    }

    pub async fn one_holder(&self, within: Duration) -> Result<usize> {
        let began = Instant::now();
        loop {
            match self.holders()[..] {
                [one] => return Ok(one),
                ref other if began.elapsed() > within => bail!("holders after {within:?}: {other:?}"),
                _ => sleep(Duration::from_millis(5)).await,
            }
        }
    }
}

impl Node {
    pub fn start(&mut self) -> Result<()> {
        let me = std::env::current_exe()?;
        let _ = std::fs::remove_file(self.dir.join("state.json"));
        self.frozen = false;
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.dir.join("agent.log"))?;
        let mut agent = Command::new("unshare");
        agent.args(["--net", "--"]).arg(&me).arg("node").arg(&self.dir).stderr(log).process_group(0);
        let agent = agent.spawn().context("start an agent")?;
        let pid = agent.id();
        self.agent = Some(agent);
        let namespace = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/net")).ok();
        while namespace(&pid.to_string()) == namespace("self") {
            std::thread::sleep(Duration::from_millis(1));
        }
        ip(&format!("link add {0} master br0 type veth peer name eth0 netns {pid}", self.cable()))?;
        ip(&format!("link set {} up", self.cable()))?;
        self.start_api()
    }

    pub fn start_api(&mut self) -> Result<()> {
        let mut api =
            self.entered(&[&std::env::current_exe()?.to_string_lossy(), "api", &self.ip.to_string()])?;
        self.api = Some(api.spawn()?);
        Ok(())
    }

    fn entered(&self, argv: &[&str]) -> Result<Command> {
        let pid = self.agent.as_ref().context("the node is not up")?.id().to_string();
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &pid, "--"]).args(argv);
        Ok(command)
    }

    /// Runs a command in the node; its output.
    pub fn enter(&self, argv: &[&str]) -> Result<String> {
        output(&mut self.entered(argv)?)
    }

    fn holds(&self) -> bool {
        if self.agent.is_none() || self.frozen {
            return false;
        }
        match self.state().ok().and_then(|s| s.vip) {
            Some(vip) => vip.holder,
            None => {
                let shown = self.enter(&["ip", "-o", "addr", "show", "dev", "eth0"]);
                shown.is_ok_and(|text| text.contains(&format!("{VIP}/32")))
            }
        }
    }

    /// Of the last election that it knows of.
    pub fn term(&self) -> Result<u64> {
        Ok(self.state()?.vip.context("no election")?.term)
    }

    /// The agent's thread stands still, as it does when it waits for the kernel.
    pub fn stall(&self, seconds: u32) -> Result<()> {
        Ok(std::fs::write(self.dir.join("stall"), seconds.to_string())?)
    }

    pub fn state(&self) -> Result<NodeState> {
        Ok(serde_json::from_slice(&std::fs::read(self.dir.join("state.json"))?)?)
    }

    /// All its processes at once; the cable goes with the namespace.
    pub fn kill(&mut self) -> Result<()> {
        for mut child in self.agent.take().into_iter().chain(self.api.take()) {
            child.kill()?;
            child.wait()?;
        }
        self.unplug()
    }

    fn unplug(&self) -> Result<()> {
        let _ = ip(&format!("link del {}", self.cable()));
        Ok(())
    }

    pub fn kill_api(&mut self) -> Result<()> {
        let mut api = self.api.take().context("no API server")?;
        api.kill()?;
        api.wait()?;
        Ok(())
    }

    /// An orderly power off: the agent first.
    pub fn terminate(&mut self) -> Result<()> {
        let mut agent = self.agent.take().context("the node is not up")?;
        signal(&agent, Signal::SIGTERM)?;
        ensure_ok(agent.wait()?.success())?;
        self.kill_api()?;
        self.unplug()
    }

    pub fn signal_api(&self, what: Signal) -> Result<()> {
        signal(self.api.as_ref().context("no API server")?, what)
    }

    pub fn signal_agent(&mut self, what: Signal) -> Result<()> {
        self.frozen = what == Signal::SIGSTOP;
        signal(self.agent.as_ref().context("no agent")?, what)
    }

    pub fn cut(&self) -> Result<()> {
        ip(&format!("link set {} nomaster", self.cable()))
    }

    pub fn plug(&self) -> Result<()> {
        ip(&format!("link set {} master br0", self.cable()))
    }

    fn cable(&self) -> String {
        format!("veth{}", self.ip.octets()[3])
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("agent.log")).unwrap_or_default()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = ip("link del br0");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn ensure_ok(ok: bool) -> Result<()> {
    if ok { Ok(()) } else { bail!("the agent failed") }
}

fn signal(child: &Child, what: Signal) -> Result<()> {
    Ok(kill(Pid::from_raw(i32::try_from(child.id())?), what)?)
}

fn spec(ip: Ipv4Addr, vip: Option<Ipv4Addr>) -> NodeSpec {
    NodeSpec {
        profile: "lab".to_owned(),
        machine: format!("lab-{ip}"),
        control_plane: true,
        network: NodeNetwork {
            api: None,
            address: ipnet::Ipv4Net::new_assert(ip, 24),
            gateway: Ipv4Addr::new(192, 168, 49, 1),
            vip,
            pods: Some(model::address::pod_cidr(
                ipnet::Ipv4Net::new_assert(Ipv4Addr::new(192, 168, 49, 0), 24),
                ipnet::Ipv4Net::new_assert(Ipv4Addr::new(10, 244, 0, 0), 16),
                ip,
            )),
            cluster_pods: ipnet::Ipv4Net::new_assert(Ipv4Addr::new(10, 244, 0, 0), 16),
            services: ipnet::Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), 12),
            dns: vec![],
            mtu: 1500,
        },
        hosts: vec![],
        prepare: vec![],
        kubelet: Kubelet { argv: vec![], env_files: vec![], env: vec![] },
        early_api: None,
        cpus: None,
        memory_mib: None,
    }
}

fn ip(words: &str) -> Result<()> {
    run("ip", &words.split(' ').collect::<Vec<_>>()).map(drop)
}

pub fn run(program: &str, args: &[&str]) -> Result<String> {
    output(Command::new(program).args(args))
}

fn output(command: &mut Command) -> Result<String> {
    let out = command.stdin(Stdio::null()).output().with_context(|| format!("run {command:?}"))?;
    if !out.status.success() {
        bail!(
            "{command:?}: {}{}",
            String::from_utf8_lossy(&out.stderr),
            String::from_utf8_lossy(&out.stdout)
        );
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
