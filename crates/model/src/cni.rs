//! Who makes the pod network of a cluster.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cni {
    /// The agents do: a cable per pod, a range per node, routes between nodes.
    #[default]
    BuiltIn,
    /// Nobody yet: nodes are not Ready until the user installs something.
    None,
    /// The objects in a file of the user's.
    Manifest(String),
}

/// Names of minikube's whose images we do not have.
const ELSEWHERE: [&str; 4] = ["calico", "cilium", "flannel", "kindnet"];

/// Why a word means none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere(pub String);

impl Cni {
    /// A word as `--cni` takes it and `KubernetesConfig.CNI` holds it: all that is no known word is a
    /// path, as in minikube.
    pub fn parse(word: &str) -> Result<Cni, Elsewhere> {
        Ok(match word {
            "" | "auto" | "true" | "bridge" => Cni::BuiltIn,
            "false" | "none" => Cni::None,
            name if ELSEWHERE.contains(&name) => return Err(Elsewhere(name.to_owned())),
            path => Cni::Manifest(path.to_owned()),
        })
    }

    /// For `KubernetesConfig.CNI`, in minikube's words: it knows no "none".
    pub fn as_str(&self) -> &str {
        match self {
            Cni::BuiltIn => "",
            Cni::None => "false",
            Cni::Manifest(path) => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_paths() {
        for built_in in ["", "auto", "true", "bridge"] {
            assert_eq!(Cni::parse(built_in), Ok(Cni::BuiltIn));
        }
        for none in ["none", "false"] {
            assert_eq!(Cni::parse(none), Ok(Cni::None));
        }
        assert_eq!(Cni::parse("calico"), Err(Elsewhere("calico".into())));
        assert_eq!(Cni::parse("./calico.yaml"), Ok(Cni::Manifest("./calico.yaml".into())));
        for cni in [Cni::BuiltIn, Cni::None, Cni::Manifest("/a/b.yaml".into())] {
            assert_eq!(Cni::parse(cni.as_str()), Ok(cni.clone()));
        }
    }
}
