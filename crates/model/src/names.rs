//! Names of profiles, nodes and machines, by minikube's rules.

/// The name of the name that every kubeconfig inside a cluster points to.
pub const CONTROL_PLANE_HOST: &str = "control-plane.minikube.internal";
/// The host, seen from a node.
pub const HOST_HOST: &str = "host.minikube.internal";

const RESERVED: [&str; 10] =
    ["start", "stop", "status", "delete", "config", "open", "profile", "addons", "cache", "logs"];

/// Machine name = container name = hostname = Kubernetes node name.
pub fn machine(profile: &str, node: &str) -> String {
    if node.is_empty() { profile.to_owned() } else { format!("{profile}-{node}") }
}

/// `m02` for the second node, `m03` for the third. The first has no name of its own.
pub fn node(number: u32) -> String {
    if number <= 1 { String::new() } else { format!("m{number:02}") }
}

/// The number in a node's name; the unnamed first node is 1.
pub fn node_number(name: &str) -> Option<u32> {
    if name.is_empty() {
        return Some(1);
    }
    name.strip_prefix('m').filter(|d| d.len() >= 2 && d.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

/// Could this be the name of a machine of that profile?
pub fn belongs(profile: &str, machine: &str) -> bool {
    machine == profile
        || machine
            .strip_prefix(profile)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|node| !node.is_empty() && node_number(node).is_some())
}

/// A name that a user gives to a node: one DNS label, and not that of the first node, which has none.
pub fn is_valid_node(name: &str) -> bool {
    (1..=22).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && node_number(name).is_none_or(|number| number > 1)
}

/// DNS-label-like: letters, digits, inner dashes, dots between labels; at least two characters.
pub fn is_valid_profile(name: &str) -> bool {
    let label = |l: &str| {
        !l.is_empty()
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    (2..=40).contains(&name.len()) && name.split('.').all(label)
}

pub fn is_reserved_profile(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// What the kernel allows for the name of an interface.
const INTERFACE_MAX: usize = 15;

/// A name that is a hash of what it stands for.
pub fn tagged(prefix: &str, what: &str) -> String {
    format!("{prefix}{:010x}", hash(what) >> 24).chars().take(INTERFACE_MAX).collect()
}

/// FNV-1a: the same in every version of this program, which names on a host must be.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_named_as_in_minikube() {
        assert_eq!(machine("ha-demo", ""), "ha-demo");
        assert_eq!(machine("ha-demo", "m02"), "ha-demo-m02");
        assert_eq!(node(1), "");
        assert_eq!(node(2), "m02");
        assert_eq!(node(103), "m103");
        assert_eq!(node_number("m02"), Some(2));
        assert_eq!(node_number("m2"), None);
        assert_eq!(node_number("worker"), None);
    }

    #[test]
    fn machines_belong_to_their_profile_only() {
        assert!(belongs("demo", "demo") && belongs("demo", "demo-m02"));
        assert!(!belongs("demo", "demo-two") && !belongs("demo", "demo2") && !belongs("demo", "demo-"));
    }

    #[test]
    fn node_names() {
        for good in ["m02", "node2", "w", "gpu-1"] {
            assert!(is_valid_node(good), "{good}");
        }
        for bad in ["", "m01", "m00", "Node", "a.b", "-a", "a-", "../x", &"x".repeat(23)] {
            assert!(!is_valid_node(bad), "{bad}");
        }
    }

    #[test]
    fn profile_names() {
        for good in ["minikube", "ha-demo", "p1", "a.b", "A1"] {
            assert!(is_valid_profile(good), "{good}");
        }
        for bad in ["", "a", "-a", "a-", "a..b", "a/b", "ä1", "a b", "../x", "x.", &"x".repeat(60)] {
            assert!(!is_valid_profile(bad), "{bad}");
        }
    }

    #[test]
    fn interfaces_fit_the_kernel() {
        let name = tagged("mkv-", "/root/.manykube:a-rather-long-profile-name");
        assert!(name.len() <= INTERFACE_MAX, "{name}");
        assert_ne!(name, tagged("mkv-", "/root/.manykube:a-rather-long-profile-namf"));
        assert_eq!(tagged("mk-", "x"), tagged("mk-", "x"));
    }
}
