//! A machine as the host sees it, and what can happen to one. By the host's own tools: a test that
//! asked the product whether the product works would believe it.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Lab, eventually};

/// One that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub name: String,
    init: u32,
}

impl Machine {
    /// From the driver's record of its init; `None` when there is none.
    pub fn find(lab: &Lab, name: &str) -> Option<Machine> {
        let text = std::fs::read(lab.home().join("machines").join(name).join("init.json")).ok()?;
        let record: serde_json::Value = serde_json::from_slice(&text).ok()?;
        let init = u32::try_from(record["pid"].as_u64()?).ok()?;
        PathBuf::from(format!("/proc/{init}")).exists().then(|| Machine { name: name.to_owned(), init })
    }

    /// Of a home, by name.
    pub fn all(lab: &Lab) -> Vec<Machine> {
        let entries = std::fs::read_dir(lab.home().join("machines")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort();
        names.iter().filter(|n| !n.starts_with('.')).filter_map(|name| Machine::find(lab, name)).collect()
    }

    /// Its kernel has the address, whatever its agent believes.
    pub fn has_address(&self, ip: &str) -> bool {
        let shown = self.enter(&["ip", "-4", "-o", "addr", "show", "dev", "eth0"]);
        shown.is_ok_and(|text| text.contains(&format!(" {ip}/")))
    }

    /// What its agent says of the virtual address, where there is an election.
    fn election(&self) -> Option<serde_json::Value> {
        // By way of its own root: the agent's socket is always in the same place there.
        let mut stream =
            UnixStream::connect(format!("/proc/{}/root/run/manykube/agent.sock", self.init)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said).ok()?;
        let said: serde_json::Value = serde_json::from_slice(&said).ok()?;
        said.get("vip").filter(|vip| vip.is_object()).cloned()
    }

    /// It answers for the virtual address. Every control plane's kernel has it where there is an election, and the
    /// agent of one answers; else the kernel that has it does.
    pub fn holds(&self, ip: &str) -> bool {
        self.election().map_or_else(|| self.has_address(ip), |vip| vip["holder"] == true)
    }

    /// Counts the elections.
    #[track_caller]
    pub fn term(&self) -> u64 {
        self.election().and_then(|vip| vip["term"].as_u64()).expect("an election")
    }

    /// What is done in the machine's network, by a thread of its own.
    pub fn in_network<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        let network = std::fs::File::open(format!("/proc/{}/ns/net", self.init)).expect("its network");
        let entered = || {
            nix::sched::setns(network, nix::sched::CloneFlags::CLONE_NEWNET).expect("enter it");
            body()
        };
        std::thread::scope(|scope| scope.spawn(entered).join().expect("no panic"))
    }

    /// How many API servers it spreads connections over. Asked with the machine's own nft: one of
    /// Debian 12 does not survive the sight of what a newer one has written.
    pub fn backends(&self) -> usize {
        let mut nft = Command::new("nsenter");
        nft.args(["--mount", "--net", "--target", &self.init.to_string(), "--"]);
        let rules = run(nft.args(["nft", "list", "table", "ip", "manykube_vip"])).unwrap_or_default();
        let count = rules.split_once("numgen inc mod ").and_then(|(_, rest)| rest.split(' ').next());
        count.and_then(|n| n.parse().ok()).unwrap_or(0)
    }

    /// All its processes at once, as a loss of power would: they live in its init's namespace.
    pub fn kill(&self) {
        signal(self.init, Signal::SIGKILL);
    }

