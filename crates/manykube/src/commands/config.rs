//! `config`: settings that outlive a command.

use anyhow::Result;
use model::{DriverKind, Fault, Reason};
use serde_json::Value;

use super::print;
use super::version::Format;
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
    /// Print the cluster file of a cluster: what start -f would make the same one from
    Export,
    /// Print a setting
    Get { key: String },
    /// Change a setting
    Set { key: String, value: String },
    /// Forget a setting
    Unset { key: String },
    /// Print the values that a setting can have
    Defaults {
        /// driver, container-runtime or kubernetes-version
        #[arg(value_name = "PROPERTY")]
        key: String,
        /// json or yaml
        #[arg(short, long, value_enum, value_name = "FORMAT")]
        output: Option<super::version::Format>,
    },
    /// Print all settings
    View {
        /// A Go template: {{.ConfigKey}} {{.ConfigValue}}
        #[arg(long, value_name = "TEMPLATE")]
        format: Option<String>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Bool,
    Int,
}

use Kind::{Bool, Int, Text};

/// What can be set; `true`: it takes effect on a new cluster only.
const KEYS: &[(&str, Kind, bool)] = &[
    ("driver", Text, true),
    ("vm-driver", Text, true),
    ("container-runtime", Text, true),
    ("feature-gates", Text, true),
    ("v", Int, false),
    ("cpus", Text, true),
    ("disk-size", Text, true),
    ("host-only-cidr", Text, false),
    ("memory", Text, true),
    ("log_dir", Text, false),
    ("kubernetes-version", Text, false),
    ("iso-url", Text, false),
    ("WantUpdateNotification", Bool, false),
    ("WantBetaUpdateNotification", Bool, false),
    ("ReminderWaitPeriodInHours", Int, false),
    ("WantNoneDriverWarning", Bool, false),
    ("WantVirtualBoxDriverWarning", Bool, false),
    ("profile", Text, false),
    ("bootstrapper", Text, false),
    ("insecure-registry", Text, false),
    ("hyperv-virtual-switch", Text, false),
    ("disable-driver-mounts", Bool, false),
    ("EmbedCerts", Bool, false),
    ("native-ssh", Bool, false),
    ("rootless", Bool, false),
    ("MaxAuditEntries", Int, false),
    ("dns-servers", Text, false),
    ("mdns", Bool, false),
];

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    match &args.command {
        Command::Export => {
            let file = cluster_file::export(&super::cluster::load(ctx)?);
            print(&cluster_file::write(&file).map_err(|e| anyhow::anyhow!("write the cluster file: {e}"))?);
        }
        Command::Get { key } => match settings::load(&ctx.home)?.get(key) {
            Some(value) => print(&format!("{}\n", text(value))),
            None => {
                eprintln!("Error: specified key could not be found in config");
                return Ok(Reason::Usage.exit_code());
            }
        },
        Command::Set { key, value } => {
            let (kind, late) = known(key)?;
            settings::set(&ctx.home, key, Some(typed(key, value, kind)?))?;
            if late {
                ctx.warn("These changes will take effect upon a minikube delete and then a minikube start");
            }
        }
        Command::Unset { key } => {
            known(key)?;
            settings::set(&ctx.home, key, None)?;
        }
        Command::Defaults { key, output } => print(&defaults(key, *output)?),
        Command::View { format } => {
            let format = format.as_deref().unwrap_or("- {{.ConfigKey}}: {{.ConfigValue}}\n");
            for (key, value) in settings::load(&ctx.home)? {
                let field = |name: &str| match name {
                    "ConfigKey" => Some(key.clone()),
                    "ConfigValue" => Some(text(&value)),
                    _ => None,
                };
                let line = template::render(format, &field)
                    .map_err(|e| Fault::new(Reason::Usage, format!("--format: {e}")))?;
                print(&line);
            }
        }
    }
    Ok(0)
}

fn defaults(key: &str, output: Option<Format>) -> Result<String, Fault> {
    let values: Vec<String> = match key {
        "driver" => DriverKind::ALL.map(|kind| kind.to_string()).to_vec(),
        "container-runtime" => vec!["containerd".to_owned()],
        "kubernetes-version" => image::known_versions().into_iter().map(str::to_owned).collect(),
        _ => {
            return Err(Fault::new(Reason::Usage, format!("{key:?} has no list of values"))
                .advice("Those that have one: driver, container-runtime, kubernetes-version"));
        }
    };
    Ok(match output {
        Some(Format::Json) => serde_json::json!(values).to_string(),
        Some(Format::Yaml) => values.iter().map(|v| format!("- {v}\n")).collect(),
        None => values.iter().map(|v| format!("* {v}\n")).collect(),
    })
}

fn known(key: &str) -> Result<(Kind, bool), Fault> {
    let found = KEYS.iter().find(|(name, ..)| *name == key).map(|&(_, kind, late)| (kind, late));
    found.ok_or_else(|| {
        let names: Vec<&str> = KEYS.iter().map(|(name, ..)| *name).collect();
        Fault::new(Reason::Usage, format!("Property name {key:?} not found"))
            .advice(format!("Known: {}", names.join(" ")))
    })
}

/// Checked when it is set, not when a start trips over it.
fn typed(key: &str, value: &str, kind: Kind) -> Result<Value, Fault> {
    let wrong = |what: &str| Fault::new(Reason::Usage, format!("{key}: {value:?} is not {what}"));
    match (key, kind) {
        ("memory", _) => drop(model::resources::parse_memory(value)?),
        ("cpus", _) => drop(model::resources::parse_cpus(value)?),
        ("disk-size", _) => drop(model::resources::parse_disk(value)?),
        ("profile", _) => super::profile::check_name(value)?,
        _ => {}
    }
    match kind {
        Text => Ok(value.into()),
        Bool => value.parse::<bool>().map(Value::from).map_err(|_| wrong("true or false")),
        Int => value.parse::<i64>().map(Value::from).map_err(|_| wrong("a number")),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        assert_eq!(typed("memory", "4g", Text).unwrap(), "4g");
        assert_eq!(typed("native-ssh", "false", Bool).unwrap(), false);
        assert_eq!(typed("v", "3", Int).unwrap(), 3);
        for (key, value, kind) in
            [("memory", "x", Text), ("native-ssh", "x", Bool), ("v", "x", Int), ("profile", "../x", Text)]
        {
            assert!(typed(key, value, kind).is_err(), "{key}");
        }
        assert_eq!(known("frob").err().unwrap().reason.exit_code(), 14);
    }
}
