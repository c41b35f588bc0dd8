//! Why a certificate on disk must be made again, if it must.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::PublicKeyData;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::{Pem, parse_x509_pem};
use x509_parser::prelude::X509Certificate;

use super::issue::Pair;
use super::key;
use super::leaf::Leaf;
use super::sans::{San, Sans};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stale {
    Unreadable,
    KeyMismatch,
    OtherSigner,
    Expires,
    Subject,
    Sans,
}

/// Leaves that end within a week are renewed while somebody is at the keyboard.
const MARGIN: Duration = Duration::from_secs(7 * 24 * 3600);

pub fn leaf(leaf: &Leaf, pair: &Pair, ca: &Pair, now: SystemTime) -> Option<Stale> {
    let Some((cert_pem, ca_pem)) = pem(&pair.cert).zip(pem(&ca.cert)) else { return Some(Stale::Unreadable) };
    let Some((cert, ca)) = x509(&cert_pem).zip(x509(&ca_pem)) else { return Some(Stale::Unreadable) };
    let Ok(key) = key::read(&pair.key) else { return Some(Stale::Unreadable) };

    if cert.public_key().raw != key.subject_public_key_info() {
        return Some(Stale::KeyMismatch);
    }
    if authority_key_id(&cert).is_none() || authority_key_id(&cert) != subject_key_id(&ca) {
        return Some(Stale::OtherSigner);
    }
    if expires(&cert, now) {
        return Some(Stale::Expires);
    }
    if common_name(&cert) != Some(leaf.common_name.as_str()) {
        return Some(Stale::Subject);
    }
    // One name too many does no harm, and a control plane that left is no reason to give all others a new one.
    (!sans(&cert).is_superset(&leaf.sans)).then_some(Stale::Sans)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    Lives,
    /// Within a month.
    Ends,
    Unreadable,
    /// What the key signs, nobody would believe by this certificate.
    OtherKey,
}

pub fn authority(pair: &Pair, now: SystemTime) -> Authority {
    let Some(pem) = pem(&pair.cert) else { return Authority::Unreadable };
    let (Some(cert), Ok(key)) = (x509(&pem), key::read(&pair.key)) else { return Authority::Unreadable };
    // The key's own bits: others may write its algorithm in another way.
    if *cert.public_key().subject_public_key.data != *key.public_key_raw() {
        return Authority::OtherKey;
    }
    if not_after(&cert) > now + 4 * MARGIN { Authority::Lives } else { Authority::Ends }
}

/// By the name of the key that signed; `None` when one of the two cannot be read.
pub fn is_signed_by(cert: &str, ca: &str) -> Option<bool> {
    let (cert, ca) = (pem(cert)?, pem(ca)?);
    let (cert, ca) = (x509(&cert)?, x509(&ca)?);
    Some(match authority_key_id(&cert).zip(subject_key_id(&ca)) {
        Some((signer, authority)) => signer == authority,
        None => cert.issuer().as_raw() == ca.subject().as_raw(),
    })
}

/// Nobody believes it any more.
pub fn has_ended(pair: &Pair, now: SystemTime) -> bool {
    pem(&pair.cert).is_some_and(|pem| x509(&pem).is_some_and(|cert| not_after(&cert) <= now))
}

/// A certificate of very short life is renewed in its last quarter, not at every look.
fn expires(cert: &X509Certificate<'_>, now: SystemTime) -> bool {
    let life = not_after(cert).duration_since(not_before(cert)).unwrap_or_default();
    not_after(cert) <= now + MARGIN.min(life / 4)
}

fn pem(text: &str) -> Option<Pem> {
    parse_x509_pem(text.as_bytes()).ok().map(|(_, pem)| pem)
}

fn x509(pem: &Pem) -> Option<X509Certificate<'_>> {
    pem.parse_x509().ok()
}

fn time(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds.max(0).unsigned_abs())
}

fn not_after(cert: &X509Certificate<'_>) -> SystemTime {
    time(cert.validity().not_after.timestamp())
}

fn not_before(cert: &X509Certificate<'_>) -> SystemTime {
    time(cert.validity().not_before.timestamp())
}

fn common_name<'a>(cert: &'a X509Certificate<'_>) -> Option<&'a str> {
    cert.subject().iter_common_name().next()?.as_str().ok()
}

