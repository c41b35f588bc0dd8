//! The certificates of a home and its profiles: what is there is kept, what is missing is made,
//! what is stale is made again.

mod check;
pub mod docker;
pub mod election;
mod issue;
mod key;
pub mod leaf;
pub mod sans;
mod ssh;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use check::Authority;
use model::{Cluster, Fault, Home, Reason};

pub use issue::Pair;
use leaf::{Leaf, Signer};
pub use ssh::{SshPair, ssh_pair};

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
    let ca = pair(&home.root().join("ca"))?;
    let front_proxy_ca = pair(&home.root().join("proxy-client-ca"))?;
    let etcd_ca = pair(&profile.join("pki/etcd-ca"))?;
    let sa = profile.join("pki/sa");
    let keys = (store::read(&sa.with_extension("key"))?, store::read(&sa.with_extension("pub"))?);
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
        let ca = store::read(&authority_of(home, profile))?;
        let client = store::read_pair(&home.profile(profile).join(leaf::CLIENT))?;
        match (ca, client) {
            (Some(ca), (Some(cert), Some(key))) => Ok(Identity { ca, client: Pair { cert, key } }),
            _ => {
                bail!("profile {profile:?} has no client certificate in {}", home.profile(profile).display())
            }
        }
    }
}

/// The certificate of who signed what a profile has: the home's own, but for a profile that is a copy of one elsewhere.
pub fn authority_of(home: &Home, profile: &str) -> PathBuf {
    let copied = home.profile(profile).join("ca.crt");
    if copied.exists() { copied } else { home.root().join("ca.crt") }
}

/// An authority is never replaced because of a file we cannot read: everything it signed, in all
/// profiles, would be worth nothing. That is for the user to decide.
fn authority(base: &Path, common_name: &str, now: SystemTime) -> Result<Pair> {
    store::finish_authority(&store::of_base(base))?;
    let at = base.display();
    let pair = match store::read_pair(base)? {
        (Some(cert), Some(key)) => Pair { cert, key },
        (None, None) => return new_authority(base, common_name, now),
        (None, _) => return Err(unusable(base, format!("{at}.key is there but {at}.crt is missing"))),
        (_, None) => return Err(unusable(base, format!("{at}.crt is there but {at}.key is missing"))),
    };
    match check::authority(&pair, now) {
        Authority::Lives => Ok(pair),
        Authority::Ends => new_authority(base, common_name, now),
        Authority::Unreadable => Err(unusable(base, format!("{at}.crt or {at}.key is damaged"))),
        Authority::OtherKey => Err(unusable(base, format!("{at}.crt and {at}.key do not belong together"))),
    }
}

fn unusable(base: &Path, message: String) -> anyhow::Error {
    let at = base.display();
    let advice = format!(
        "Put back the one that was there before. Without {at}.crt and {at}.key new ones are made, and all clusters of this home get new certificates"
    );
    Fault::new(Reason::GuestStart, message).advice(advice).into()
}

