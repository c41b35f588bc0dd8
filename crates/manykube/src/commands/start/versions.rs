//! Which Kubernetes a cluster gets. Pure; what can be had comes in as an argument.

use model::{Fault, Reason};

/// (major, minor, patch); a missing part is `None`.
fn parts(version: &str) -> Option<(u32, u32, Option<u32>)> {
    let text = version.strip_prefix('v').unwrap_or(version);
    // A suffix like -rc.1 or +build says nothing about age.
    let text = text.split(['-', '+']).next()?;
    let mut numbers = text.split('.').map(|p| p.parse().ok());
    let (major, minor) = (numbers.next()??, numbers.next()??);
    let patch = match numbers.next() {
        Some(patch) => Some(patch?),
        None => None,
    };
    numbers.next().is_none().then_some((major, minor, patch))
}

/// The version that is meant by `1.36` or `stable`.
pub fn resolve(asked: &str) -> Result<String, Fault> {
    image::resolve_version(asked).map_err(|_| unknown(asked, &image::known_versions()))
}

/// Why no node image is known for the version asked for. `known` is newest first.
pub fn unknown(asked: &str, known: &[&str]) -> Fault {
    let advice = format!("Known versions: {}", known.join(", "));
    let Some((major, minor, _)) = parts(asked) else {
        return Fault::new(Reason::Usage, format!("Unable to parse {asked:?}: not a Kubernetes version"))
            .advice(advice);
    };
    let minor_of = |v: Option<&&str>| v.and_then(|v| parts(v)).map(|(major, minor, _)| (major, minor));
    let (newest, oldest) = (minor_of(known.first()), minor_of(known.last()));
    let fault = if oldest.is_some_and(|o| (major, minor) < o) {
        let oldest = known.last().unwrap_or(&"");
        Fault::new(
            Reason::OldUnsupported,
            format!("Kubernetes {asked} is not supported: the oldest version is {oldest}"),
        )
    } else if newest.is_some_and(|n| (major, minor) > n) {
        let newest = known.first().unwrap_or(&"");
        Fault::new(
            Reason::NewUnsupported,
            format!("Kubernetes {asked} is not supported: the newest version is {newest}"),
        )
    } else {
        Fault::new(Reason::VersionUnavailable, format!("Kubernetes {asked} is not available"))
    };
    fault.advice(advice)
}

/// A running cluster keeps its version, for now; it never goes back.
pub fn check_change(profile: &str, old: &str, new: &str) -> Result<(), Fault> {
    if old == new {
        return Ok(());
    }
    if parts(new) < parts(old) {
        let message = format!("Unable to safely downgrade existing Kubernetes {old} cluster to {new}");
        return Err(Fault::new(Reason::DowngradeUnsupported, message).advice(format!(
            "Delete the cluster \"{profile}\" first, or make a second one with another -p"
        )));
    }
    Err(Fault::new(
        Reason::Unimplemented,
        format!("Changing the cluster from Kubernetes {old} to {new} is not supported yet"),
    )
    .advice(format!("Leave --kubernetes-version out, or delete the cluster \"{profile}\" first")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_versions_have_minikubes_reasons() {
        let known = ["v1.37.1", "v1.36.4", "v1.35.4"];
        for (asked, code) in [
            ("v1.20.0", 106),
            ("1.34", 106),
            ("v1.38.0", 106),
            ("v2.0.0", 106),
            ("v1.37.9", 49),
            ("v1.36.0-rc.1", 49),
            ("banana", 14),
            ("v1", 14),
            ("v1.2.3.4", 14),
            ("", 14),
        ] {
            assert_eq!(unknown(asked, &known).reason.exit_code(), code, "{asked}");
        }
    }

    #[test]
    fn versions_only_stay() {
        assert!(check_change("p", "v1.36.4", "v1.36.4").is_ok());
        assert_eq!(check_change("p", "v1.36.4", "v1.35.9").unwrap_err().reason, Reason::DowngradeUnsupported);
        assert_eq!(check_change("p", "v1.36.4", "v1.37.1").unwrap_err().reason, Reason::Unimplemented);
    }
}