fn sans(cert: &X509Certificate<'_>) -> Sans {
    let Ok(Some(extension)) = cert.subject_alternative_name() else { return BTreeSet::new() };
    extension.value.general_names.iter().filter_map(san).collect()
}

fn san(name: &GeneralName<'_>) -> Option<San> {
    match name {
        GeneralName::DNSName(name) => Some(San::Dns((*name).to_owned())),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)).ok().map(San::Ip)
        }
        _ => None,
    }
}

fn authority_key_id(cert: &X509Certificate<'_>) -> Option<Vec<u8>> {
    cert.extensions().iter().find_map(|e| match e.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|k| k.0.to_vec()),
        _ => None,
    })
}

fn subject_key_id(cert: &X509Certificate<'_>) -> Option<Vec<u8>> {
    cert.extensions().iter().find_map(|e| match e.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::issue;
    use super::super::leaf::{APISERVER, all};
    use super::*;
    use crate::fixture;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn apiserver(control_planes: u32) -> Leaf {
        all(&fixture::cluster(control_planes, 0)).into_iter().find(|l| l.name == APISERVER).unwrap()
    }

    fn now() -> SystemTime {
        UNIX_EPOCH + 20_000 * DAY
    }

    #[test]
    fn a_fresh_certificate_is_kept_until_its_last_week() {
        let ca = issue::authority("test", now()).unwrap();
        let spec = apiserver(1);
        let pair = issue::leaf(&spec, &ca, 30 * 24, now()).unwrap();
        assert_eq!(leaf(&spec, &pair, &ca, now()), None);
        assert_eq!(leaf(&spec, &pair, &ca, now() + 22 * DAY), None);
        assert_eq!(leaf(&spec, &pair, &ca, now() + 24 * DAY), Some(Stale::Expires));
        assert_eq!(leaf(&spec, &pair, &ca, now() + 40 * DAY), Some(Stale::Expires));
    }

    #[test]
    fn a_certificate_of_one_day_is_not_renewed_at_once() {
        let ca = issue::authority("test", now()).unwrap();
        let spec = apiserver(1);
        let pair = issue::leaf(&spec, &ca, 24, now()).unwrap();
        assert_eq!(leaf(&spec, &pair, &ca, now()), None);
        assert_eq!(leaf(&spec, &pair, &ca, now() + DAY), Some(Stale::Expires));
    }

    #[test]
    fn what_makes_it_stale() {
        let ca = issue::authority("test", now()).unwrap();
        let other = issue::authority("test", now()).unwrap();
        let spec = apiserver(1);
        let pair = issue::leaf(&spec, &ca, 9000, now()).unwrap();
        let again = issue::leaf(&spec, &ca, 9000, now()).unwrap();
        let check = |spec: &Leaf, pair: &Pair, ca: &Pair| leaf(spec, pair, ca, now());

        assert_eq!(check(&apiserver(2), &pair, &ca), Some(Stale::Sans));
        let wider = issue::leaf(&apiserver(2), &ca, 9000, now()).unwrap();
        assert_eq!(check(&spec, &wider, &ca), None);
        assert_eq!(check(&spec, &pair, &other), Some(Stale::OtherSigner));
        assert_eq!(check(&spec, &Pair { key: again.key, ..pair.clone() }, &ca), Some(Stale::KeyMismatch));
        assert_eq!(
            check(&spec, &Pair { cert: "half a fi".into(), ..pair.clone() }, &ca),
            Some(Stale::Unreadable)
        );
        let renamed = Leaf { common_name: "x".into(), ..spec };
        assert_eq!(check(&renamed, &pair, &ca), Some(Stale::Subject));
    }

    #[test]
    fn an_authority_lives_ten_years() {
        let ca = issue::authority("test", now()).unwrap();
        assert_eq!(authority(&ca, now() + 3600 * DAY), Authority::Lives);
        assert_eq!(authority(&ca, now() + 3651 * DAY), Authority::Ends);
        assert_eq!(authority(&Pair { cert: String::new(), ..ca.clone() }, now()), Authority::Unreadable);
        let other = issue::authority("test", now()).unwrap();
        let mixed = Pair { key: other.key, ..ca };
        assert_eq!(authority(&mixed, now()), Authority::OtherKey);
        assert_eq!(authority(&mixed, now() + 3651 * DAY), Authority::OtherKey);
    }
}
