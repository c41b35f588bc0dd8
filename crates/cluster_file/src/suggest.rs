//! "Did you mean": the known word that is closest to the one written.

/// `None` when nothing is near enough to be what was meant.
pub fn suggest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    // A key of a thousand characters is no slip, and comparing it is slow.
    if written.len() > 64 {
        return None;
    }
    let fold =
        |s: &str| s.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let asked = fold(written);
    let close = |word: &&'a str| {
        let word = fold(word);
        // Half a word is a better hint than two letters that happen to agree.
        let part = asked.len() >= 3
            && (word.starts_with(&asked) || asked.starts_with(&word) || word.ends_with(&asked));
        let distance = strsim::damerau_levenshtein(&asked, &word);
        if part { distance.min(1) } else { distance }
    };
    let best = known.iter().copied().min_by_key(|w| close(w))?;
    let room = (asked.len() / 3).clamp(1, 3);
    (close(&best) <= room).then_some(best)
}

/// `: did you mean "cpus"?`, or the choices when there are few, or nothing.
pub fn hint(written: &str, known: &[&str]) -> String {
    match suggest(written, known) {
        Some(word) => format!(": did you mean {word:?}?"),
        None if known.len() <= 8 => format!(": use {}", known.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        let known = ["cpus", "memory", "kubernetesVersion", "podSubnet", "diskSize", "role"];
        for (written, want) in [
            ("cpu", Some("cpus")),
            ("CPUs", Some("cpus")),
            ("memroy", Some("memory")),
            ("kubernetes-version", Some("kubernetesVersion")),
            ("kubernetes_version", Some("kubernetesVersion")),
            ("disk", Some("diskSize")),
            ("rol", Some("role")),
            ("banana", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(suggest(written, &known), want, "{written}");
        }
        assert_eq!(suggest(&"a".repeat(100_000), &known), None);
    }
}
