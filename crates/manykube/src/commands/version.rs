//! `version`.

use anyhow::Result;

use super::print;
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
    #[arg(long, hide = true)]
    components: bool,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    print(&text(ctx.tool, args.short, args.output));
    Ok(0)
}

fn text(tool: &str, short: bool, output: Option<Format>) -> String {
    match (output, short) {
        (Some(Format::Json), true) => serde_json::json!({ "minikubeVersion": VERSION }).to_string(),
        (Some(Format::Json), false) => {
            serde_json::json!({ "commit": COMMIT, "minikubeVersion": VERSION }).to_string()
        }
        (Some(Format::Yaml), true) => format!("minikubeVersion: {VERSION}\n"),
        (Some(Format::Yaml), false) => format!("commit: {COMMIT}\nminikubeVersion: {VERSION}\n"),
        (None, true) => format!("{VERSION}\n"),
        (None, false) => format!("{tool} version: {VERSION}\ncommit: {COMMIT}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        assert_eq!(text("minikube", true, None), format!("{VERSION}\n"));
        assert!(text("minikube", false, None).starts_with("minikube version: v"));
        let json: serde_json::Value = serde_json::from_str(&text("x", false, Some(Format::Json))).unwrap();
        assert_eq!(json["minikubeVersion"], VERSION);
        assert!(text("x", false, Some(Format::Yaml)).contains("\nminikubeVersion: v"));
    }
}
