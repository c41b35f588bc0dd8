//! Which versions of Kubernetes work together: https://kubernetes.io/releases/version-skew-policy/

/// How many minor versions a kubelet may be older than the API server.
pub const KUBELET_MINORS: u64 = 3;

/// (major, minor) of `v1.36.2`, `1.36` or `v1.36`; `None` for words like `stable`.
pub fn minor(version: &str) -> Option<(u64, u64)> {
    let text = version.strip_prefix('v').unwrap_or(version);
    let mut parts = text.split(['-', '+']).next()?.split('.');
    let minor = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let patch = parts.next().is_none_or(|p| p.parse::<u64>().is_ok());
    (patch && parts.next().is_none()).then_some(minor)
}

/// May a node run `node` in a cluster of `cluster`? The error names the rule.
pub fn check(cluster: &str, node: &str, control_plane: bool) -> Result<(), String> {
    if cluster == node {
        return Ok(());
    }
    if control_plane {
        return Err(format!(
            "a control plane runs the cluster's Kubernetes {cluster}, not {node}: only workers may differ"
        ));
    }
    match (minor(cluster), minor(node)) {
        (Some((major, api)), Some((other, kubelet))) if major == other && kubelet <= api => {
            let behind = api - kubelet;
            if behind <= KUBELET_MINORS {
                return Ok(());
            }
            Err(format!(
                "a kubelet may be up to {KUBELET_MINORS} minor versions older than the API server: \
                 {node} is {behind} older than {cluster}"
            ))
        }
        (Some(_), Some(_)) => {
            Err(format!("a kubelet may not be newer than the API server: {node} is newer than {cluster}"))
        }
        // A word like `stable`: which version it is, is known only where it is resolved.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy() {
        for (node, control_plane, good) in [
            ("v1.37.1", true, true),
            ("v1.36.0", true, false),
            ("v1.37.0", false, true),
            ("1.34", false, true),
            ("v1.33.9", false, false),
            ("v1.38.0", false, false),
            ("v2.0.0", false, false),
            ("stable", false, true),
        ] {
            assert_eq!(check("v1.37.1", node, control_plane).is_ok(), good, "{node} {control_plane}");
        }
        assert!(check("v1.37.1", "v1.33.0", false).unwrap_err().contains("3 minor versions"));
        assert_eq!(minor("v1.36.0-rc.1"), Some((1, 36)));
        for bad in ["", "v1", "1.2.3.4", "stable", "1.x", "1.2.x"] {
            assert_eq!(minor(bad), None, "{bad}");
        }
    }
}
