//! The key pair that signs the tokens of service accounts.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use model::{Cluster, Fault, Home, Reason};

use super::{issue, key, leaf, store};
use crate::paths;

pub struct ServiceAccountKey {
    pub private: String,
    pub public: String,
}

/// Never made again for a cluster that is there: every token in it is signed with it, and a control plane that has another
/// one refuses them.
pub fn ensure(home: &Home, cluster: &Cluster) -> Result<ServiceAccountKey> {
    let base = base(home, cluster);
    let pair = match read(&base)? {
        (Some(private), Some(public)) => return Ok(ServiceAccountKey { private, public }),
        (Some(private), None) => of_private(private)?,
        (None, public) if is_lost(home, cluster, public.as_deref()) => return Err(lost(&base).into()),
        _ => {
            let (private, public) = issue::signing_key()?;
            ServiceAccountKey { private, public }
        }
    };
    store::write_signing_key(&base, &pair.private, &pair.public)?;
    Ok(pair)
}

/// One that was lost is taken from a control plane. `read_node` gives a file of a machine, by the path in the node.
pub fn restore(
    home: &Home,
    cluster: &Cluster,
    read_node: &dyn Fn(&str, &str) -> Option<Vec<u8>>,
) -> Result<()> {
    let base = base(home, cluster);
    let (private, public) = read(&base)?;
    if private.is_some() || !is_lost(home, cluster, public.as_deref()) {
        return Ok(());
    }
    let mut kept = cluster.control_planes().filter_map(|node| {
        let key = read_node(&cluster.machine(node), &format!("{}/sa.key", paths::CERTS))?;
        of_private(String::from_utf8(key).ok()?).ok()
    });
    match kept.find(|pair| public.as_ref().is_none_or(|public| *public == pair.public)) {
        Some(pair) => store::write_signing_key(&base, &pair.private, &pair.public),
        None => Ok(()),
    }
}

fn base(home: &Home, cluster: &Cluster) -> PathBuf {
    home.profile(&cluster.name).join("pki/sa")
}

/// The certificates are made after it.
fn is_lost(home: &Home, cluster: &Cluster, public: Option<&str>) -> bool {
    public.is_some() || home.profile(&cluster.name).join(leaf::ADMIN).with_extension("crt").exists()
}

/// `(private, public)`, whichever exist.
pub fn read(base: &Path) -> Result<(Option<String>, Option<String>)> {
    Ok((store::read(&base.with_extension("key"))?, store::read(&base.with_extension("pub"))?))
}

fn of_private(private: String) -> Result<ServiceAccountKey> {
    let public = key::read(&private).context("read the key of the service accounts")?.public_key_pem();
    Ok(ServiceAccountKey { private, public })
}

fn lost(base: &Path) -> Fault {
    let at = base.display();
    let message =
        format!("{at}.key, which signs the tokens of the cluster, is lost, and no control plane has it");
    Fault::new(Reason::GuestStart, message)
        .advice("Put the file back, or delete the cluster and start a new one: no token in it would be good with another key")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_lost_half_is_restored_and_never_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let (home, cluster) = (Home::new(dir.path(), None), fixture::cluster(1, 0));
        let made = super::super::ensure(&home, &cluster, std::time::SystemTime::now()).unwrap();
        let made = made.service_account;
        let at = |name: &str| home.profile("demo").join("pki").join(name);
        let lose = |names: &[&str]| names.iter().for_each(|name| std::fs::remove_file(at(name)).unwrap());
        let now = || ensure(&home, &cluster).map(|pair| (pair.private, pair.public));
        let before = (made.private.clone(), made.public.clone());

        lose(&["sa.pub"]);
        assert_eq!(now().unwrap(), before, "by the other half");
        lose(&["sa.key"]);
        assert!(now().unwrap_err().downcast_ref::<Fault>().unwrap().message.contains("is lost"));
        lose(&["sa.pub"]);
        assert!(now().is_err(), "the cluster has certificates");

        let restore_from = |key: &str| {
            restore(&home, &cluster, &|machine, path| {
                assert_eq!((machine, path), ("demo", "/var/lib/minikube/certs/sa.key"));
                Some(key.into())
            })
        };
        restore_from("half").unwrap();
        assert!(now().is_err());
        restore_from(&made.private).unwrap();
        assert_eq!(now().unwrap(), before, "by a control plane");
        assert!(at("sa.key").exists() && at("sa.pub").exists());
    }
}
