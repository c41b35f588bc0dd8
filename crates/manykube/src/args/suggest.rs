//! The word that was probably meant.

/// The most similar one, if any is similar enough.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|k| (strsim::jaro_winkler(word, k), k));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_similar() {
        let known = ["dashboard", "ingress", "metrics-server"];
        assert_eq!(nearest("dashbord", known.into_iter()), Some("dashboard"));
        assert_eq!(nearest("metric-server", known.into_iter()), Some("metrics-server"));
        assert_eq!(nearest("xyz", known.into_iter()), None);
    }
}
