//! The certificates of a profile: what is there is kept, what is missing is made,
//! what is stale is made again.

pub mod authority;
mod check;
pub mod docker;
pub mod election;
mod issue;
mod key;
pub mod leaf;
pub mod sans;
mod service_account;
mod ssh;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use model::{Cluster, Home};

pub use issue::Pair;
use leaf::{Leaf, Signer};
pub use service_account::{ServiceAccountKey, restore as restore_signing_key};
pub use ssh::{SshPair, ssh_pair};

/// Everything the nodes of a cluster need to know and to prove who they are.
pub struct Pki {
    pub ca: Pair,
    pub front_proxy_ca: Pair,
    pub etcd_ca: Pair,
    pub service_account: ServiceAccountKey,
    leaves: BTreeMap<String, Pair>,
}

/// What a client on the host needs to be `minikube-user` (system:masters).
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    pub ca: String,
    pub client: Pair,
}

/// Safe to be run by several commands at once, also for different profiles of one home.
pub fn ensure(home: &Home, cluster: &Cluster, now: SystemTime) -> Result<Pki> {
    let _lock = store::lock(&home.root().join("locks/pki.lock"))?;
    let profile = home.profile(&cluster.name);
    let mut pki = Pki {
        ca: authority::CLUSTER.ensure(home, &cluster.name, now)?,
        front_proxy_ca: authority::FRONT_PROXY.ensure(home, &cluster.name, now)?,
        etcd_ca: authority::ensure(&profile.join("pki/etcd-ca"), "etcd-ca", now)?,
        service_account: service_account::ensure(home, cluster)?,
        leaves: BTreeMap::new(),
    };
    for spec in leaf::all(cluster) {
        let pair = pki.ensure_leaf(&profile, &spec, cluster.cert_expiration_hours, now)?;
        pki.leaves.insert(spec.name, pair);
    }
    Ok(pki)
}

/// Certificates as they lie there, made by nobody: for who only looks.
pub struct Found {
    /// With those leaves that are there.
    pub pki: Pki,
    /// Names of leaves that [`ensure`] would make again, or for the first time.
    pub stale: BTreeSet<String>,
    /// One of them has ended already.
    pub ended: bool,
}

/// `None` while there is no authority.
pub fn look(home: &Home, cluster: &Cluster, now: SystemTime) -> Result<Option<Found>> {
    let profile = home.profile(&cluster.name);
    let pair = |base: &Path| {
        let (cert, key) = store::read_pair(base)?;
        anyhow::Ok(cert.zip(key).map(|(cert, key)| Pair { cert, key }))
    };
    let ca = pair(&authority::CLUSTER.base(home, &cluster.name)?)?;
    let front_proxy_ca = pair(&authority::FRONT_PROXY.base(home, &cluster.name)?)?;
    let etcd_ca = pair(&profile.join("pki/etcd-ca"))?;
    let keys = service_account::read(&profile.join("pki/sa"))?;
    let (Some(ca), Some(front_proxy_ca), Some(etcd_ca), (Some(private), Some(public))) =
        (ca, front_proxy_ca, etcd_ca, keys)
    else {
        return Ok(None);
    };
    let service_account = ServiceAccountKey { private, public };
    let pki = Pki { ca, front_proxy_ca, etcd_ca, service_account, leaves: BTreeMap::new() };
    let mut found = Found { pki, stale: BTreeSet::new(), ended: false };
    for spec in leaf::all(cluster) {
        let Some(pair) = pair(&profile.join(&spec.name))? else {
            found.stale.insert(spec.name);
            continue;
        };
        if check::leaf(&spec, &pair, found.pki.signer(&spec), now).is_some() {
            found.stale.insert(spec.name.clone());
            found.ended |= check::has_ended(&pair, now);
        }
        found.pki.leaves.insert(spec.name, pair);
    }
    Ok(Some(found))
}

impl Found {
    /// Does a node that has this certificate need another one?
    pub fn is_stale(&self, leaf: &str) -> bool {
        self.stale.contains(leaf)
    }
}

impl Pki {
    /// A certificate by its name in [`leaf`].
    pub fn leaf(&self, name: &str) -> Result<&Pair> {
        self.leaves.get(name).with_context(|| format!("the cluster has no certificate {name}"))
    }

    pub fn identity(&self) -> Result<Identity> {
        Ok(Identity { ca: self.ca.cert.clone(), client: self.leaf(leaf::CLIENT)?.clone() })
    }

    fn signer(&self, spec: &Leaf) -> &Pair {
        match spec.signer {
            Signer::Cluster => &self.ca,
            Signer::FrontProxy => &self.front_proxy_ca,
            Signer::Etcd => &self.etcd_ca,
        }
    }

    fn ensure_leaf(&self, profile: &Path, spec: &Leaf, hours: u32, now: SystemTime) -> Result<Pair> {
        let ca = self.signer(spec);
        let base = profile.join(&spec.name);
        if let (Some(cert), Some(key)) = store::read_pair(&base)? {
            let pair = Pair { cert, key };
            match check::leaf(spec, &pair, ca, now) {
                None => return Ok(pair),
                Some(why) => tracing::info!(certificate = spec.name, ?why, "make a certificate again"),
            }
        }
        let pair = issue::leaf(spec, ca, hours, now)?;
        store::write_leaf(&store::of_base(&base), &pair)?;
        Ok(pair)
    }
}

