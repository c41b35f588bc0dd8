//! Times what every `start` does with an image: `cargo run --release -p image --example measure -- [CACHE]`.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use image::Store;

fn main() -> Result<()> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".manykube/cache"));
    let cache = std::env::args().nth(1).map(PathBuf::from).or_else(home).context("HOME is not set")?;
    let store = Store::new(&cache);
    let found = timed("find", || store.find(image::default_version()))?.context("there is no such image")?;
    timed("check", || found.check())?;
    timed("verify", || found.verify())?;
    for _ in 0..3 {
        let node = tempfile::tempdir_in(&cache)?;
        timed("clone_var", || found.clone_var(&node.path().join("var")))?;
    }
    Ok(())
}

fn timed<T, E>(what: &str, run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let started = Instant::now();
    let result = run();
    println!("{what:10} {:8.1} ms", started.elapsed().as_secs_f64() * 1000.0);
    result
}
