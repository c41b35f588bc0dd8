//! The node image as part of a start.

use anyhow::Result;
use image::{BuildEvent, BuildOptions, Damaged, Store};
use model::{Fault, Reason};

use crate::ctx::Ctx;
use crate::report::{Event, Style};

/// Builds the image of a version that is not in the store.
pub async fn build(ctx: &Ctx, version: &str) -> Result<()> {
    let missing = image::missing_tools();
    if !missing.is_empty() {
        let packages: Vec<&str> = missing.iter().map(|t| t.package).collect();
        return Err(Fault::new(Reason::ProviderNotFound, format!("No node image of Kubernetes {version} is in the store, and this host lacks what it takes to build one"))
            .advice(format!("Install: apt-get install {} (or '{} node-image import FILE')", packages.join(" "), ctx.tool))
            .into());
    }
    let options =
        BuildOptions { log: Some(ctx.home.logs().join(format!("node-image-{version}.log"))), jobs: None };
    let show = |event: BuildEvent| {
        if let BuildEvent::Finished { component, elapsed, cached: false } = event {
            ctx.emit(Event::info(
                Style::Option,
                format!("{component} built in {:.0} s", elapsed.as_secs_f32()),
            ));
        }
    };
    image::build(&Store::new(ctx.home.cache()), version, options, &show).await.map(drop)
}

/// A node must not be made of an image that is not what was built.
pub fn damaged(damage: Damaged) -> Fault {
    Fault::new(Reason::ImageUnusable, format!("The node image is damaged: {damage}"))
        .advice("Remove it with 'manykube node-image rm' and build or import it again")
}
