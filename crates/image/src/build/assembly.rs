//! From finished components to a finished image.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::command::Shell;
use super::containerd::{self, Import};
use super::images::{self, PROXY_TOOLS, Parts};
use super::recipe::Recipe;
use super::{Build, libraries, oci, rootfs};
use crate::check;
use crate::clone::CONTAINERD;
use crate::manifest::{FILES, Manifest};
use crate::pins::{Kubernetes, Pins};
use crate::store::{NodeImage, sweep};

/// Marks directories of images that are being put together.
const UNFINISHED: &str = ".building-";

pub async fn assemble(
    build: &Build<'_>,
    kubernetes: &'static Kubernetes,
    recipes: &[Recipe],
    components: BTreeMap<&'static str, PathBuf>,
    name: &str,
) -> Result<NodeImage> {
    let shell = Shell::new("image", &build.log);
    let images_dir = build.store.images_dir();
    build.store.make_images_dir()?;
    // Under the build's lock there is no other: all of them were interrupted.
    sweep(&images_dir, &[UNFINISHED])?;
    let work = images_dir.join(format!("{UNFINISHED}{name}"));
    fs_err::create_dir_all(&work)?;

    let debian = components["debian"].clone();
    let applets = libraries::applets(&shell, &debian).await?;
    let libraries = libraries::of(&shell, &debian, &PROXY_TOOLS).await?;
    let (pins, to) = (build.pins, work.clone());
    let containerd = components["containerd"].clone();
    tokio::task::spawn_blocking(move || {
        let programs = |component: &str| components[component].clone();
        rootfs::assemble(&debian, &programs, &kubernetes.version, &to.join("rootfs"))?;
        let parts = Parts { pins, kubernetes, programs: &programs, root: debian.clone(), applets, libraries };
        archive(&parts, &to.join("images.tar"))
    })
    .await??;

    let references = images::references(pins, kubernetes);
    let import = Import {
        programs: containerd,
        archive: work.join("images.tar"),
        root: work.join("rootfs").join(CONTAINERD),
        references: &references,
        pinned: &images::pause_reference(kubernetes),
    };
    containerd::import(&shell, &import).await?;
    fs_err::remove_file(work.join("images.tar"))?;

    let manifest = describe(pins, kubernetes, recipes, references, name);
    tokio::task::spawn_blocking(move || finish(&work, manifest, &images_dir)).await?
}

fn archive(parts: &Parts, file: &Path) -> Result<()> {
    let to = std::io::BufWriter::with_capacity(1 << 20, fs_err::File::create(file)?);
    oci::write(&images::images(parts)?, to)
        .with_context(|| format!("writing the container images to {}", file.display()))
}

/// The manifest, but for the files.
fn describe(
    pins: &Pins,
    kubernetes: &Kubernetes,
    recipes: &[Recipe],
    images: Vec<String>,
    name: &str,
) -> Manifest {
    let mut components: BTreeMap<_, _> =
        recipes.iter().map(|recipe| (recipe.name.to_owned(), recipe.version.clone())).collect();
    components.insert("busybox".into(), pins.busybox.version.clone());
    let named = [("etcd", &kubernetes.etcd), ("coredns", &kubernetes.coredns), ("busybox", &pins.busybox)];
    let note = |(name, named): (&str, &crate::pins::Named)| {
        named.note.as_ref().map(|note| format!("{name}: {note}"))
    };
    Manifest {
        name: name.to_owned(),
        kubernetes: kubernetes.version.clone(),
        architecture: oci::architecture().to_owned(),
        components,
        images,
        notes: named.into_iter().filter_map(note).collect(),
        built_at: jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default().to_string(),
        size: 0,
        files_sha256: String::new(),
    }
}

/// Records every file, writes the manifest, and only then gives the image its name.
fn finish(work: &Path, mut manifest: Manifest, images_dir: &Path) -> Result<NodeImage> {
    let files = check::record(&work.join("rootfs"))?;
    manifest.size = files.files.values().map(|file| file.size).sum();
    let text = serde_json::to_vec(&files)?;
    manifest.files_sha256 = crate::hash::bytes(&text);
    fs_err::write(work.join(FILES), text)?;
    manifest.write(work)?;
    let dir = images_dir.join(&manifest.name);
    // Without a manifest it is no image, but it may be in the way.
    if dir.exists() {
        fs_err::remove_dir_all(&dir)?;
    }
    fs_err::rename(work, &dir)?;
    Ok(NodeImage { name: manifest.name.clone(), dir, manifest })
}
