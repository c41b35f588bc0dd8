//! Builds a node image: `cargo run --release -p image --example build -- [VERSION] [CACHE]`.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use image::{BuildEvent, BuildOptions, Store};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let version = image::resolve_version(&arguments.next().unwrap_or("stable".into()))?;
    let cache = match arguments.next() {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".manykube/cache"),
    };
    let started = Instant::now();
    let show = |event: BuildEvent| println!("{:7.1} {event:?}", started.elapsed().as_secs_f32());
    let store = Store::new(&cache);
    let built = tokio::select! {
        built = image::build(&store, &version, BuildOptions::default(), &show) => built?,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("cancelled"),
    };
    println!("{}: {}", built.dir.display(), image::human_size(built.manifest.size));
    Ok(())
}
