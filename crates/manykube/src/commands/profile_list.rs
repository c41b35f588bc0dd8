//! `profile list`: all clusters at a glance.

use anyhow::Result;
use futures::future::join_all;
use model::config_file::ConfigFile;
use model::status::cluster_word;
use model::{Fault, Reason};
use serde_json::{Value, json};

use super::{cluster as common, print};
use crate::ctx::Ctx;
use crate::inside::others::{self, Other};
use crate::kubeconfig::{self, document};
use crate::report::style;
use crate::state::{history, profile};
use crate::table::{self, Format};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// table or json
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
    /// Do not ask the clusters for their state
    #[arg(short, long)]
    pub light: bool,
    /// Also show the API server's port
    #[arg(short, long)]
    pub detailed: bool,
}

struct Row {
    file: ConfigFile,
    status: String,
    active: bool,
    context: bool,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let mut invalid = Vec::new();
    let mut files = Vec::new();
    for (name, file) in profile::list(&ctx.home)? {
        match file {
            Ok(file) => files.push(file),
            Err(fault) => invalid.push((name, fault)),
        }
    }
    let machines =
        |name: &str| files.iter().any(|f| f.cluster.nodes.iter().any(|n| f.cluster.machine(n) == name));
    invalid.retain(|(name, _)| !machines(name));
    let others = others::here(&ctx.home);
    let words = if args.light {
        vec!["Skipped".to_owned(); files.len()]
    } else {
        ctx.run(async { Ok(join_all(files.iter().map(|f| word(ctx, f, &others))).await) })?
    };
    let current = match args.light {
        true => String::new(),
        false => {
            let doc = kubeconfig::read(&common::kubeconfig_path()).unwrap_or_default();
            document::current_context(&doc).to_owned()
        }
    };
    let row = |(file, status): (ConfigFile, String)| {
        let name = &file.cluster.name;
        Row { status, active: *name == ctx.profile, context: *name == current, file }
    };
    let rows: Vec<Row> = files.into_iter().zip(words).map(row).collect();
    match args.output {
        Format::Json => print(&json(&rows, &invalid).to_string()),
        Format::Table => {
            if rows.is_empty() && invalid.is_empty() {
                return Err(Fault::new(Reason::UsageNoProfile, "No minikube profile was found.")
                    .advice(format!("You can create one using: {} start", ctx.tool))
                    .into());
            }
            if !rows.is_empty() {
                print(&text(&rows, args.detailed, style::in_style()));
            }
            for (name, fault) in &invalid {
                ctx.warn(format!("Found an invalid profile: {name}: {}", fault.message));
            }
        }
    }
    if !args.light {
        others::warn(ctx, &others);
    }
    Ok(0)
}

/// A cluster that cannot be asked has no word, as in minikube.
async fn word(ctx: &Ctx, file: &ConfigFile, others: &[Other]) -> String {
    if others.iter().any(|other| other.name == file.cluster.name) {
        return String::new();
    }
    let Ok(nodes) = common::statuses(ctx, &file.cluster).await else { return String::new() };
    let history = history::load(&ctx.home, &file.cluster.name);
    cluster_word(&nodes, file.cluster.is_ha(), history.as_ref()).name
}

fn json(rows: &[Row], invalid: &[(String, Fault)]) -> Value {
    let valid = rows.iter().map(|r| {
        json!({
            "Name": r.file.cluster.name,
            "Status": r.status,
            "Config": r.file.raw,
            "Active": r.active,
            "ActiveKubeContext": r.context,
        })
    });
    let broken = invalid.iter().map(|(name, _)| {
        json!({ "Name": name, "Status": "", "Config": null, "Active": false, "ActiveKubeContext": false })
    });
    json!({ "invalid": broken.collect::<Vec<_>>(), "valid": valid.collect::<Vec<_>>() })
}

fn coloured(word: &str) -> String {
    let colour = match word {
        "Running" | "OK" | "Configured" | "HAppy" => 32,
        "Stopped" | "Paused" | "Skipped" | "" => return word.to_owned(),
        _ => 31,
    };
    format!("\u{1b}[{colour}m{word}\u{1b}[0m")
}

fn text(rows: &[Row], detailed: bool, colour: bool) -> String {
    let mut headers = vec!["Profile", "Driver", "Runtime", "IP"];
    if detailed {
        headers.push("Port");
    }
    headers.extend(["Version", "Status", "Nodes", "Active Profile", "Active Kubecontext"]);
    let mark = |set: bool| if set { "*" } else { "" }.to_owned();
    let cells = rows.iter().map(|r| {
        let c = &r.file.cluster;
        let ip = c.endpoint().map(|ip| ip.to_string()).unwrap_or_default();
        // Until it is started here, its machines are minikube's.
        let driver = r.file.migrated.as_ref().map_or_else(|| c.driver.to_string(), |m| m.driver.clone());
        let mut cells = vec![c.name.clone(), driver, "containerd".to_owned(), ip];
        if detailed {
            cells.push(c.api_port.to_string());
        }
        let status = if colour { coloured(&r.status) } else { r.status.clone() };
        cells.extend([c.kubernetes_version.clone(), status, c.nodes.len().to_string()]);
        cells.extend([mark(r.active), mark(r.context)]);
        cells
    });
    table::render(&headers, &cells.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::sample;

    fn row() -> Row {
        let file =
            model::config_file::parse(&model::config_file::render_text(&sample("demo"), None)).unwrap();
        Row { file, status: "OK".into(), active: true, context: false }
    }

    #[test]
    fn golden_table() {
        assert_eq!(
            text(&[row()], false, false),
            "\
┌─────────┬────────┬────────────┬──────────────┬─────────┬────────┬───────┬────────────────┬────────────────────┐
│ Profile │ Driver │  Runtime   │      IP      │ Version │ Status │ Nodes │ Active Profile │ Active Kubecontext │
├─────────┼────────┼────────────┼──────────────┼─────────┼────────┼───────┼────────────────┼────────────────────┤
│ demo    │ native │ containerd │ 192.168.49.2 │ v1.37.1 │ OK     │ 1     │ *              │                    │
└─────────┴────────┴────────────┴──────────────┴─────────┴────────┴───────┴────────────────┴────────────────────┘
"
        );
        assert!(text(&[row()], true, true).contains("│ 8443 │"));
    }

    #[test]
    fn json_always_has_both_lists() {
        assert_eq!(json(&[], &[]).to_string(), r#"{"invalid":[],"valid":[]}"#);
        let doc = json(&[row()], &[("bad".into(), Fault::new(Reason::ConfigLoad, "x"))]);
        assert_eq!(doc["valid"][0]["Config"]["Name"], "demo");
        assert_eq!(doc["valid"][0]["Active"], true);
        assert_eq!(doc["invalid"][0]["Config"], Value::Null);
    }
}
