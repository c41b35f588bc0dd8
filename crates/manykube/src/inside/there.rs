//! A home in a volume of an engine that does not see our files.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use drivers::docker::inside::{Errand, Input, Luggage, Outcome, Place, Volume, gave_up};
use model::{Fault, Reason};

use super::mark::{self, Mark};
use super::others::{self, By};
use super::{Call, files, mirror, needs};
use crate::args::Commands;
use crate::commands;
use crate::commands::delete;
use crate::report::{Event, Style};
use crate::state::handout;

pub struct There {
    volume: Volume,
    /// What profiles bear here that are there.
    pub own: Mark,
}

pub async fn home(call: &Call<'_>) -> Result<There> {
    refuse(call)?;
    refuse_ours(call)?;
    let volume = call.engine.volume(call.ctx.home.root()).await?;
    let own = Mark { engine: volume.engine.clone(), address: call.engine.address.clone() };
    if volume.fresh {
        mirror::forget(&call.ctx.home, &own)?;
    }
    Ok(There { volume, own })
}

/// A cluster stays where it is: another one of its name would take its place here.
fn refuse_ours(call: &Call<'_>) -> Result<(), Fault> {
    let name = &call.ctx.profile;
    if needs::all_profiles(call.command) || !mark::is_here(&call.ctx.home, name) {
        return Ok(());
    }
    let host = &call.engine.address.host;
    let message = format!("The cluster \"{name}\" is one of this host, and not of the engine at {host}");
    let advice = "Unset DOCKER_HOST and DOCKER_CONTEXT, or choose another name with -p";
    Err(Fault::new(Reason::DriverMismatch, message).advice(advice))
}

/// What is about files of this host, and cannot be about copies of them.
fn refuse(call: &Call<'_>) -> Result<(), Fault> {
    let (what, advice) = match call.command {
        Commands::Mount(_) => (
            "mount would show a directory of the engine's host",
            "Copy files with 'cp', which goes both ways",
        ),
        Commands::NodeImage(_) => (
            "node-image is about this host's images",
            "'start' brings the node image of this host to the engine by itself",
        ),
        _ => return Ok(()),
    };
    let host = &call.engine.address.host;
    let message = format!("The engine at {host} does not see the files of this host: {what}");
    Err(Fault::new(Reason::Unimplemented, message).advice(advice))
}

impl There {
    /// The home itself, as the engine's host calls it.
    pub fn root(&self, tool: &str) -> PathBuf {
        self.volume.path.join(format!(".{tool}"))
    }

    pub async fn run(&self, call: &Call<'_>) -> Result<Outcome> {
        if matches!(call.command, Commands::Start(_)) {
            self.bring_image(call).await?;
        }
        let mut argv = call.argv.clone();
        if let Commands::Start(args) = call.command
            && let Some(file) = &args.file
        {
            argv = from_stdin(&argv, file);
        }
        let mut errand = self.errand(call, argv, call.input(), call.keeps());
        let mut packing = None;
        if let Some(packed) = files::pack(call.command)? {
            let tool = call.argv.iter().take(1).cloned();
            errand.argv = tool.chain(packed.words).chain(call.globals.words(&call.ctx.profile)).collect();
            errand.luggage = packed.luggage;
            errand.input = packed.input.unwrap_or(errand.input);
            packing = packed.packing;
        }
        let outcome = self.go(call, errand).await?;
        if let Some(packing) = packing {
            // The command may have ended before it read all; then it has said why.
            packing.await?.or_else(|e| if gave_up(&e) { Ok(()) } else { Err(e) })?;
        }
        if let Commands::Delete(args) = call.command
            && args.purge
            && outcome.code == 0
        {
            self.purge(call).await?;
        }
        Ok(outcome)
    }

    /// Runs it there, and takes what it has handed out.
    async fn go(&self, call: &Call<'_>, errand: Errand) -> Result<Outcome> {
        let known = self.own.all(&call.ctx.home);
        let outcome = call.engine.run(errand).await?;
        mirror::update(call.ctx, &self.own, &known, outcome.fetched.as_deref())?;
        Ok(outcome)
    }

