//! Reads private keys: ours, and those of an authority that minikube made.

use anyhow::{Context, Result};
use rcgen::KeyPair;
use x509_parser::pem::parse_x509_pem;

/// The older form of RSA keys, which Go writes and which our library knows only inside of the newer one.
const PKCS1: &str = "RSA PRIVATE KEY";
const RSA_ENCRYPTION: [u64; 7] = [1, 2, 840, 113_549, 1, 1, 1];

pub fn read(pem: &str) -> Result<KeyPair> {
    let (_, parsed) = parse_x509_pem(pem.as_bytes()).context("read a key")?;
    let der = if parsed.label == PKCS1 { in_pkcs8(&parsed.contents) } else { parsed.contents };
    KeyPair::try_from(der).context("read a key")
}

fn in_pkcs8(pkcs1: &[u8]) -> Vec<u8> {
    yasna::construct_der(|writer| {
        writer.write_sequence(|key| {
            key.next().write_u8(0);
            key.next().write_sequence(|algorithm| {
                algorithm.next().write_oid(&yasna::models::ObjectIdentifier::from_slice(&RSA_ENCRYPTION));
                algorithm.next().write_null();
            });
            key.next().write_bytes(pkcs1);
        });
    })
}