fn new_authority(base: &Path, common_name: &str, now: SystemTime) -> Result<Pair> {
    let pair = issue::authority(common_name, now)?;
    store::write_authority(&store::of_base(base), &pair)?;
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
    fn profiles_share_one_authority_however_many_start_at_once() {
        let (_dir, home) = home();
        let started: Vec<Pki> = std::thread::scope(|scope| {
            let start = |i| {
                let cluster = Cluster { name: format!("p{i}"), ..fixture::cluster(1, 0) };
                let home = &home;
                scope.spawn(move || ensure(home, &cluster, SystemTime::now()).unwrap())
            };
            let threads: Vec<_> = (0..4).map(start).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(started.iter().all(|p| p.ca == started[0].ca));
        assert!(started[0].etcd_ca != started[1].etcd_ca);
    }

    #[test]
    fn keys_are_the_owners_alone() {
        let (dir, home) = home();
        ensure(&home, &fixture::cluster(1, 0), SystemTime::now()).unwrap();
        let mode =
            |path: &str| std::fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o777;
        for key in ["ca.key", "profiles/demo/client.key", "profiles/demo/pki/sa.key"] {
            assert_eq!(mode(key), 0o600, "{key}");
        }
        assert_eq!(mode("ca.crt"), 0o644);
    }

    #[test]
    fn a_damaged_authority_is_never_replaced() {
        let (dir, home) = home();
        let cluster = fixture::cluster(1, 0);
        ensure(&home, &cluster, SystemTime::now()).unwrap();
        std::fs::write(dir.path().join("ca.crt"), "half").unwrap();
        let error = ensure(&home, &cluster, SystemTime::now()).err().unwrap().to_string();
        assert!(error.ends_with("ca.key is damaged"), "{error}");
        std::fs::remove_file(dir.path().join("ca.crt")).unwrap();
        std::fs::write(dir.path().join("ca.key.tmp"), "half").unwrap();
        std::fs::write(dir.path().join("ca.crt.tmp"), "half").unwrap();
        let error = ensure(&home, &cluster, SystemTime::now()).err().unwrap().to_string();
        assert!(error.ends_with("ca.crt is missing"), "{error}");
    }

    #[test]
    fn an_authority_with_anothers_key_signs_nothing() {
        let (dir, home) = home();
        let cluster = fixture::cluster(1, 0);
        let made = ensure(&home, &cluster, SystemTime::now()).unwrap();
        let other = issue::authority("minikubeCA", SystemTime::now()).unwrap();
        std::fs::write(dir.path().join("ca.crt"), other.cert).unwrap();
        let error = ensure(&home, &cluster, SystemTime::now()).err().unwrap();
        assert!(error.to_string().contains("do not belong together"), "{error}");
        assert!(error.downcast_ref::<Fault>().unwrap().advice.is_some());
        std::fs::write(dir.path().join("ca.crt"), &made.ca.cert).unwrap();
        assert!(ensure(&home, &cluster, SystemTime::now()).unwrap().leaves == made.leaves);
    }

    #[test]
    fn a_copy_of_a_profile_has_its_own_authority() {
        let (dir, home) = home();
        ensure(&home, &fixture::cluster(1, 0), SystemTime::now()).unwrap();
        assert_eq!(authority_of(&home, "demo"), dir.path().join("ca.crt"));
        let copied = home.profile("demo").join("ca.crt");
        std::fs::write(&copied, "theirs").unwrap();
        assert_eq!(authority_of(&home, "demo"), copied);
        assert_eq!(Identity::load(&home, "demo").unwrap().ca, "theirs");
    }

    /// Killed between the two files.
    #[test]
    fn half_an_authority_is_finished() {
        let (dir, home) = home();
        let cluster = fixture::cluster(1, 0);
        let made = ensure(&home, &cluster, SystemTime::now()).unwrap();
        std::fs::rename(dir.path().join("ca.crt"), dir.path().join("ca.crt.tmp")).unwrap();
        assert!(ensure(&home, &cluster, SystemTime::now()).unwrap().ca == made.ca);
        assert!(!dir.path().join("ca.crt.tmp").exists());
    }

    /// As minikube makes it: RSA, the key in its older form.
    #[test]
    fn an_authority_of_minikubes_is_used() {
        let (dir, home) = home();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let openssl = |args: &[&str]| {
            let made = std::process::Command::new("openssl").args(args).output().unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        };
        openssl(&["genrsa", "-traditional", "-out", &path("ca.key"), "2048"]);
        let (key, cert) = (path("ca.key"), path("ca.crt"));
        openssl(&[
            "req",
            "-x509",
            "-new",
            "-key",
            &key,
            "-subj",
            "/CN=minikubeCA",
            "-days",
            "3650",
            "-out",
            &cert,
        ]);
        let before = std::fs::read(path("ca.key")).unwrap();
        assert!(before.starts_with(b"-----BEGIN RSA PRIVATE KEY"));
        let cluster = fixture::cluster(1, 0);
        let one = ensure(&home, &cluster, SystemTime::now()).unwrap();
        let two = ensure(&home, &cluster, SystemTime::now()).unwrap();
        assert!(one.leaves == two.leaves, "what it signed is found good");
        assert_eq!(std::fs::read(path("ca.key")).unwrap(), before);
        openssl(&["verify", "-CAfile", &path("ca.crt"), &path("profiles/demo/client.crt")]);
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
