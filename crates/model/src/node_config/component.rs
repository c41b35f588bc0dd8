//! The parts of Kubernetes that take flags, and the programs that can be replaced.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $(#[serde(rename = $word)] $variant,)* }

        impl $name {
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<$name, String> {
                match text {
                    $($word => Ok($name::$variant),)*
                    _ => Err(format!("{text:?} is none of {}", $name::WORDS.join(", "))),
                }
            }
        }
    };
}

words! {
    /// What `--extra-config` names before the first dot, as in minikube.
    Component {
        Kubeadm = "kubeadm",
        Kubelet = "kubelet",
        Apiserver = "apiserver",
        ControllerManager = "controller-manager",
        Scheduler = "scheduler",
        Etcd = "etcd",
        KubeProxy = "kube-proxy",
    }
}

words! {
    Binary {
        Kubelet = "kubelet",
        Kubeadm = "kubeadm",
        Kubectl = "kubectl",
        KubeApiserver = "kube-apiserver",
        KubeControllerManager = "kube-controller-manager",
        KubeScheduler = "kube-scheduler",
        KubeProxy = "kube-proxy",
    }
}

impl Component {
    /// Does a node that is no control plane run it?
    pub fn on_workers(self) -> bool {
        matches!(self, Component::Kubelet | Component::KubeProxy | Component::Kubeadm)
    }

    /// `component.flag=value`; a flag may have dots of its own.
    pub fn parse_option(text: &str) -> Result<(Component, String, String), String> {
        let want = || format!("{text:?} is not COMPONENT.FLAG=VALUE, like kubelet.max-pods=50");
        let (name, value) = text.split_once('=').ok_or_else(want)?;
        let (component, flag) = name.split_once('.').ok_or_else(want)?;
        check_flag(flag)?;
        Ok((component.parse()?, flag.to_owned(), value.to_owned()))
    }
}

/// Flags and fields alike: `max-pods`, `authentication.anonymous.enabled`.
pub fn check_flag(flag: &str) -> Result<(), String> {
    let good = (1..=128).contains(&flag.len())
        && flag.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && flag.as_bytes()[0].is_ascii_alphanumeric();
    good.then_some(()).ok_or_else(|| format!("{flag:?} is not the name of a flag, like max-pods"))
}

impl Binary {
    /// Does a node that is no control plane run it?
    pub fn on_workers(self) -> bool {
        matches!(self, Binary::Kubelet | Binary::Kubeadm | Binary::Kubectl | Binary::KubeProxy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options() {
        let (component, flag, value) = Component::parse_option("kubelet.a.b=c=d").unwrap();
        assert_eq!((component, flag.as_str(), value.as_str()), (Component::Kubelet, "a.b", "c=d"));
        for bad in ["", "kubelet", "kubelet.x", "kubelet.=x", "docker.x=y", "kubelet.-x=y", "kubelet.a b=c"] {
            assert!(Component::parse_option(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn words_are_the_files_words() {
        for word in Component::WORDS {
            let component: Component = word.parse().unwrap();
            assert_eq!(serde_json::to_value(component).unwrap(), *word);
        }
        assert!("docker".parse::<Binary>().unwrap_err().contains("kubelet, kubeadm"));
    }
}
