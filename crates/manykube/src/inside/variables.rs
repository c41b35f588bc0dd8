//! What of the environment goes along with a command: what it, or a program that it starts, looks at.

const NAMES: [&str; 22] = [
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "COLUMNS",
    "LANG",
    "LANGUAGE",
    "TZ",
    "CI",
    "KUBECONFIG",
    "TMPDIR",
    "EDITOR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];
const PREFIXES: [&str; 5] = ["MANYKUBE_", "MINIKUBE_", "DOCKER_", "LC_", "GO"];

pub fn kept(all: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    all.filter(|(name, _)| NAMES.contains(&name.as_str()) || PREFIXES.iter().any(|p| name.starts_with(p)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_others_stay() {
        let all = ["HOME", "AWS_SECRET_ACCESS_KEY", "MANYKUBE_HOME", "MINIKUBE_IN_STYLE", "SUDO_UID"];
        let names = kept(all.iter().map(|n| ((*n).to_owned(), String::new()))).into_iter().map(|(n, _)| n);
        assert_eq!(names.collect::<Vec<_>>(), ["HOME", "MANYKUBE_HOME", "MINIKUBE_IN_STYLE"]);
    }
}
