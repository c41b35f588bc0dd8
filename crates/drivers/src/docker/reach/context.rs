//! The engine that `docker context use` or DOCKER_CONTEXT names. The docker command keeps them in its directory; Docker
//! Desktop, rootless engines and others come with one.

use std::path::Path;

use anyhow::{Context as _, Result};
use image::hash;
use model::{Fault, Reason};
use serde::Deserialize;

use super::Address;

/// The context that is none: the engine of this host.
const DEFAULT: &str = "default";
/// The address of a context that says none, so that only who needs it is told.
pub const SCHEME: &str = "context";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Config {
    current_context: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Meta {
    endpoints: Endpoints,
}

#[derive(Deserialize)]
struct Endpoints {
    docker: Endpoint,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Endpoint {
    host: String,
}

/// Of the context that is named, else of the one in use; `None` for the default one. `docker` is the docker command's
/// directory.
pub fn address(named: Option<String>, docker: &Path) -> Option<Address> {
    let name = named.unwrap_or_else(|| in_use(docker));
    if name.is_empty() || name == DEFAULT {
        return None;
    }
    Some(read(&name, docker).unwrap_or_else(|_| Address { host: format!("{SCHEME}://{name}"), certs: None }))
}

/// What to say of a context that there is not.
pub fn unknown(name: &str) -> Fault {
    Fault::new(Reason::DriverNotHealthy, format!("The docker command's context {name:?} names no engine"))
        .advice("'docker context ls' lists them, 'docker context use default' means the engine of this host")
}

/// A file that cannot be read is the docker command's to complain about.
fn in_use(docker: &Path) -> String {
    let text = std::fs::read(docker.join("config.json")).unwrap_or_default();
    serde_json::from_slice::<Config>(&text).unwrap_or_default().current_context
}

fn read(name: &str, docker: &Path) -> Result<Address> {
    let id = hash::bytes(name.as_bytes());
    let contexts = docker.join("contexts");
    let text = fs_err::read(contexts.join("meta").join(&id).join("meta.json"))?;
    let meta: Meta = serde_json::from_slice(&text).with_context(|| format!("read the context {name:?}"))?;
    let certs = contexts.join("tls").join(&id).join("docker");
    Ok(Address { host: meta.endpoints.docker.host, certs: certs.join("ca.pem").exists().then_some(certs) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn docker(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn the_one_in_use_unless_another_is_named() {
        let id = hash::bytes(b"far");
        let meta = format!("contexts/meta/{id}/meta.json");
        let text = r#"{"Name":"far","Metadata":{},"Endpoints":{"docker":{"Host":"tcp://h:2376","SkipTLSVerify":false}}}"#;
        let ca = format!("contexts/tls/{id}/docker/ca.pem");
        let dir =
            docker(&[("config.json", r#"{"auths":{},"currentContext":"far"}"#), (&meta, text), (&ca, "")]);
        let far = address(None, dir.path()).unwrap();
        assert_eq!(far.host, "tcp://h:2376");
        assert_eq!(far.certs, Some(dir.path().join("contexts/tls").join(&id).join("docker")));
        assert_eq!(address(Some("default".into()), dir.path()), None);
        assert_eq!(address(Some("gone".into()), dir.path()).unwrap().host, "context://gone");
    }

    #[test]
    fn without_a_word_of_it_there_is_none() {
        assert_eq!(address(None, Path::new("/nowhere")), None);
        assert_eq!(address(None, docker(&[("config.json", "no json")]).path()), None);
        assert_eq!(address(None, docker(&[("config.json", "{}")]).path()), None);
    }
}
