//! `--cni`: who makes the pod network, and the manifest when it is the user's.

use std::path::Path;

use model::cni::{Cni, Elsewhere};
use model::{Fault, Reason};

use super::Args;
use super::values::usage;

/// What the flags ask for; `None` when they do not say. A path becomes a full one.
pub fn asked(args: &Args) -> Result<Option<Cni>, Fault> {
    let Some(word) = args.cni.as_deref() else { return Ok(None) };
    let runtime = args.container_runtime.as_deref().unwrap_or_default();
    if word == "false" && !matches!(runtime, "" | "auto" | "docker") {
        // minikube's rule and its words; who does not name a runtime may do without.
        return Err(
            usage(format!("The \"{runtime}\" container runtime requires CNI")).advice("Use --cni=none")
        );
    }
    Ok(Some(match Cni::parse(word).map_err(elsewhere)? {
        Cni::Manifest(path) => {
            let full = std::path::absolute(&path).map_err(|e| usage(format!("--cni={path}: {e}")))?;
            let full = full.into_os_string().into_string();
            Cni::Manifest(full.map_err(|_| usage(format!("--cni={path} lies below a name that is no text")))?)
        }
        known => known,
    }))
}

fn elsewhere(Elsewhere(name): Elsewhere) -> Fault {
    Fault::new(
        Reason::Unimplemented,
        format!(
            "--cni={name} is not built in, because its images are not fetched: give a manifest file of it, --cni=FILE"
        ),
    )
}

/// The text of the manifest, once it is sure that it is one.
pub fn read(cni: &Cni) -> Result<Option<String>, Fault> {
    let Cni::Manifest(path) = cni else { return Ok(None) };
    if !Path::new(path).is_file() {
        return Err(Fault::new(Reason::PathMissing, format!("--cni={path}: there is no such file"))
            .advice("Use auto, bridge, none, or the path of a manifest"));
    }
    let bad = |why: String| {
        let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
        usage(format!("--cni={path} is no manifest of Kubernetes objects: {line}"))
    };
    let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    bootstrap::manifest::objects(&text).map_err(|e| bad(format!("{e:#}")))?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::args;

    #[test]
    fn flags() {
        assert_eq!(asked(&args("")).unwrap(), None);
        for line in ["--cni=auto", "--cni=bridge", "--cni-plugin=auto", "--cni=true", "--cni="] {
            assert_eq!(asked(&args(line)).unwrap(), Some(Cni::BuiltIn), "{line}");
        }
        for line in [
            "--cni=none",
            "--cni=false",
            "--cni-plugin=none",
            "--cni=none -c containerd",
            "--cni=false -c docker",
        ] {
            assert_eq!(asked(&args(line)).unwrap(), Some(Cni::None), "{line}");
        }
        let Some(Cni::Manifest(path)) = asked(&args("--cni=a/b.yaml")).unwrap() else { panic!() };
        assert!(path.starts_with('/') && path.ends_with("/a/b.yaml"), "{path}");
        let fault = asked(&args("--cni=false --container-runtime=containerd")).unwrap_err();
        assert_eq!(
            (fault.reason, &*fault.message),
            (Reason::Usage, "The \"containerd\" container runtime requires CNI")
        );
        for name in ["calico", "cilium", "flannel", "kindnet"] {
            assert_eq!(asked(&args(&format!("--cni={name}"))).unwrap_err().reason, Reason::Unimplemented);
        }
    }

    #[test]
    fn manifests_are_read_first() {
        assert_eq!(read(&Cni::None), Ok(None));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("net.yaml");
        let cni = Cni::Manifest(path.to_string_lossy().into_owned());
        assert_eq!(read(&cni).unwrap_err().reason, Reason::PathMissing);
        assert_eq!(
            read(&Cni::Manifest(dir.path().to_string_lossy().into_owned())).unwrap_err().reason,
            Reason::PathMissing
        );
        for bad in [&b"nonsense"[..], b"a: [", b"\xff\xfe", b""] {
            std::fs::write(&path, bad).unwrap();
            let fault = read(&cni).unwrap_err();
            assert_eq!(fault.reason, Reason::Usage);
            assert!(!fault.message.contains('\n'));
        }
        let text = "apiVersion: v1\nkind: Namespace\nmetadata: { name: net }\n";
        std::fs::write(&path, text).unwrap();
        assert_eq!(read(&cni), Ok(Some(text.to_owned())));
    }
}
