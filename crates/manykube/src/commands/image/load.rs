//! `image load`: from wherever an image may be.

use anyhow::Result;
use containers::archive::Archive;
use model::{Fault, Reason};

use super::args::LoadArgs;
use super::{cluster, later, stores};
use crate::core::containers::{self as images, Source};
use crate::ctx::Ctx;
use crate::state::lock::ProfileLock;

pub fn run(ctx: &Ctx, args: &LoadArgs) -> Result<()> {
    let sources = args.sources.iter().map(|s| Source::of(s)).collect::<Result<Vec<_>, _>>()?;
    ctx.run(load(ctx, args, sources))
}

/// An archive that is kept on the host.
pub fn load_file(ctx: &Ctx, path: &std::path::Path) -> Result<()> {
    let args = LoadArgs { overwrite: true, ..LoadArgs::default() };
    ctx.run(load(ctx, &args, vec![Source::File(path.to_string_lossy().into_owned())]))
}

/// An image from the Docker engine or a registry.
pub async fn load_named(ctx: &Ctx, name: &str) -> Result<()> {
    let args = LoadArgs { overwrite: true, ..LoadArgs::default() };
    load(ctx, &args, vec![Source::Named(name.to_owned())]).await
}

async fn load(ctx: &Ctx, args: &LoadArgs, sources: Vec<Source>) -> Result<()> {
    cluster(ctx)?;
    for source in sources {
        let archive = archive(args, &source).await?;
        // Reading may take long: only now is the cluster kept from others.
        let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
        let cluster = cluster(ctx)?;
        let stores = stores(ctx, &cluster, &args.node).await?;
        if !args.overwrite && there(&stores, archive.as_ref(), &source).await? {
            continue;
        }
        match (archive, source) {
            (Some(archive), _) => images::load(ctx, &cluster, &stores, &archive).await?,
            (None, Source::Named(name)) => images::pull(ctx, &cluster, &stores, &name).await?,
            (None, _) => {}
        }
        later(ctx, &stores);
    }
    Ok(())
}

/// `None`: ask the registry.
async fn archive(args: &LoadArgs, source: &Source) -> Result<Option<Archive>> {
    match source {
        Source::Named(name) if args.daemon => images::engine(name).await?.map(Some).map_err(|said| {
            let message = format!("The Docker engine did not give {name}: {said}");
            Fault::new(Reason::ImageLoad, message).into()
        }),
        Source::Named(_) if args.remote || args.pull => Ok(None),
        _ => images::open(source).await,
    }
}

/// Have all nodes images of these names?
async fn there(stores: &images::Stores, archive: Option<&Archive>, source: &Source) -> Result<bool> {
    let names: Vec<&String> = match (archive, source) {
        (Some(archive), _) => archive.names().collect(),
        (None, Source::Named(name)) => vec![name],
        (None, _) => Vec::new(),
    };
    for node in &stores.running {
        for name in &names {
            if node.client.image(name).await?.is_none() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
