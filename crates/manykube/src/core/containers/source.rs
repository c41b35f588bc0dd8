//! Where an image is taken from, as minikube decides it.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use containers::archive::Archive;
use containers::normalise;
use model::{Fault, Reason};
use tokio::process::Command;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Stdin,
    File(String),
    /// By its full name, from the Docker engine or a registry.
    Named(String),
}

impl Source {
    pub fn of(text: &str) -> Result<Source, Fault> {
        if text == "-" {
            return Ok(Source::Stdin);
        }
        if text.starts_with(['/', '.']) || Path::new(text).exists() {
            if !Path::new(text).exists() {
                return Err(Fault::new(Reason::PathMissing, format!("There is no file {text}")));
            }
            return Ok(Source::File(text.to_owned()));
        }
        image_name(text).map(Source::Named)
    }
}

/// The full name of an image.
pub fn image_name(text: &str) -> Result<String, Fault> {
    normalise(text).map_err(|e| {
        Fault::new(Reason::Usage, e.to_string())
            .advice("A name is [HOST[:PORT]/]PATH[:TAG], e.g. app:v1 or localhost:5000/team/app")
    })
}

/// `None`: ask the registry.
pub async fn open(source: &Source) -> Result<Option<Archive>> {
    match source {
        Source::Stdin => read(|| Archive::read("standard input", std::io::stdin().lock())).await.map(Some),
        Source::File(path) => {
            let path = path.clone();
            read(move || Archive::open(Path::new(&path))).await.map(Some)
        }
        Source::Named(name) => match engine(name).await? {
            Ok(archive) => Ok(Some(archive)),
            Err(said) => {
                tracing::info!("not from the Docker engine: {said}");
                Ok(None)
            }
        },
    }
}

async fn read(open: impl FnOnce() -> Result<Archive> + Send + 'static) -> Result<Archive> {
    let archive = tokio::task::spawn_blocking(open).await?;
    archive.map_err(|e| Fault::new(Reason::ImageLoad, format!("{e:#}")).into())
}

/// From the Docker engine, by its own client, which knows where it is; or what that said.
pub async fn engine(name: &str) -> Result<Result<Archive, String>> {
    let file = tempfile::NamedTempFile::new().context("make a temporary file")?;
    let mut docker = Command::new("docker");
    docker.args(["image", "save", "--output"]).arg(file.path()).arg(name);
    docker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    match docker.output().await {
        Ok(output) if output.status.success() => {
            let path = file.path().to_owned();
            Ok(Ok(read(move || Archive::open(&path)).await?))
        }
        Ok(output) => Ok(Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(e) => Ok(Err(format!("run docker: {e}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_path_is_one() {
        assert_eq!(Source::of("-").unwrap(), Source::Stdin);
        assert_eq!(Source::of("app:v1").unwrap(), Source::Named("docker.io/library/app:v1".into()));
        assert_eq!(Source::of("/proc/version").unwrap(), Source::File("/proc/version".into()));
        assert_eq!(Source::of("./nothing.tar").unwrap_err().reason, Reason::PathMissing);
        assert_eq!(Source::of("No Name").unwrap_err().reason, Reason::Usage);
    }
}
