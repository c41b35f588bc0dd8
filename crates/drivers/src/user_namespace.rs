//! Where a rootless engine is: root there is somebody else on the host, and may do what the host's root may not forbid.

use std::sync::OnceLock;

/// Is this process' root not the host's?
pub fn is_own() -> bool {
    static OWN: OnceLock<bool> = OnceLock::new();
    *OWN.get_or_init(|| std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !is_whole(&map)))
}

/// All users of the host by their own numbers.
fn is_whole(map: &str) -> bool {
    let numbers: Vec<&str> = map.split_whitespace().collect();
    matches!(numbers.as_slice(), ["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_one_has_all_users() {
        assert!(is_whole("         0          0 4294967295\n"));
        assert!(!is_whole("         0       1000          1\n         1     100000      65536\n"));
        // Another user's, as some containers have it: root of it is not the host's.
        assert!(!is_whole("         0     100000      65536\n"));
    }
}
