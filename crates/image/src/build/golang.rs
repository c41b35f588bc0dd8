//! Builds Go programs from the module proxy, checksums verified.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use tokio::process::Command;
use tokio::sync::Semaphore;

use super::command::Shell;
use super::gomod;
use super::recipe::{Go, Module, TIME};
use crate::pins::Pins;

/// A downloaded module, as `go mod download -json` describes it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Downloaded {
    pub dir: PathBuf,
    sum: String,
    info: PathBuf,
    go_mod: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Info {
    time: String,
}

/// The compiler's version, which is part of every component's key.
pub async fn toolchain(shell: &Shell) -> Result<String> {
    Ok(shell.read(go(Path::new("/")).args(["env", "GOVERSION"])).await?.trim().to_owned())
}

/// Fetches modules and holds them to the pinned checksums.
pub async fn download(shell: &Shell, pins: &Pins, dir: &Path, module: &Module) -> Result<Downloaded> {
    let name = format!("{}@{}", module.path, module.version);
    let text = shell.read(go(dir).args(["mod", "download", "-json", &name])).await?;
    let found: Downloaded =
        serde_json::from_str(&text).with_context(|| format!("reading what `go mod download {name}` says"))?;
    match pins.sum(&module.path, &module.version) {
        Some(pinned) if pinned == found.sum => Ok(found),
        Some(pinned) => bail!("{name} has the checksum {}, but {pinned} is pinned", found.sum),
        None => bail!("{name} has no pinned checksum"),
    }
}

/// Leaves the programs in `out`. Downloading may overlap with other work; only one compiler runs at a time,
/// because it uses all cores by itself.
pub async fn build(
    shell: &Shell,
    pins: &Pins,
    recipe: (&str, &Go),
    work: &Path,
    compile: &Semaphore,
    jobs: usize,
) -> Result<()> {
    let (name, recipe) = recipe;
    let (src, out) = (work.join("src"), work.join("out"));
    fs_err::create_dir_all(&src)?;
    fs_err::create_dir_all(&out)?;
    let (mut upstream, mut sums, mut time) = (Vec::new(), String::new(), None);
    for module in &recipe.modules {
        let found = download(shell, pins, work, module).await?;
        upstream.push(fs_err::read_to_string(&found.go_mod)?);
        // The checksums of the dependencies, as their users upstream know them.
        sums += &fs_err::read_to_string(found.dir.join("go.sum")).unwrap_or_default();
        if time.is_none() {
            time = Some(serde_json::from_slice::<Info>(&fs_err::read(&found.info)?)?.time);
        }
    }
    fs_err::write(src.join("go.mod"), gomod::go_mod(name, &recipe.modules, &upstream))?;
    fs_err::write(src.join("go.sum"), sums)?;

    let mut arguments = vec!["-trimpath".to_owned(), "-tags".to_owned(), recipe.tags.join(",")];
    let prepare = |verb: &str| {
        let mut command = go(&src);
        command.arg(verb).env("CGO_ENABLED", if recipe.cgo { "1" } else { "0" });
        command
    };
    // Fetches what the programs need, and writes down the versions of all of it. Without this, `go build`
    // takes Kubernetes' libraries by the placeholder version (v0.0.0) that its go.mod has for them.
    shell.run(prepare("get").args(versioned(recipe))).await?;

    let _turn = compile.acquire().await?;
    arguments.extend([
        "-p".into(),
        jobs.to_string(),
        "-ldflags".into(),
        ldflags(recipe, &time.unwrap_or_default()),
    ]);
    arguments.extend(["-o".into(), format!("{}/", out.display())]);
    shell.run(prepare("build").args(&arguments).args(&recipe.packages)).await?;
    for (from, to) in &recipe.rename {
        fs_err::rename(out.join(from), out.join(to))?;
    }
    Ok(())
}

/// The programs with the versions of the modules they are in.
fn versioned(recipe: &Go) -> impl Iterator<Item = String> {
    recipe.packages.iter().map(|package| {
        let of = |module: &&Module| package.starts_with(&module.path);
        let version = recipe.modules.iter().find(of).map_or("", |module| &module.version);
        format!("{package}@{version}")
    })
}

fn ldflags(recipe: &Go, time: &str) -> String {
    let mut flags = vec!["-s -w".to_owned()];
    if recipe.cgo {
        flags.push("-extldflags -static".to_owned());
    }
    flags
        .extend(recipe.stamps.iter().map(|(name, value)| format!("-X {name}={}", value.replace(TIME, time))));
    flags.join(" ")
}

/// Go, with what would make a build differ from one user to the next switched off. Proxy, checksum database
/// and caches stay the user's.
fn go(dir: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(dir).env("GOFLAGS", "-mod=mod -buildvcs=false").env("GOWORK", "off");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_the_version_of_its_module() {
        let module = |path: &str, version: &str| Module { path: path.into(), version: version.into() };
        let recipe = Go {
            modules: vec![module("a/v2", "v2.1.0"), module("b", "v1.0.0")],
            packages: vec!["a/v2/cmd/x".into(), "b".into()],
            ..Go::default()
        };
        assert_eq!(versioned(&recipe).collect::<Vec<_>>(), ["a/v2/cmd/x@v2.1.0", "b@v1.0.0"]);
    }

    #[test]
    fn the_linker_stamps_versions_and_links_c_statically() {
        let stamps = vec![("a.version".into(), "v1".into()), ("a.date".into(), TIME.into())];
        let mut recipe = Go { stamps, ..Go::default() };
        assert_eq!(
            ldflags(&recipe, "2026-09-23T17:06:22Z"),
            "-s -w -X a.version=v1 -X a.date=2026-09-23T17:06:22Z"
        );
        recipe.cgo = true;
        assert!(ldflags(&recipe, "").starts_with("-s -w -extldflags -static "));
    }
}