impl Identity {
    /// Reads what [`ensure`] made, without looking at anything else.
    pub fn load(home: &Home, profile: &str) -> Result<Identity> {
        let ca = store::read(&authority::certificate_of(home, profile))?;
        let client = store::read_pair(&home.profile(profile).join(leaf::CLIENT))?;
        match (ca, client) {
            (Some(ca), (Some(cert), Some(key))) => Ok(Identity { ca, client: Pair { cert, key } }),
            _ => {
                bail!("profile {profile:?} has no client certificate in {}", home.profile(profile).display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;
    use crate::fixture;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        (dir, home)
    }

    #[test]
    fn what_is_there_is_kept_and_what_is_missing_is_made() {
        let (_dir, home) = home();
        let now = SystemTime::now();
        let one = ensure(&home, &fixture::cluster(1, 0), now).unwrap();
        let two = ensure(&home, &fixture::cluster(1, 1), now).unwrap();
        assert!(one.ca == two.ca && one.etcd_ca == two.etcd_ca);
        assert!(one.service_account.private == two.service_account.private);
        assert!(one.identity().unwrap() == two.identity().unwrap());
        assert!(one.leaf(leaf::APISERVER).unwrap() == two.leaf(leaf::APISERVER).unwrap());
        assert!(one.leaf("pki/nodes/demo-m02/kubelet-client").is_err());
        assert!(two.leaf("pki/nodes/demo-m02/kubelet-client").is_ok());
        assert!(Identity::load(&home, "demo").unwrap() == two.identity().unwrap());
    }

    #[test]
    fn a_new_control_plane_changes_the_apiservers_certificate_only() {
        let (_dir, home) = home();
        let now = SystemTime::now();
        let one = ensure(&home, &fixture::cluster(1, 0), now).unwrap();
        let three = ensure(&home, &fixture::cluster(3, 0), now).unwrap();
        for (name, pair) in &one.leaves {
            assert_eq!(three.leaf(name).unwrap() != pair, name == leaf::APISERVER, "{name}");
        }
    }

    #[test]
    fn leaves_are_renewed_before_they_end() {
        let (_dir, home) = home();
        let now = SystemTime::now();
        let cluster = fixture::cluster(1, 0);
        let old = ensure(&home, &cluster, now).unwrap();
        let kept = ensure(&home, &cluster, now + 1000 * DAY).unwrap();
        let new = ensure(&home, &cluster, now + 1090 * DAY).unwrap();
        assert!(old.leaves == kept.leaves);
        assert!(old.leaves.iter().all(|(name, pair)| new.leaves[name] != *pair));
        assert!(old.ca == new.ca);
    }

    #[test]
    fn who_looks_sees_what_is_to_be_made_again_and_makes_nothing() {
        let (_dir, home) = home();
        let (now, cluster) = (SystemTime::now(), fixture::cluster(1, 0));
        assert!(look(&home, &cluster, now).unwrap().is_none());
        ensure(&home, &cluster, now).unwrap();
        let seen = |cluster: &Cluster, later: u32| {
            let found = look(&home, cluster, now + later * DAY).unwrap().unwrap();
            (found.stale.len(), found.ended)
        };
        assert_eq!(seen(&cluster, 0), (0, false));
        let all = leaf::all(&cluster).len();
        assert_eq!(seen(&cluster, 1090), (all, false));
        assert_eq!(seen(&cluster, 1096), (all, true));
        let named = Cluster { api_names: vec!["other.example".into()], ..cluster.clone() };
        assert_eq!(look(&home, &named, now).unwrap().unwrap().stale, [leaf::APISERVER.to_owned()].into());
        assert_eq!(seen(&cluster, 0), (0, false), "nothing was made");
    }

    #[test]
    fn keys_are_the_owners_alone() {
        let (dir, home) = home();
        ensure(&home, &fixture::cluster(1, 0), SystemTime::now()).unwrap();
        let mode =
            |path: &str| std::fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o777;
        for key in ["profiles/demo/ca.key", "profiles/demo/client.key", "profiles/demo/pki/sa.key"] {
            assert_eq!(mode(key), 0o600, "{key}");
        }
        assert_eq!(mode("profiles/demo/ca.crt"), 0o644);
    }

    #[test]
    fn an_emptied_leaf_is_made_again() {
        let (dir, home) = home();
        let cluster = fixture::cluster(1, 0);
        ensure(&home, &cluster, SystemTime::now()).unwrap();
        std::fs::write(dir.path().join("profiles/demo/client.crt"), "").unwrap();
        let pki = ensure(&home, &cluster, SystemTime::now()).unwrap();
        assert!(pki.identity().unwrap().client.cert.contains("BEGIN CERTIFICATE"));
    }
}
