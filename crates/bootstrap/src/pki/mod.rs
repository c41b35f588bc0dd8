//! The certificates of a home and its profiles: what is there is kept, what is missing is made,
//! what is stale is made again.

mod check;
mod issue;
pub mod leaf;
pub mod sans;
mod store;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use model::{Cluster, Home};

pub use issue::Pair;
use leaf::{Leaf, Signer};
use store::Durable;

/// Everything the nodes of a cluster need to know and to prove who they are.
pub struct Pki {
    /// One authority for all profiles of a home, as in minikube.
    pub ca: Pair,
    pub front_proxy_ca: Pair,
    pub etcd_ca: Pair,
    pub service_account: ServiceAccountKey,
    leaves: BTreeMap<String, Pair>,
}

pub struct ServiceAccountKey {
    pub private: String,
    pub public: String,
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
        ca: authority(&home.root().join("ca"), "minikubeCA", now)?,
        front_proxy_ca: authority(&home.root().join("proxy-client-ca"), "proxyClientCA", now)?,
        etcd_ca: authority(&profile.join("pki/etcd-ca"), "etcd-ca", now)?,
        service_account: service_account(&profile.join("pki/sa"))?,
        leaves: BTreeMap::new(),
    };
    for spec in leaf::all(cluster) {
        let pair = pki.ensure_leaf(&profile, &spec, cluster.cert_expiration_hours, now)?;
        pki.leaves.insert(spec.name, pair);
    }
    Ok(pki)
}

impl Pki {
    /// A certificate by its name in [`leaf`].
    pub fn leaf(&self, name: &str) -> Result<&Pair> {
        self.leaves.get(name).with_context(|| format!("the cluster has no certificate {name}"))
    }

    pub fn identity(&self) -> Result<Identity> {
        Ok(Identity { ca: self.ca.cert.clone(), client: self.leaf(leaf::CLIENT)?.clone() })
    }

    fn ensure_leaf(&self, profile: &Path, spec: &Leaf, hours: u32, now: SystemTime) -> Result<Pair> {
        let ca = match spec.signer {
            Signer::Cluster => &self.ca,
            Signer::FrontProxy => &self.front_proxy_ca,
            Signer::Etcd => &self.etcd_ca,
        };
        let base = profile.join(&spec.name);
        if let (Some(cert), Some(key)) = store::read_pair(&base)? {
            let pair = Pair { cert, key };
            match check::leaf(spec, &pair, ca, now) {
                None => return Ok(pair),
                Some(why) => tracing::info!(certificate = spec.name, ?why, "make a certificate again"),
            }
        }
        let pair = issue::leaf(spec, ca, hours, now)?;
        store::write_pair(&base, &pair, Durable::No)?;
        Ok(pair)
    }
}

impl Identity {
    /// Reads what [`ensure`] made, without looking at anything else.
    pub fn load(home: &Home, profile: &str) -> Result<Identity> {
        let (ca, _) = store::read_pair(&home.root().join("ca"))?;
        let client = store::read_pair(&home.profile(profile).join(leaf::CLIENT))?;
        match (ca, client) {
            (Some(ca), (Some(cert), Some(key))) => Ok(Identity { ca, client: Pair { cert, key } }),
            _ => {
                bail!("profile {profile:?} has no client certificate in {}", home.profile(profile).display())
            }
        }
    }
}

/// An authority is never replaced because of a file we cannot read: everything it signed, in all
/// profiles, would be worth nothing. That is for the user to decide.
fn authority(base: &Path, common_name: &str, now: SystemTime) -> Result<Pair> {
    let pair = match store::read_pair(base)? {
        (Some(cert), Some(key)) => Pair { cert, key },
        (None, None) => return new_authority(base, common_name, now),
        (None, _) => bail!("{0}.key is there but {0}.crt is missing", base.display()),
        (_, None) => bail!("{0}.crt is there but {0}.key is missing", base.display()),
    };
    match check::authority_lives(&pair, now) {
        Some(true) => Ok(pair),
        Some(false) => new_authority(base, common_name, now),
        None => bail!("{0}.crt or {0}.key is damaged", base.display()),
    }
}

fn new_authority(base: &Path, common_name: &str, now: SystemTime) -> Result<Pair> {
    let pair = issue::authority(common_name, now)?;
    store::write_pair(base, &pair, Durable::Yes)?;
    Ok(pair)
}

/// Never made again while both halves are there: every token in the cluster is signed with it.
fn service_account(base: &Path) -> Result<ServiceAccountKey> {
    let private = store::read(&base.with_extension("key"))?;
    let public = store::read(&base.with_extension("pub"))?;
    if let Some((private, public)) = private.zip(public) {
        return Ok(ServiceAccountKey { private, public });
    }
    let (private, public) = issue::signing_key()?;
    store::write_signing_key(base, &private, &public)?;
    Ok(ServiceAccountKey { private, public })
}
