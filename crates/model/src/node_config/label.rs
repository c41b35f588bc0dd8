//! Kubernetes' rules for the names and values of labels, and for the names of feature gates.

/// Letters, digits, and `-_.` inside; up to 63 characters.
fn is_name(text: &str) -> bool {
    let end = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.len() <= 63
        && end(text.bytes().next())
        && end(text.bytes().last())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn is_domain(text: &str) -> bool {
    let label = |l: &str| {
        !l.is_empty()
            && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// `name`, or `prefix/name` with a DNS name as prefix.
pub fn check_label_key(key: &str) -> Result<(), String> {
    let good = match key.split_once('/') {
        Some((prefix, name)) => is_domain(prefix) && is_name(name),
        None => is_name(key),
    };
    good.then_some(()).ok_or_else(|| {
        format!(
            "{key:?} is not a label's key: up to 63 letters, digits and -_. between them, \
             with a DNS name and / before it if need be, like example.com/tier"
        )
    })
}

pub fn check_label_value(value: &str) -> Result<(), String> {
    (value.is_empty() || is_name(value)).then_some(()).ok_or_else(|| {
        format!("{value:?} is not a label's value: up to 63 letters, digits and -_. between them")
    })
}

pub fn check_feature_gate(name: &str) -> Result<(), String> {
    let good = (1..=128).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric())
        && name.as_bytes()[0].is_ascii_alphabetic();
    good.then_some(())
        .ok_or_else(|| format!("{name:?} is not the name of a feature gate: letters and digits only"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values() {
        for good in ["a", "tier", "example.com/tier", "node-role.kubernetes.io/worker", "A_b.c-1"] {
            assert!(check_label_key(good).is_ok(), "{good}");
        }
        let long = "x".repeat(64);
        for bad in ["", "/", "a/", "/a", "a/b/c", "-a", "a-", "a b", "Ex.com/a", "é", &long] {
            assert!(check_label_key(bad).is_err(), "{bad}");
        }
        assert!(check_label_value("").is_ok() && check_label_value("v1.2_a").is_ok());
        for bad in ["a b", "-", "a/b", "a:", &long] {
            assert!(check_label_value(bad).is_err(), "{bad}");
        }
        assert!(check_feature_gate("AllAlpha").is_ok());
        for bad in ["", "A-b", "1a", "a b"] {
            assert!(check_feature_gate(bad).is_err(), "{bad}");
        }
    }
}
