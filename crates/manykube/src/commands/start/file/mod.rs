//! `start -f`: the cluster from a file. Flags that say the same as the file are the last word.

mod change;
mod flags;
mod unsupported;

use std::io::Read as _;
use std::rc::Rc;

use cluster_file::{ClusterFile, MAX_BYTES, Parsed, Problems, Step};
use model::resources::HostSize;
use model::{Cluster, Fault, Reason};

use super::{Args, versions};
use crate::core::containers::Source;

pub use change::{Changes, changes, confirm};
pub use flags::{as_flags, over};

/// A file that was read. Read once: standard input is there only once.
#[derive(Debug)]
pub struct Input {
    /// As the user would say it.
    pub path: String,
    pub text: String,
    pub parsed: Parsed,
}

const STDIN: &str = "standard input";

pub fn read(path: &str) -> Result<Rc<Input>, Fault> {
    let (shown, text) = if path == "-" {
        (STDIN, limited(std::io::stdin().lock()))
    } else {
        (path, std::fs::File::open(path).and_then(limited))
    };
    let bytes = text.map_err(|e| Fault::new(Reason::PathMissing, format!("Cannot read {shown}: {e}")))?;
    // Of what is too long, the end was cut off anywhere; the parser is to see the length only.
    let text = if bytes.len() > MAX_BYTES {
        String::from_utf8_lossy(&bytes).into_owned()
    } else {
        String::from_utf8(bytes).map_err(|e| {
            let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = good.iter().filter(|b| **b == b'\n').count() + 1;
            let column = String::from_utf8_lossy(good).chars().rev().take_while(|c| *c != '\n').count() + 1;
            usage(format!("{shown}:{line}:{column}: not a text: this is not UTF-8"))
        })?
    };
    let mut parsed = cluster_file::parse(&text).map_err(|problems| usage(problems.show(shown)))?;
    let dir = std::path::Path::new(path).parent().filter(|_| path != "-");
    parsed.file.anchor(dir.unwrap_or(std::path::Path::new("")));
    Ok(Rc::new(Input { path: shown.to_owned(), text, parsed }))
}

