//! Names of images in registries, and what makes them certain.

use std::fmt;
use std::str::FromStr;

use super::RegistryError;

/// The name of an image in a registry: `registry.example/team/node:v1`, with or without a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference(oci_client::Reference);

impl Reference {
    /// Names in our store have none of these.
    pub fn looks_like_one(text: &str) -> bool {
        text.contains(['/', ':', '@'])
    }

    pub fn host(&self) -> &str {
        self.0.registry()
    }

    /// A registry of this machine needs no encryption, as with docker and containerd.
    pub fn is_local(&self) -> bool {
        let host = self.host().rsplit_once(':').map_or(self.host(), |(host, _)| host);
        host == "localhost" || host == "[::1]" || host.starts_with("127.")
    }

    pub fn digest(&self) -> Option<&str> {
        self.0.digest()
    }

    /// As the engines' API wants them.
    pub fn repository_and_version(&self) -> (String, String) {
        let version = self.0.digest().or(self.0.tag()).unwrap_or("latest");
        (format!("{}/{}", self.0.registry(), self.0.repository()), version.to_owned())
    }

    pub(super) fn inner(&self) -> &oci_client::Reference {
        &self.0
    }
}

impl FromStr for Reference {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<Reference, RegistryError> {
        let parsed = text.parse().map_err(|_| RegistryError::BadReference(text.to_owned()));
        parsed.map(Reference)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.whole().fmt(f)
    }
}

/// A name as somebody wrote it, with the digest it stood for: what a profile remembers.
pub struct Pinned;

impl Pinned {
    pub fn of(asked: &str, digest: &str) -> String {
        format!("{}@{digest}", asked.split('@').next().unwrap_or(asked))
    }

    /// Is `pinned` what became of `asked`?
    pub fn came_from(pinned: &str, asked: &str) -> bool {
        pinned == asked || pinned.strip_prefix(asked).is_some_and(|rest| rest.starts_with('@'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_what_they_say() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let full: Reference = format!("localhost:5000/node:v1@{digest}").parse().expect("a reference");
        assert_eq!((full.host(), full.is_local(), full.digest()), ("localhost:5000", true, Some(&*digest)));
        let other: Reference = "r.example/team/node:v1".parse().expect("a reference");
        assert_eq!((other.host(), other.is_local(), other.digest()), ("r.example", false, None));
        for bad in ["", "R.example/Team", "a b/c", "localhost:5000/", "x@sha256:1"] {
            assert!(bad.parse::<Reference>().is_err(), "{bad}");
        }
        assert!(!Reference::looks_like_one("v1.37.1-0123456789ab"));
        assert!(Reference::looks_like_one("node:v1"));
    }

    #[test]
    fn a_pin_remembers_what_was_asked() {
        let pinned = Pinned::of("r.example/node:v1", "sha256:ab");
        assert_eq!(pinned, "r.example/node:v1@sha256:ab");
        assert!(Pinned::came_from(&pinned, "r.example/node:v1"));
        assert!(Pinned::came_from(&pinned, &pinned));
        assert!(!Pinned::came_from(&pinned, "r.example/node"));
        assert_eq!(Pinned::of(&pinned, "sha256:cd"), "r.example/node:v1@sha256:cd");
    }
}
