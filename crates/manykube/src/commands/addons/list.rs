//! `addons list`.

use anyhow::Result;
use bootstrap::addons::catalogue::ADDONS;
use model::Cluster;
use serde_json::{Map, Value, json};

use super::print;
use crate::ctx::Ctx;
use crate::report::style;
use crate::state::profile;
use crate::table;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    #[default]
    List,
    Json,
}

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// list or json
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
    /// Accepted for minikube's sake: there is nothing more to print
    #[arg(short, long)]
    pub docs: bool,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let cluster = profile::load(&ctx.home, &ctx.profile)?.map(|f| f.cluster);
    match args.output {
        Format::Json => print(&json(cluster.as_ref()).to_string()),
        Format::List => print(&text(cluster.as_ref(), style::in_style())),
    }
    Ok(0)
}

fn is_on(cluster: &Cluster, name: &str) -> bool {
    cluster.addons.get(name).copied().unwrap_or(false)
}

fn word(on: bool) -> &'static str {
    if on { "enabled" } else { "disabled" }
}

fn json(cluster: Option<&Cluster>) -> Value {
    let entry = |name: &str| match cluster {
        Some(c) => json!({ "Profile": c.name, "Status": word(is_on(c, name)) }),
        None => json!({}),
    };
    let all: Map<String, Value> = ADDONS.iter().map(|a| (a.name.to_owned(), entry(a.name))).collect();
    Value::Object(all)
}

fn text(cluster: Option<&Cluster>, colour: bool) -> String {
    let Some(cluster) = cluster else {
        let rows = ADDONS.iter().map(|a| vec![a.name.to_owned(), a.maintainer.to_owned()]);
        return table::render(&["ADDON NAME", "MAINTAINER"], &rows.collect::<Vec<_>>());
    };
    let rows = ADDONS.iter().map(|a| {
        let on = is_on(cluster, a.name);
        let (name, mut state) = (a.name.to_owned(), word(on).to_owned());
        if on {
            state += " ✅";
        }
        if on && colour {
            state = format!("\u{1b}[32m{state}\u{1b}[0m");
        }
        vec![name, cluster.name.clone(), state, a.maintainer.to_owned()]
    });
    table::render(&["ADDON NAME", "PROFILE", "STATUS", "MAINTAINER"], &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::sample;

    #[test]
    fn the_forms() {
        let cluster = sample("demo");
        let json = json(Some(&cluster));
        assert_eq!(json["default-storageclass"], json!({ "Profile": "demo", "Status": "enabled" }));
        assert_eq!(json["ingress"]["Status"], "disabled");
        for name in ["dashboard", "ingress", "ingress-dns", "storage-provisioner"] {
            assert_eq!(super::json(None)[name], json!({}), "{name}");
        }
        let text = text(Some(&cluster), false);
        assert!(text.contains("│ storage-provisioner  │ demo    │ enabled ✅"), "{text}");
        assert!(super::text(None, false).lines().nth(1).is_some_and(|l| l.contains("ADDON NAME")));
    }
}
