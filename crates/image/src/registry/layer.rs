//! What a manifest says of a layer, as far as it is believed.

use oci_client::manifest::OciDescriptor;

use super::RegistryError;
use super::documents::TITLE;

/// A layer to fetch. The addresses elsewhere that a manifest may give for it are left out: root's client asks the
/// registry that the user named and no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// For the user's eyes.
    pub name: String,
    pub digest: String,
    pub size: u64,
}

impl Wanted {
    pub fn read(layer: &OciDescriptor) -> Result<Wanted, RegistryError> {
        let hex = hex_of(&layer.digest).ok_or_else(|| RegistryError::NotADigest(layer.digest.clone()))?;
        let size = u64::try_from(layer.size).map_err(|_| RegistryError::NotOurs)?;
        let title = layer.annotations.as_ref().and_then(|a| a.get(TITLE));
        let plain = title.filter(|t| t.len() <= 40 && t.bytes().all(|b| b.is_ascii_graphic()));
        let name = plain.cloned().unwrap_or_else(|| hex.chars().take(12).collect());
        Ok(Wanted { name, digest: layer.digest.clone(), size })
    }

    /// What the file is called that it is kept in.
    pub fn file_name(&self) -> &str {
        hex_of(&self.digest).unwrap_or("layer")
    }
}

/// A digest becomes part of a path: it must be one.
fn hex_of(digest: &str) -> Option<&str> {
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    digest.strip_prefix("sha256:").filter(|h| h.len() == 64 && h.bytes().all(is_hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(digest: &str) -> OciDescriptor {
        OciDescriptor { digest: digest.to_owned(), size: 7, ..OciDescriptor::default() }
    }

    #[test]
    fn only_a_digest_names_a_file() {
        let hex = "0123456789abcdef".repeat(4);
        let good = Wanted::read(&layer(&format!("sha256:{hex}"))).expect("a layer");
        assert_eq!((good.file_name(), &*good.name, good.size), (&*hex, "0123456789ab", 7));
        let upper = format!("sha256:{}", hex.to_uppercase());
        for bad in
            ["", "sha256:", "sha256:/etc/cron.d/x", "sha256:../../x", &hex, &upper, &format!("sha512:{hex}")]
        {
            assert!(matches!(Wanted::read(&layer(bad)), Err(RegistryError::NotADigest(_))), "{bad}");
        }
    }

    #[test]
    fn a_title_does_not_write_to_the_terminal() {
        let mut layer = layer(&format!("sha256:{}", "0".repeat(64)));
        for (title, shown) in [("state", "state"), ("\x1b[2Jx", "000000000000"), ("a b", "000000000000")] {
            layer.annotations = Some([(TITLE.to_owned(), title.to_owned())].into());
            assert_eq!(Wanted::read(&layer).expect("a layer").name, shown);
        }
    }
}
