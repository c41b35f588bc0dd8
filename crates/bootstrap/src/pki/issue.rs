//! Makes certificates: ECDSA P-256 everywhere, because RSA keys cost seconds of a start.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};

use super::key;
use super::leaf::{Leaf, Usage};
use super::sans::San;

/// A certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    pub cert: String,
    pub key: String,
}

/// A node's clock may lag behind ours.
const BACKDATE: Duration = Duration::from_secs(3600);
const HOUR: Duration = Duration::from_secs(3600);
const CA_LIFE: Duration = Duration::from_secs(3652 * 24 * 3600);

pub fn authority(common_name: &str, now: SystemTime) -> Result<Pair> {
    let mut params = base(common_name, None, now, CA_LIFE);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
        KeyUsagePurpose::KeyCertSign,
    ];
    let key = KeyPair::generate().context("generate a key")?;
    let cert = params.self_signed(&key).with_context(|| format!("sign the authority {common_name}"))?;
    Ok(Pair { cert: cert.pem(), key: key.serialize_pem() })
}

pub fn leaf(leaf: &Leaf, ca: &Pair, hours: u32, now: SystemTime) -> Result<Pair> {
    let mut params = base(&leaf.common_name, leaf.organization, now, HOUR * hours);
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = match leaf.usage {
        Usage::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
        Usage::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
        Usage::Both => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
    };
    for san in &leaf.sans {
        params.subject_alt_names.push(match san {
            San::Dns(name) => SanType::DnsName(
                name.as_str()
                    .try_into()
                    .with_context(|| format!("put the name {name:?} into a certificate"))?,
            ),
            San::Ip(ip) => SanType::IpAddress(*ip),
        });
    }
    let signer = key::read(&ca.key).context("read the authority's key")?;
    let issuer = Issuer::from_ca_cert_pem(&ca.cert, signer).context("read the authority's certificate")?;
    let key = KeyPair::generate().context("generate a key")?;
    let cert = params.signed_by(&key, &issuer).with_context(|| format!("sign {}", leaf.name))?;
    Ok(Pair { cert: cert.pem(), key: key.serialize_pem() })
}

/// A key pair that signs service account tokens: (private, public).
pub fn signing_key() -> Result<(String, String)> {
    let key = KeyPair::generate().context("generate a key")?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

fn base(common_name: &str, organization: Option<&str>, now: SystemTime, life: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    params.not_before = (now - BACKDATE).into();
    params.not_after = (now + life).into();
    params
}
