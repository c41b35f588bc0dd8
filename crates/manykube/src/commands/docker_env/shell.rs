//! Pure: variables, and how each shell sets them.

use std::net::Ipv4Addr;

type Env<'a> = &'a dyn Fn(&str) -> Option<String>;
/// `None` takes the variable away.
type Variables = Vec<(String, Option<String>)>;

pub const NAMES: [&str; 8] = ["bash", "zsh", "fish", "powershell", "cmd", "tcsh", "emacs", "none"];
const DOCKER: [&str; 3] = ["DOCKER_TLS_VERIFY", "DOCKER_HOST", "DOCKER_CERT_PATH"];
const ACTIVE: &str = "MINIKUBE_ACTIVE_DOCKERD";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// bash, zsh and whatever else is a Bourne shell.
    Bourne,
    Fish,
    Power,
    Cmd,
    Tcsh,
    Emacs,
    None,
}

impl Shell {
    pub fn parse(name: &str) -> Option<Shell> {
        Some(match name {
            "bash" | "zsh" | "sh" | "dash" | "ksh" => Shell::Bourne,
            "fish" => Shell::Fish,
            "powershell" | "pwsh" => Shell::Power,
            "cmd" => Shell::Cmd,
            "tcsh" | "csh" => Shell::Tcsh,
            "emacs" => Shell::Emacs,
            "none" => Shell::None,
            _ => return None,
        })
    }

    /// By `$SHELL`; one that nobody knows is taken for a Bourne shell.
    pub fn of_user(shell: Option<&str>) -> Shell {
        let name = shell.and_then(|s| s.rsplit('/').next()).unwrap_or_default();
        Shell::parse(name).unwrap_or(Shell::Bourne)
    }

    pub fn line(self, name: &str, value: Option<&str>) -> String {
        match (self, value) {
            (Shell::Bourne, Some(v)) => format!("export {name}=\"{v}\"\n"),
            (Shell::Bourne, None) => format!("unset {name};\n"),
            (Shell::Fish, Some(v)) => format!("set -gx {name} \"{v}\";\n"),
            (Shell::Fish, None) => format!("set -e {name};\n"),
            (Shell::Power, Some(v)) => format!("$Env:{name} = \"{v}\"\n"),
            (Shell::Power, None) => format!("Remove-Item Env:\\\\{name}\n"),
            (Shell::Cmd, v) => format!("SET {name}={}\n", v.unwrap_or_default()),
            (Shell::Tcsh, Some(v)) => format!("setenv {name} \"{v}\";\n"),
            (Shell::Tcsh, None) => format!("unsetenv {name};\n"),
            (Shell::Emacs, Some(v)) => format!("(setenv \"{name}\" \"{v}\")\n"),
            (Shell::Emacs, None) => format!("(setenv \"{name}\" nil)\n"),
            (Shell::None, v) => format!("{name}={}\n", v.unwrap_or_default()),
        }
    }

    /// The last lines, which a shell passes over.
    pub fn hint(self, text: &str, command: &str) -> String {
        match self {
            Shell::Bourne => format!("\n# {text}\n# eval $({command})\n"),
            Shell::Fish => format!("\n# {text}\n# {command} | source\n"),
            Shell::Power => {
                format!("\n# {text}\n# & {command} --shell powershell | Invoke-Expression\n")
            }
            Shell::Cmd => {
                format!("REM {text}\nREM @FOR /f \"tokens=*\" %i IN ('{command} --shell cmd') DO @%i\n")
            }
            Shell::Tcsh => format!("\n: \"{text}\"\n: eval `{command}`\n"),
            Shell::Emacs => {
                format!(
                    ";; {text}\n;; (with-temp-buffer (shell-command \"{command}\" (current-buffer)) (eval-buffer))\n"
                )
            }
            Shell::None => String::new(),
        }
    }
}

