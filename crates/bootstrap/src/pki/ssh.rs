//! A key pair for SSH: the same kind of key as everywhere here, in the forms that OpenSSH reads.

use anyhow::{Context, Result};
use rcgen::KeyPair;

use crate::kubeconfig::base64;

const KIND: &str = "ecdsa-sha2-nistp256";
const CURVE: &str = "nistp256";

pub struct SshPair {
    /// PEM.
    pub private: String,
    /// One line: the kind, the key, a comment.
    pub public: String,
}

pub fn ssh_pair(comment: &str) -> Result<SshPair> {
    let key = KeyPair::generate().context("generate a key")?;
    let blob: Vec<u8> =
        [KIND.as_bytes(), CURVE.as_bytes(), key.public_key_raw()].into_iter().flat_map(counted).collect();
    let text = base64(&blob);
    let text = text.as_str().unwrap_or_default();
    Ok(SshPair { private: key.serialize_pem(), public: format!("{KIND} {text} {comment}\n") })
}

/// RFC 4251's string: its length, then its bytes.
fn counted(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length, bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_key_says_its_kind_twice() {
        let pair = ssh_pair("docker@demo").expect("a key");
        let words: Vec<&str> = pair.public.split_whitespace().collect();
        assert_eq!((words[0], words[2]), (KIND, "docker@demo"));
        // 4 + 19 bytes of kind, 4 + 8 of curve, 4 + 65 of an uncompressed point.
        assert_eq!(words[1].len(), usize::div_ceil(104, 3) * 4);
        assert!(
            words[1].starts_with("AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBB"),
            "{}",
            words[1]
        );
        assert!(pair.private.starts_with("-----BEGIN PRIVATE KEY-----"));
    }
}
