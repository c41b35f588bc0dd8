//! A node image from a registry, by way of the engine: it fetches, and our store takes what it has got. So there is
//! one download, with the engine's mirrors and the logins of the docker command.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use bollard::Docker as Client;
use bollard::auth::DockerCredentials;
use bollard::errors::Error;
use bollard::models::{CreateImageInfo, ImageInspect};
use bollard::query_parameters::{CreateImageOptionsBuilder, RemoveImageOptions, TagImageOptionsBuilder};
use futures::StreamExt as _;
use image::registry::{Doing, Label, LayerEvent, LayerProgress, Login, Reference, RegistryError, name_user};
use image::{NodeImage, Store};

use super::image::{REPOSITORY, inspect};
use super::{flow, refused};

pub async fn pull(
    client: &Client,
    store: &Store,
    reference: &Reference,
    progress: Arc<LayerProgress>,
) -> Result<(NodeImage, String)> {
    if let Some(digest) = reference.digest()
        && let Some(image) = store.by_digest(digest)?
    {
        return Ok((image, digest.to_owned()));
    }
    let name = reference.to_string();
    let before = inspect(client, &name).await?.and_then(|i| i.id);
    let login = Login::to(reference).await;
    let fetched = fetch(client, reference, login.as_ref(), &*progress).await;
    fetched.map_err(|e| name_user(e, login.as_ref()))?;
    let found = inspect(client, &name).await?.context("the engine has not got what it pulled")?;
    let digest = digest_of(&found, reference)?;
    let labels = found.config.as_ref().and_then(|c| c.labels.clone()).unwrap_or_default();
    let label = match Label::of(&found.architecture.clone().unwrap_or_default(), &labels) {
        Ok(label) => label,
        Err(error) => {
            // What is of no use to us is not left there, unless it was there.
            if before != found.id {
                drop(client.remove_image(&name, None::<RemoveImageOptions>, None).await);
            }
            return Err(error.into());
        }
    };
    let image = match store.same(&label)? {
        Some(image) => {
            image.add_digest(&digest)?;
            image
        }
        None => take(client, store, &name, &digest, &label, progress).await?,
    };
    // Under the name by which nodes ask for it: nothing has to be brought there then.
    let options = TagImageOptionsBuilder::default().repo(REPOSITORY).tag(&image.name).build();
    client.tag_image(&name, Some(options)).await.with_context(|| format!("name {name} in the engine"))?;
    Ok((image, digest))
}

/// As the docker command tells it to the engine, which has none of its own.
fn shown(reference: &Reference, login: &Login) -> Option<DockerCredentials> {
    let serveraddress = Some(reference.host().to_owned());
    let (username, password, identitytoken) = match login.clone() {
        Login::Password { user, password } => (Some(user), Some(password), None),
        Login::Token(token) => (None, None, Some(token)),
        Login::Unreadable(_) => return None,
    };
    Some(DockerCredentials {
        username,
        password,
        identitytoken,
        serveraddress,
        ..DockerCredentials::default()
    })
}

async fn fetch(
    client: &Client,
    reference: &Reference,
    login: Option<&Login>,
    progress: &LayerProgress,
) -> Result<()> {
    let (repository, version) = reference.repository_and_version();
    let options = CreateImageOptionsBuilder::default().from_image(&repository).tag(&version).build();
    let mut told = client.create_image(Some(options), None, login.and_then(|login| shown(reference, login)));
    let mut layers = Layers::default();
    while let Some(info) = told.next().await {
        let failed = |e: Error| match refused::disk(&e.to_string()) {
            Some(full) => anyhow::Error::from(full),
            None => withheld(reference, &e).into(),
        };
        let info = info.map_err(failed)?;
        layers.next(&info).into_iter().for_each(progress);
    }
    Ok(())
}

/// The engine has a sentence for everything, and no codes.
fn withheld(reference: &Reference, error: &Error) -> RegistryError {
    let host = reference.host().to_owned();
    let why = match error {
        Error::DockerResponseServerError { message, .. } => message.clone(),
        Error::DockerStreamError { error } => error.clone(),
        other => other.to_string(),
    };
    let says = |words: &[&str]| words.iter().any(|w| why.contains(w));
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    if says(&["manifest unknown", "not found", "name unknown"]) {
        RegistryError::Missing(host)
    } else if says(&["unauthorized", "denied", "authentication required", "no basic auth credentials"]) {
        RegistryError::Denied { host, user: None }
    } else if says(&["dial tcp", "no such host", "connection refused", "server gave HTTP", "x509", "timeout"])
    {
        RegistryError::Unreachable { host, why }
    } else {
        RegistryError::Registry { host, why }
    }
}

/// That of the manifest in the registry, which is not that of the image in the engine.
fn digest_of(found: &ImageInspect, reference: &Reference) -> Result<String, RegistryError> {
    let all = found.repo_digests.iter().flatten();
    let (repository, _) = reference.repository_and_version();
    let of = |d: &String| d.split_once('@').map(|(name, digest)| (name.to_owned(), digest.to_owned()));
    let known: Vec<(String, String)> = all.filter_map(of).collect();
    let own = |name: &str| repository == name || repository.ends_with(&format!("/{name}"));
    let digests: Vec<&String> =
        known.iter().filter(|(name, _)| own(name)).map(|(_, digest)| digest).collect();
    match reference.digest() {
        // The engine may know the same image by several.
        Some(wanted) if digests.iter().any(|d| *d == wanted) => Ok(wanted.to_owned()),
        Some(wanted) => Err(RegistryError::Digest {
            what: "what the engine has pulled".to_owned(),
            wanted: wanted.to_owned(),
            found: digests.first().map_or("unknown", |d| d.as_str()).to_owned(),
        }),
        None => digests.first().map(|d| (*d).clone()).ok_or_else(|| RegistryError::Registry {
            host: reference.host().to_owned(),
            why: "the engine does not know the digest of what it has pulled".to_owned(),
        }),
    }
}

