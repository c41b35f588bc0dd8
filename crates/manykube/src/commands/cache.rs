//! `cache`: images that are kept on the host. minikube's older word for `image load`.

use anyhow::Result;
use model::{Fault, Home, Reason};
use serde_json::{Map, Value};

use super::image::{self, cached};
use super::print;
use crate::core::containers::image_name;
use crate::ctx::Ctx;
use crate::state::settings;
use crate::template;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Keep images on the host and load them into the nodes
    Add {
        #[arg(required = true)]
        images: Vec<String>,
        /// Into all clusters
        #[arg(long)]
        all: bool,
    },
    /// Forget images; the nodes keep them
    Delete {
        #[arg(required = true)]
        images: Vec<String>,
    },
    /// List them
    List {
        /// A Go template: {{.CacheImage}}
        #[arg(long, default_value = "{{.CacheImage}}\n")]
        format: String,
    },
    /// Load all of them into the nodes again
    Reload,
}

/// The key of config.json, whose value has an entry for each.
const KEY: &str = "cache";

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    match &args.command {
        Command::Add { images, all } => {
            ctx.warn(format!("\"cache\" is deprecated, use \"{} image load\" instead", ctx.tool));
            add(ctx, images, *all)?;
        }
        Command::Delete { images } => delete(&ctx.home, images)?,
        Command::List { format } => {
            let format = format.replace("\\n", "\n");
            for image in list(&ctx.home)?.keys() {
                let field = |name: &str| (name == "CacheImage").then(|| image.clone());
                let text = template::render(&format, &field);
                let text = text.map_err(|e| Fault::new(Reason::Usage, format!("--format: {e}")))?;
                print(&text);
            }
        }
        Command::Reload => {
            let images: Vec<String> = list(&ctx.home)?.keys().cloned().collect();
            load(ctx, &images)?;
        }
    }
    Ok(0)
}

fn list(home: &Home) -> Result<Map<String, Value>, Fault> {
    Ok(match settings::load(home)?.remove(KEY) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    })
}

/// Into this cluster first: its nodes fetch what the host does not have.
fn add(ctx: &Ctx, images: &[String], all: bool) -> Result<()> {
    let names = images.iter().map(|i| image_name(i)).collect::<Result<Vec<String>, Fault>>()?;
    for name in &names {
        image::load_and_keep(ctx, name)?;
    }
    let mut kept = list(&ctx.home)?;
    kept.extend(images.iter().map(|i| (i.clone(), Value::Null)));
    settings::set(&ctx.home, KEY, Some(Value::Object(kept)))?;
    if all {
        for (profile, _) in crate::state::profile::list(&ctx.home)? {
            if profile != ctx.profile {
                load(&ctx.of_profile(&profile), images)?;
            }
        }
    }
    Ok(())
}

fn load(ctx: &Ctx, images: &[String]) -> Result<()> {
    for image in images {
        let path = cached(&ctx.home, &image_name(image)?);
        image::load_file(ctx, &path)?;
    }
    Ok(())
}

fn delete(home: &Home, images: &[String]) -> Result<()> {
    let mut kept = list(home)?;
    for image in images {
        if kept.shift_remove(image).is_none() {
            let message = format!("The cache has no image {image:?}");
            return Err(Fault::new(Reason::Usage, message).advice("List them with 'cache list'").into());
        }
        let _ = std::fs::remove_file(cached(home, &image_name(image)?));
    }
    Ok(settings::set(home, KEY, Some(Value::Object(kept)))?)
}