/// One byte more than is allowed, so that the parser sees that it is too much.
fn limited(from: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn usage(message: String) -> Fault {
    Fault::new(Reason::Usage, message)
}

impl Input {
    /// It can be read there no more.
    pub fn is_stdin(&self) -> bool {
        self.path == STDIN
    }

    /// What the file asks for and will not get, as warnings.
    pub fn notes(&self) -> Vec<String> {
        self.parsed.notes.iter().map(|n| n.line(&self.path)).collect()
    }

    /// The text of all manifests, once it is sure that they are some.
    pub fn manifests(&self) -> Result<String, Fault> {
        let mut all = String::new();
        for (index, path) in self.parsed.file.manifests.iter().enumerate() {
            let at = vec![Step::from("manifests"), Step::from(index)];
            let wrong =
                |reason, message: String| self.fault(self.parsed.problem(&at, message).into(), reason);
            if path.contains("://") {
                let message = "manifests are not fetched: give the path of a file".to_owned();
                return Err(wrong(Reason::Unimplemented, message));
            }
            let text = std::fs::read_to_string(path)
                .map_err(|e| wrong(Reason::PathMissing, format!("cannot read {path}: {e}")))?;
            bootstrap::manifest::objects(&text).map_err(|e| {
                let why = format!("{e:#}").split_whitespace().collect::<Vec<_>>().join(" ");
                wrong(Reason::Usage, format!("{path} is no manifest of Kubernetes objects: {why}"))
            })?;
            all.push_str("---\n");
            all.push_str(text.trim_end());
            all.push('\n');
        }
        Ok(all)
    }

    /// What cannot be loaded is said before there is a cluster.
    fn check_images(&self) -> Result<(), Fault> {
        for (index, image) in self.parsed.file.images.iter().enumerate() {
            let at = vec![Step::from("images"), Step::from(index)];
            let wrong = |f: Fault| self.fault(self.parsed.problem(&at, f.message).into(), f.reason);
            match Source::of(image).map_err(wrong)? {
                Source::Stdin => {
                    return Err(wrong(usage("an image of a file is not on standard input".to_owned())));
                }
                Source::File(_) | Source::Named(_) => {}
            }
        }
        Ok(())
    }

    fn fault(&self, problems: Problems, reason: Reason) -> Fault {
        Fault::new(reason, problems.show(&self.path))
    }

    /// The cluster that the file means. `base` has what it does not say, and what flags say instead.
    pub fn resolve(&self, base: &Cluster, host: HostSize, force: bool) -> Result<Cluster, Fault> {
        let wrong = unsupported::unsupported(&self.parsed, base);
        if !wrong.is_empty() {
            return Err(self.fault(Problems::new(wrong), Reason::Unimplemented));
        }
        self.check_images()?;
        let mut file = without_flags(&self.parsed.file);
        file.set_versions(image::resolve_version).map_err(|(path, _)| {
            let asked = file_version(&self.parsed.file, &path);
            let fault = versions::unknown(&asked, &image::known_versions());
            self.fault(self.parsed.problem(&path, fault.message).into(), fault.reason)
        })?;
        let cluster = cluster_file::resolve(&file, base).ok_or_else(|| {
            let pods = file.networking.pod_subnet.unwrap_or(base.network.pod_cidr);
            let ranges = format!("nodes are in {}, and each needs a /24 of {pods}", base.network.subnet);
            usage(format!("There is no room for all nodes of {}: {ranges}", self.path))
        })?;
        if !force {
            fits(&cluster, host)?;
        }
        Ok(cluster)
    }
}

/// What `as_flags` has turned into flags is not said a second time.
fn without_flags(file: &ClusterFile) -> ClusterFile {
    let mut file = file.clone();
    (file.name, file.driver, file.kubernetes_version) = (None, None, None);
    (file.cpus, file.memory, file.disk_size, file.cni) = (None, None, None, None);
    file.networking.node_subnet = None;
    file.networking.service_subnet = None;
    file.networking.dns_domain = None;
    file.api_server.port = None;
    (file.cert_expiration, file.wait) = (None, None);
    file.kubeconfig = cluster_file::KubeconfigSettings::default();
    file
}

fn file_version(file: &ClusterFile, path: &cluster_file::Path) -> String {
    let index = path.iter().find_map(|step| match step {
        cluster_file::Step::Index(index) => Some(*index),
        cluster_file::Step::Key(_) => None,
    });
    let version = match index {
        Some(index) => file.nodes.get(index).and_then(|g| g.kubernetes_version.clone()),
        None => file.kubernetes_version.clone(),
    };
    version.unwrap_or_default()
}

/// Every node by itself; together they may have more than the host, as with flags.
fn fits(cluster: &Cluster, host: HostSize) -> Result<(), Fault> {
    for node in &cluster.nodes {
        let (cpus, memory) = (cluster.node_cpus(node), cluster.node_memory_mib(node));
        let machine = cluster.machine(node);
        if cpus > host.cpus {
            let message = format!("{machine} asks for {cpus} CPUs, and the host has {}", host.cpus);
            return Err(Fault::new(Reason::InsufficientCores, message));
        }
        if memory > host.memory_mib {
            let message = format!("{machine} asks for {memory} MiB, and the host has {}", host.memory_mib);
            return Err(Fault::new(Reason::OverAllocMem, message));
        }
    }
    Ok(())
}

/// Flags that say what only the file can say.
pub fn check_flags(args: &Args) -> Result<(), Fault> {
    let given = [
        ("--nodes", args.nodes.is_some()),
        ("--control-planes", args.control_planes.is_some()),
        ("--ha", args.ha),
        ("--static-ip", args.static_ip.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(usage(format!("{flag} cannot be used together with -f: the file lists the nodes")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