/// What a docker client needs; what was set before is kept under another name.
pub fn variables(profile: &str, ip: Ipv4Addr, certs: &str, no_proxy: bool, env: Env<'_>) -> Variables {
    let values = ["1".to_owned(), format!("tcp://{ip}:2376"), certs.to_owned()];
    let mut all: Variables =
        DOCKER.iter().zip(values).map(|(name, value)| ((*name).to_owned(), Some(value))).collect();
    // Once they are ours, what was there before them is kept already.
    if env(ACTIVE).is_none() {
        for name in DOCKER {
            if let Some(before) = env(name) {
                all.push((existing(name), Some(before)));
            }
        }
    }
    all.push((ACTIVE.to_owned(), Some(profile.to_owned())));
    if no_proxy {
        let name = no_proxy_name(env);
        let before = env(&name).unwrap_or_default();
        let host = ip.to_string();
        let known = before.split(',').any(|h| h == host);
        let value = match (known, before.is_empty()) {
            (true, _) => before,
            (false, true) => host,
            (false, false) => format!("{before},{host}"),
        };
        all.push((name, Some(value)));
    }
    all
}

/// What was there before comes back.
pub fn unset(env: Env<'_>, no_proxy: bool) -> Variables {
    let mut all: Variables = Vec::new();
    for name in DOCKER {
        all.push((name.to_owned(), env(&existing(name))));
        if env(&existing(name)).is_some() {
            all.push((existing(name), None));
        }
    }
    all.push((ACTIVE.to_owned(), None));
    if no_proxy {
        all.push((no_proxy_name(env), None));
    }
    all
}

fn existing(name: &str) -> String {
    format!("MINIKUBE_EXISTING_{name}")
}

/// Programs read either; the one that is set is the one that is read here.
fn no_proxy_name(env: Env<'_>) -> String {
    let lower = env("no_proxy").is_some() && env("NO_PROXY").is_none();
    if lower { "no_proxy" } else { "NO_PROXY" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 2);

    #[test]
    fn bash_is_minikubes() {
        let variables = variables("demo", IP, "/h/certs", false, &|_| None);
        let text: String = variables.iter().map(|(k, v)| Shell::Bourne.line(k, v.as_deref())).collect();
        assert_eq!(
            text,
            "export DOCKER_TLS_VERIFY=\"1\"\nexport DOCKER_HOST=\"tcp://192.168.49.2:2376\"\n\
             export DOCKER_CERT_PATH=\"/h/certs\"\nexport MINIKUBE_ACTIVE_DOCKERD=\"demo\"\n"
        );
    }

    #[test]
    fn what_was_set_comes_back() {
        let before = |name: &str| (name == "DOCKER_HOST").then(|| "tcp://old".to_owned());
        let set = variables("demo", IP, "/c", false, &before);
        assert!(set.contains(&("MINIKUBE_EXISTING_DOCKER_HOST".into(), Some("tcp://old".into()))));
        let now = |name: &str| set.iter().find(|(k, _)| k == name).and_then(|(_, v)| v.clone());
        let undone = unset(&now, false);
        assert!(undone.contains(&("DOCKER_HOST".into(), Some("tcp://old".into()))));
        assert!(undone.contains(&("DOCKER_CERT_PATH".into(), None)));
        assert!(undone.contains(&("MINIKUBE_EXISTING_DOCKER_HOST".into(), None)));
        // A second time nothing is remembered of ourselves.
        let again = variables("demo", IP, "/c", false, &now);
        assert!(!again.iter().any(|(k, _)| k.starts_with("MINIKUBE_EXISTING")));
    }

    #[test]
    fn the_node_joins_those_without_a_proxy() {
        let value = |before: &'static str| {
            let env = move |name: &str| (name == "no_proxy").then(|| before.to_owned());
            variables("demo", IP, "/c", true, &env).pop().unwrap()
        };
        assert_eq!(value("a.b"), ("no_proxy".into(), Some("a.b,192.168.49.2".into())));
        assert_eq!(value("192.168.49.2"), ("no_proxy".into(), Some("192.168.49.2".into())));
    }

    #[test]
    fn every_shell_sets_and_unsets() {
        for name in NAMES {
            let shell = Shell::parse(name).unwrap();
            assert!(shell.line("A", Some("b")).contains('b'), "{name}");
            assert!(shell.line("A", None).contains('A'), "{name}");
        }
        assert_eq!(Shell::of_user(Some("/usr/bin/fish")), Shell::Fish);
        assert_eq!(Shell::of_user(Some("/bin/strange")), Shell::Bourne);
        assert_eq!(Shell::parse("strange"), None);
    }
}