    /// The command there knows of its own home only.
    async fn purge(&self, call: &Call<'_>) -> Result<()> {
        let (ctx, home) = (call.ctx, &call.ctx.home);
        call.engine.remove_volume(&self.volume).await?;
        mirror::forget_all(home, &self.own)?;
        let is_empty = others::of(home, By::There(&self.own)).is_empty() && !delete::has_machines(home);
        if is_empty {
            return delete::purge(ctx);
        }
        let root = home.root().display();
        ctx.warn(format!("{root} has clusters that are not at this engine, and is kept"));
        Ok(())
    }

    fn errand(&self, call: &Call<'_>, argv: Vec<String>, input: Input, keep: bool) -> Errand {
        let path = &self.volume.path;
        let mut env = call.variables();
        // All that names a place here means nothing there.
        env.retain(|(name, _)| {
            !["KUBECONFIG", "TMPDIR", "PATH"].contains(&name.as_str())
                && !["MANYKUBE_HOME", "MANYKUBE_CACHE", "MINIKUBE_HOME", "HOME"].contains(&name.as_str())
                && !name.starts_with("DOCKER_")
                && !name.starts_with("GO")
        });
        let at = |name: &str| path.join(name).to_string_lossy().into_owned();
        let handout = handout::new_name();
        env.extend([
            ("HOME".to_owned(), at("")),
            ("KUBECONFIG".to_owned(), at("kubeconfig")),
            ("PATH".to_owned(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            (handout::VARIABLE.to_owned(), at(&handout)),
        ]);
        let fetch = path.join(&handout);
        let send = mirror::settings(call.ctx).unwrap_or_default();
        let home = Place::There { volume: self.volume.clone(), send, fetch };
        Errand { argv, env, dir: path.clone(), home, luggage: Luggage::default(), input, keep }
    }

    /// The node image of this host, unless it is there or this host has none either.
    async fn bring_image(&self, call: &Call<'_>) -> Result<()> {
        let Commands::Start(args) = call.command else { return Ok(()) };
        let Some(version) = commands::start::stored_version(call.ctx, args)? else { return Ok(()) };
        let store = image::Store::new(call.ctx.home.cache());
        let Ok(Some(found)) = store.find(&version) else { return Ok(()) };
        let tool = call.argv.first().cloned().unwrap_or_default();
        let node_image = |words: &[&str]| {
            [tool.as_str(), "node-image"].iter().chain(words).map(|w| (*w).to_owned()).collect::<Vec<_>>()
        };
        if !self.volume.fresh && !mirror::has_image(&call.ctx.home, &self.own, &found.name) {
            // Another host, or a command that was cut short, may have brought it.
            let asked = self.errand(call, node_image(&["list"]), Input::Nothing, true);
            self.go(call, asked).await?;
        }
        if mirror::has_image(&call.ctx.home, &self.own, &found.name) {
            return Ok(());
        }
        let message = format!("Bringing the node image {} to the engine ...", found.name);
        call.ctx.emit(Event::info(Style::Waiting, message));
        let (reader, writer) = std::io::pipe().context("make a pipe")?;
        let name = found.name.clone();
        let packing = tokio::task::spawn_blocking(move || store.export_to(&name, writer, &|_, _| {}));
        let from = tokio::fs::File::from_std(std::os::fd::OwnedFd::from(reader).into());
        let import = node_image(&["import", "-"]);
        let brought = self.go(call, self.errand(call, import, Input::Stream(Box::new(from)), true)).await?;
        if brought.code != 0 {
            anyhow::bail!("the engine's host did not take the node image {}", found.name);
        }
        packing.await?.with_context(|| format!("pack the node image {}", found.name))
    }
}

/// The same command line with its file read from standard input.
fn from_stdin(argv: &[String], file: &str) -> Vec<String> {
    let mut value_next = false;
    let word = |word: &String| {
        let is_value = std::mem::replace(&mut value_next, word == "-f" || word == "--file");
        match word.as_str() {
            _ if is_value => "-".to_owned(),
            w if w == format!("--file={file}") => "--file=-".to_owned(),
            w if w == format!("-f{file}") || w == format!("-f={file}") => "-f-".to_owned(),
            w => w.to_owned(),
        }
    };
    argv.iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_goes_along() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, want) in [
            ("m start -f c.yaml --ha", "m start -f - --ha"),
            ("m start --file=c.yaml", "m start --file=-"),
            ("m start -fc.yaml", "m start -f-"),
            ("m start --file c.yaml -p x", "m start --file - -p x"),
        ] {
            assert_eq!(from_stdin(&words(line), "c.yaml"), words(want));
        }
    }
}
