//! The authorities of a cluster. Each cluster has its own, so that an administrator of one has no rights in another.
//!
//! Earlier versions had one for all profiles of a home, as minikube has. A cluster that began with that one goes on with
//! it, from a copy beside what it signed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;
use model::{Fault, Home, Reason};

use super::issue::{self, Pair};
use super::{check, leaf, store};

/// An authority that once was the home's.
pub struct Kind {
    /// Of its files, without `.crt` and `.key`.
    file: &'static str,
    common_name: &'static str,
    /// One that it signed.
    signed: &'static str,
}

pub const CLUSTER: Kind = Kind { file: "ca", common_name: "minikubeCA", signed: leaf::CLIENT };
pub const FRONT_PROXY: Kind =
    Kind { file: "proxy-client-ca", common_name: "proxyClientCA", signed: leaf::FRONT_PROXY_CLIENT };

impl Kind {
    fn own(&self, home: &Home, profile: &str) -> PathBuf {
        home.profile(profile).join(self.file)
    }

    fn homes(&self, home: &Home) -> PathBuf {
        home.root().join(self.file)
    }

    /// Is there a cluster that began with the home's? It has certificates, and no authority beside them.
    fn is_inherited(&self, home: &Home, profile: &str) -> Result<bool> {
        if exists(&self.own(home, profile)) || !exists(&self.homes(home)) {
            return Ok(false);
        }
        let (signed, _) = store::read_pair(&home.profile(profile).join(self.signed))?;
        let (authority, _) = store::read_pair(&self.homes(home))?;
        // What cannot be read is for the user to mend.
        let anothers = |signed: &String| {
            authority.as_ref().is_some_and(|ca| check::is_signed_by(signed, ca) == Some(false))
        };
        Ok(signed.is_some_and(|signed| !anothers(&signed)))
    }

    /// Where it lies now, without `.crt` and `.key`.
    pub fn base(&self, home: &Home, profile: &str) -> Result<PathBuf> {
        let inherited = self.is_inherited(home, profile)?;
        Ok(if inherited { self.homes(home) } else { self.own(home, profile) })
    }

    pub fn ensure(&self, home: &Home, profile: &str, now: SystemTime) -> Result<Pair> {
        let own = self.own(home, profile);
        store::finish_authority(&store::of_base(&own))?;
        if self.is_inherited(home, profile)?
            && let Some(pair) = living(&self.homes(home), now)?
        {
            store::write_authority(&store::of_base(&own), &pair)?;
        }
        ensure(&own, self.common_name, now)
    }
}

fn exists(base: &Path) -> bool {
    store::of_base(base).iter().any(|file| file.exists())
}

/// The certificate of the authority that signed what a profile has.
pub fn certificate_of(home: &Home, profile: &str) -> PathBuf {
    let own = CLUSTER.own(home, profile).with_extension("crt");
    if own.exists() { own } else { CLUSTER.homes(home).with_extension("crt") }
}

/// One that ends is replaced, and so is all that it signed.
pub fn ensure(base: &Path, common_name: &str, now: SystemTime) -> Result<Pair> {
    store::finish_authority(&store::of_base(base))?;
    if let Some(pair) = living(base, now)? {
        return Ok(pair);
    }
    let pair = issue::authority(common_name, now)?;
    store::write_authority(&store::of_base(base), &pair)?;
    Ok(pair)
}

/// `None` when there is none, or one that ends. It is never replaced because of a file that we cannot read: everything
/// that it signed would be worth nothing. That is for the user to decide.
fn living(base: &Path, now: SystemTime) -> Result<Option<Pair>> {
    let at = base.display();
    let pair = match store::read_pair(base)? {
        (Some(cert), Some(key)) => Pair { cert, key },
        (None, None) => return Ok(None),
        (None, _) => return Err(unusable(base, format!("{at}.key is there but {at}.crt is missing"))),
        (_, None) => return Err(unusable(base, format!("{at}.crt is there but {at}.key is missing"))),
    };
    match check::authority(&pair, now) {
        check::Authority::Lives => Ok(Some(pair)),
        check::Authority::Ends => Ok(None),
        check::Authority::Unreadable => Err(unusable(base, format!("{at}.crt or {at}.key is damaged"))),
        check::Authority::OtherKey => {
            Err(unusable(base, format!("{at}.crt and {at}.key do not belong together")))
        }
    }
}

fn unusable(base: &Path, message: String) -> anyhow::Error {
    let at = base.display();
    let advice = format!(
        "Put back the one that was there before. Without {at}.crt and {at}.key new ones are made, and all that they signed gets new certificates"
    );
    Fault::new(Reason::GuestStart, message).advice(advice).into()
}

#[cfg(test)]
#[path = "authority_tests.rs"]
mod tests;