    /// Somebody on the host who has gone into its files, and stays.
    pub fn look_around(&self) -> Child {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.init.to_string(), "--", "sleep", "600"]);
        let child = command.spawn().expect("run nsenter");
        let own = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        eventually("somebody is in the machine", Duration::from_secs(10), || {
            if own(child.id()) == own(self.init) { Ok(()) } else { Err("not yet".to_owned()) }
        });
        child
    }

    /// Waits until the kernel has ended all of it.
    #[track_caller]
    pub fn ends(&self) {
        eventually("the end of the machine", Duration::from_secs(60), || {
            let runs = PathBuf::from(format!("/proc/{}", self.init)).exists();
            if runs { Err(format!("{self:?} runs")) } else { Ok(()) }
        });
    }

    /// SIGSTOP or SIGCONT to its API server, which shares the network of its init.
    #[track_caller]
    pub fn signal_api_server(&self, what: Signal) {
        let network = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let own = network(self.init);
        let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        let is_it = |pid: &u32| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim() == "kube-apiserver" && network(*pid) == own
        };
        let found: Vec<u32> = pids.filter(is_it).collect();
        assert!(!found.is_empty(), "no API server runs in {}", self.name);
        found.into_iter().for_each(|pid| signal(pid, what));
    }

    /// Its cable and the bridge that is plugged into.
    #[track_caller]
    pub fn cable(&self) -> Cable {
        let own = self.enter(&["ip", "-o", "link", "show", "dev", "eth0"]).expect("the machine's link");
        let index = own.split_once("eth0@if").and_then(|(_, rest)| rest.split_once(':')).expect("a cable").0;
        let all = run(Command::new("ip").args(["-o", "link"])).expect("the host's links");
        let line = all.lines().find(|l| l.starts_with(&format!("{index}: "))).expect("the other end");
        let word = |after: &str| line.split_once(after).map(|(_, rest)| rest.split([' ', '@']).next());
        let (name, bridge) = (word(": ").flatten(), word(" master ").flatten());
        Cable { name: name.expect("a name").to_owned(), bridge: bridge.expect("a bridge").to_owned() }
    }

    /// The host asks by ARP who has an address, and this machine says that it has.
    #[track_caller]
    pub fn answers_arp(&self, ip: &str) -> bool {
        let bridge = self.cable().bridge;
        let neighbour = |words: &[&str]| {
            run(Command::new("ip").args(["neighbour"]).args(words).args(["to", ip, "dev", &bridge]))
        };
        neighbour(&["flush"]).expect("forget who has it");
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
        // One that could not be reached a moment ago is an error here. It is asked again all the same.
        let _ = socket.send_to(b"?", (ip, 9));
        let own = self.enter(&["ip", "-o", "link", "show", "dev", "eth0"]).expect("the machine's link");
        let own = own.split_once("link/ether ").and_then(|(_, rest)| rest.split(' ').next()).expect("a MAC");
        let deadline = Instant::now() + Duration::from_millis(300);
        loop {
            let found = neighbour(&["show"]).expect("the host's neighbours");
            if let Some((_, rest)) = found.split_once("lladdr ") {
                return rest.starts_with(own);
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn enter(&self, argv: &[&str]) -> Result<String, String> {
        run(Command::new("nsenter").args(["--net", "--target", &self.init.to_string(), "--"]).args(argv))
    }
}

/// The host's end of it.
pub struct Cable {
    name: String,
    bridge: String,
}

impl Cable {
    #[track_caller]
    pub fn pull(&self) {
        run(Command::new("ip").args(["link", "set", &self.name, "nomaster"])).expect("pull the cable");
    }

    /// Both ends of it.
    #[track_caller]
    pub fn remove(&self) {
        run(Command::new("ip").args(["link", "delete", &self.name])).expect("remove the cable");
    }

    #[track_caller]
    pub fn plug(&self) {
        run(Command::new("ip").args(["link", "set", &self.name, "master", &self.bridge]))
            .expect("plug it in");
    }
}

/// The one machine that answers for the virtual address.
#[track_caller]
pub fn holder(lab: &Lab, ip: &str) -> Machine {
    eventually("one holder of the virtual address", Duration::from_secs(60), || {
        let mut holders: Vec<Machine> = Machine::all(lab).into_iter().filter(|m| m.holds(ip)).collect();
        match (holders.pop(), holders.is_empty()) {
            (Some(one), true) => Ok(one),
            (one, _) => Err(format!("{one:?} and {holders:?}")),
        }
    })
}

fn signal(pid: u32, what: Signal) {
    // Who is gone already needs none.
    let _ = kill(Pid::from_raw(i32::try_from(pid).expect("a pid")), what);
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