/// What the engine tells of layers.
#[derive(Default)]
struct Layers(HashMap<String, u64>);

impl Layers {
    fn next(&mut self, info: &CreateImageInfo) -> Option<LayerEvent> {
        let (layer, status) = (info.id.clone()?, info.status.as_deref()?);
        let number = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
        let detail = info.progress_detail.as_ref();
        let (now, total) = (detail.and_then(|d| number(d.current)), detail.and_then(|d| number(d.total)));
        if let Some(total) = total {
            self.0.insert(layer.clone(), total);
        }
        let total = self.0.get(&layer).copied();
        let (doing, done, total) = match status {
            "Downloading" => (Doing::Receiving, now?.min(total?.saturating_sub(1)), total?),
            "Download complete" => (Doing::Receiving, total?, total?),
            "Extracting" => (Doing::Unpacking, now?.min(total?.saturating_sub(1)), total?),
            "Pull complete" => (Doing::Unpacking, total?, total?),
            _ => return None,
        };
        Some(LayerEvent { layer, doing, done, total })
    }
}

/// From the engine into the store.
async fn take(
    client: &Client,
    store: &Store,
    name: &str,
    digest: &str,
    label: &Label,
    progress: Arc<LayerProgress>,
) -> Result<NodeImage> {
    let (sender, reader) = flow::from_engine();
    let (own, told) = (store.clone(), digest.to_owned());
    let total = label.size;
    let at = move |done| LayerEvent {
        layer: "all from the engine".to_owned(),
        doing: Doing::Unpacking,
        done,
        total,
    };
    let taking = tokio::task::spawn_blocking(move || {
        let wrote = |done: u64| progress(at(done.min(total.saturating_sub(1))));
        let image = image::from_engine(&own, reader, (&told, total), &wrote)?;
        progress(at(total));
        anyhow::Ok(image)
    });
    let sent = flow::hand_on(client.export_image(name), sender).await;
    let taken = taking.await?;
    sent.with_context(|| format!("take {name} from the engine"))?;
    taken.with_context(|| format!("take {name} from the engine"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::ProgressDetail;

    #[test]
    fn what_an_engine_tells_of_a_layer() {
        let info = |status: &str, at: Option<(i64, i64)>| CreateImageInfo {
            id: Some("abc".into()),
            status: Some(status.into()),
            progress_detail: at
                .map(|(current, total)| ProgressDetail { current: Some(current), total: Some(total) }),
            ..CreateImageInfo::default()
        };
        let mut layers = Layers::default();
        let mut next = |status, at| layers.next(&info(status, at)).map(|e| (e.doing, e.done, e.total));
        assert_eq!(next("Pulling fs layer", None), None);
        assert_eq!(next("Downloading", Some((10, 20))), Some((Doing::Receiving, 10, 20)));
        assert_eq!(next("Download complete", None), Some((Doing::Receiving, 20, 20)));
        assert_eq!(next("Extracting", Some((20, 20))), Some((Doing::Unpacking, 19, 20)));
        assert_eq!(next("Pull complete", None), Some((Doing::Unpacking, 20, 20)));
        assert_eq!(next("Already exists", None), None);
    }

    #[test]
    fn the_digest_is_that_of_the_name() {
        let of = |names: &[&str], asked: &str| {
            let repo_digests = Some(names.iter().map(|n| (*n).to_owned()).collect());
            let found = ImageInspect { repo_digests, ..ImageInspect::default() };
            digest_of(&found, &asked.parse().expect("a reference")).ok()
        };
        let known = ["other.example/node@sha256:1", "r.example:5000/node@sha256:2", "node@sha256:3"];
        assert_eq!(of(&known, "r.example:5000/node:v1").as_deref(), Some("sha256:2"));
        assert_eq!(of(&known, "docker.io/library/node").as_deref(), Some("sha256:3"));
        assert_eq!(of(&known, "r.example/nothing"), None);
        let wrong = format!("r.example:5000/node@sha256:{}", "0".repeat(64));
        assert_eq!(of(&known, &wrong), None);
    }

    #[test]
    fn why_an_engine_refuses() {
        let reference: Reference = "r.example/node:v1".parse().expect("a reference");
        let of = |text: &str| {
            let message = text.to_owned();
            withheld(&reference, &Error::DockerResponseServerError { status_code: 500, message })
        };
        assert!(matches!(of("manifest for x not found: manifest unknown"), RegistryError::Missing(_)));
        assert!(matches!(
            of("Get \"…\": dial tcp: lookup r: no such host"),
            RegistryError::Unreachable { .. }
        ));
        assert!(matches!(of("pull access denied for x"), RegistryError::Denied { .. }));
    }
}
