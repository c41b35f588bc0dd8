//! `driver list`: what this host can make nodes of, and what it takes where it cannot.

use anyhow::Result;
use model::{DriverKind, Fault};
use serde_json::json;

use super::print;
use crate::core;
use crate::ctx::Ctx;
use crate::table::{self, Format};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// List the drivers, whether they work here, and what is missing
    List {
        /// table or json
        #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
        output: Format,
    },
}

/// A driver as this host has it.
struct Row {
    kind: DriverKind,
    /// Taken when none is named.
    default: bool,
    missing: Option<Fault>,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let Command::List { output } = &args.command;
    let rows = ctx.run(async { Ok(rows(ctx).await) })?;
    print(&match output {
        Format::Table => text(&rows),
        Format::Json => format!("{}\n", json(&rows)),
    });
    Ok(0)
}

/// In the order in which they are chosen.
async fn rows(ctx: &Ctx) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for kind in [DriverKind::Docker, DriverKind::Native, DriverKind::Podman] {
        let missing = core::preflight(ctx, kind).await.err();
        // podman is for those who ask for it.
        let chosen = missing.is_none() && kind != DriverKind::Podman;
        let default = chosen && !rows.iter().any(|r| r.default);
        rows.push(Row { kind, default, missing });
    }
    rows
}

fn what(kind: DriverKind) -> &'static str {
    match kind {
        DriverKind::Docker => "containers of a Docker engine of this host",
        DriverKind::Podman => "containers of podman's service on this host",
        DriverKind::Native => "namespaces, made by manykube itself",
    }
}

fn text(rows: &[Row]) -> String {
    let cells = rows.iter().map(|row| {
        let (works, fault) = match &row.missing {
            None if row.default => ("yes, the default", None),
            None => ("yes", None),
            Some(fault) => ("no", Some(fault)),
        };
        let advice = |f: &Fault| f.advice.clone().unwrap_or_default();
        let missing = fault.map(|f| format!("{}\n{}", f.message, advice(f))).unwrap_or_default();
        vec![row.kind.to_string(), what(row.kind).to_owned(), works.to_owned(), missing]
    });
    table::render(&["Driver", "Nodes are", "Works here", "What is missing"], &cells.collect::<Vec<_>>())
}

fn json(rows: &[Row]) -> serde_json::Value {
    let row = |r: &Row| {
        let fault = r.missing.as_ref();
        json!({
            "Name": r.kind.to_string(),
            "Works": fault.is_none(),
            "Default": r.default,
            "Missing": fault.map(|f| &f.message),
            "Advice": fault.and_then(|f| f.advice.as_ref()),
        })
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Reason;

    #[test]
    fn what_is_missing_and_how_to_get_it() {
        let fault = Fault::new(Reason::DriverNotHealthy, "no engine").advice("start one");
        let rows = [
            Row { kind: DriverKind::Docker, default: false, missing: Some(fault) },
            Row { kind: DriverKind::Native, default: true, missing: None },
        ];
        let text = text(&rows);
        assert!(
            text.contains("no engine") && text.contains("start one") && text.contains("yes, the default")
        );
        assert_eq!(json(&rows)[0]["Works"], false);
        assert_eq!(json(&rows)[1]["Default"], true);
    }
}
