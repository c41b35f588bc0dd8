//! `node-image pull` and `push`.

use anyhow::Result;
use image::Store;
use image::registry::{self, Reference};

use crate::core::layers;
use crate::ctx::Ctx;
use crate::host;
use crate::report::{Event, Style};
use model::{Fault, Reason};

pub fn pull(ctx: &Ctx, store: &Store, asked: &str, insecure: bool) -> Result<()> {
    let failed = |error| layers::cannot("pulled", asked, error);
    let reference: Reference = asked.parse().map_err(|e: registry::RegistryError| failed(e.into()))?;
    needs_root("Taking a node image")?;
    let phase = format!("Pulling the node image {asked}");
    let work = layers::shown(ctx, &phase, |progress| registry::pull(store, &reference, insecure, progress));
    let (image, digest) = ctx.run(work).map_err(failed)?;
    ctx.emit(Event::info(Style::Ready, format!("The node image {} is ready ({digest})", image.name)));
    Ok(())
}

pub fn push(ctx: &Ctx, store: &Store, name: &str, asked: &str, insecure: bool) -> Result<()> {
    let failed = |error| layers::cannot("pushed", asked, error);
    let reference: Reference = asked.parse().map_err(|e: registry::RegistryError| failed(e.into()))?;
    if reference.digest().is_some() {
        let message = format!("{asked} has a digest: what an image is called is chosen, its digest is not");
        return Err(Fault::new(Reason::Usage, message).advice("Leave out the part from @ on").into());
    }
    let image = store.get(name)?;
    image.check().map_err(crate::core::damaged)?;
    let phase = format!("Pushing the node image {name} to {asked}");
    let work =
        layers::shown(ctx, &phase, |progress| registry::push(store, &image, &reference, insecure, progress));
    let digest = ctx.run(work).map_err(failed)?;
    ctx.emit(Event::info(Style::Ready, format!("Pushed {name} as {asked} ({digest})")));
    Ok(())
}

/// The files of an image belong to root.
fn needs_root(what: &str) -> Result<(), Fault> {
    if host::is_root() {
        return Ok(());
    }
    let message = format!("{what} requires root privileges: its files are root's.");
    Err(Fault::new(Reason::DriverNeedsRoot, message).advice("Run the same command with sudo -E"))
}
