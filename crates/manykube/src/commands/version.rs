//! `version`.

use anyhow::Result;
use serde_json::{Map, Value};

use super::{components, print};
use crate::ctx::Ctx;
use crate::version::{COMMIT, VERSION};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Json,
    Yaml,
}

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Only the version
    #[arg(long)]
    pub short: bool,
    /// json or yaml
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub output: Option<Format>,
    /// Also of the programs in the nodes of a cluster that runs
    #[arg(long)]
    pub components: bool,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let parts = if args.components { components::ask(ctx)? } else { Vec::new() };
    print(&text(ctx.tool, args.short, args.output, &parts));
    Ok(0)
}

fn text(tool: &str, short: bool, output: Option<Format>, parts: &[(String, String)]) -> String {
    let mut all = Vec::new();
    if !short {
        all.push(("commit", COMMIT));
    }
    all.push(("minikubeVersion", VERSION));
    all.extend(parts.iter().map(|(name, version)| (name.as_str(), version.as_str())));
    match output {
        Some(Format::Json) => {
            let map: Map<String, Value> = all.into_iter().map(|(k, v)| (k.to_owned(), v.into())).collect();
            Value::Object(map).to_string()
        }
        Some(Format::Yaml) => all.iter().map(|(key, value)| format!("{key}: {value}\n")).collect(),
        None if short => format!("{VERSION}\n"),
        None => {
            let parts = parts.iter().map(|(name, version)| format!("\n{name}:\n{version}\n"));
            format!("{tool} version: {VERSION}\ncommit: {COMMIT}\n") + &parts.collect::<String>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        assert_eq!(text("minikube", true, None, &[]), format!("{VERSION}\n"));
        assert!(text("minikube", false, None, &[]).starts_with("minikube version: v"));
        let parts = [("runc".to_owned(), "1.4.0".to_owned())];
        let json: serde_json::Value =
            serde_json::from_str(&text("x", false, Some(Format::Json), &parts)).unwrap();
        assert_eq!((&json["minikubeVersion"], &json["runc"]), (&VERSION.into(), &"1.4.0".into()));
        assert!(text("x", false, Some(Format::Yaml), &[]).contains("\nminikubeVersion: v"));
    }
}
