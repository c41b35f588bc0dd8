//! What is said in French to those whose environment asks for it: minikube's users look for these lines.

/// As in every program: the first of these that says anything.
pub fn is_asked(env: &dyn Fn(&str) -> Option<String>) -> bool {
    let said = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(|name| env(name).filter(|v| !v.is_empty()));
    said.is_some_and(|language| {
        language == "fr" || language.starts_with("fr_") || language.starts_with("fr.")
    })
}

/// The driver, and why it is this one.
pub fn driver(driver: &str, existing: bool, asked: bool) -> String {
    match (existing, asked) {
        (true, _) => format!("Utilisation du pilote {driver} d'après le profil existant"),
        (false, true) => format!("Utilisation du pilote {driver} d'après la configuration de l'utilisateur"),
        (false, false) => format!("Utilisation du pilote {driver}, choisi automatiquement"),
    }
}

pub fn done(name: &str, namespace: &str, keep_context: bool) -> String {
    if keep_context {
        format!("Terminé ! Pour vous connecter à ce cluster : kubectl --context={name}")
    } else {
        format!(
            "Terminé ! kubectl utilise désormais le cluster \"{name}\" et l'espace de noms \"{namespace}\""
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_asks_for_it() {
        let asked = |variables: &[(&str, &str)]| {
            is_asked(&|k: &str| variables.iter().find(|(n, _)| *n == k).map(|(_, v)| (*v).to_owned()))
        };
        assert!(asked(&[("LC_ALL", "fr")]) && asked(&[("LC_ALL", ""), ("LANG", "fr_FR.UTF-8")]));
        assert!(!asked(&[]) && !asked(&[("LANG", "fro")]));
        assert!(!asked(&[("LC_ALL", "C"), ("LANG", "fr_FR.UTF-8")]));
    }

    #[test]
    fn the_words_that_are_looked_for() {
        for (existing, asked) in [(true, true), (false, true), (false, false)] {
            assert!(driver("native", existing, asked).starts_with("Utilisation du pilote native"));
        }
    }
}
