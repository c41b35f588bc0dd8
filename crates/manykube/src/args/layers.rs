//! A flag that is not on the command line may come from the environment or from `config/config.json`.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use serde_json::{Map, Value};

/// Of every command; all others are looked up for `start` only.
fn is_global(arg: &clap::Arg) -> bool {
    arg.get_long().is_some_and(|long| long != "help")
}

/// `--flag=value` for every flag that another layer sets.
pub fn extra_args(
    root: &Command,
    matches: &ArgMatches,
    env: &dyn Fn(&str) -> Option<String>,
    config: &Map<String, Value>,
) -> Vec<OsString> {
    let Some((name, sub)) = matches.subcommand() else { return Vec::new() };
    let Some(command) = root.find_subcommand(name) else { return Vec::new() };
    let own = command.get_arguments().filter(|_| name == "start");
    let global = root.get_arguments().filter(|a| is_global(a));
    let given = |id: &str| {
        let of = |m: &ArgMatches| {
            matches!(m.try_contains_id(id), Ok(true)) && m.value_source(id) == Some(ValueSource::CommandLine)
        };
        of(matches) || of(innermost(sub))
    };
    own.chain(global)
        .filter(|arg| !given(arg.get_id().as_str()))
        .filter_map(|arg| {
            let long = arg.get_long()?;
            let value = from_env(long, env).or_else(|| from_config(long, config))?;
            Some(format!("--{long}={value}").into())
        })
        .collect()
}

fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, sub)| innermost(sub))
}

/// `MANYKUBE_X`, then `MINIKUBE_X`.
fn from_env(flag: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let name = flag.to_ascii_uppercase().replace('-', "_");
    ["MANYKUBE", "MINIKUBE"]
        .iter()
        .find_map(|prefix| env(&format!("{prefix}_{name}")))
        .filter(|v| !v.is_empty())
}

fn from_config(flag: &str, config: &Map<String, Value>) -> Option<String> {
    // minikube's own spelling of these two keys differs from the flag's.
    let keys: &[&str] = match flag {
        "embed-certs" => &["embed-certs", "EmbedCerts"],
        "driver" => &["driver", "vm-driver"],
        _ => &[flag],
    };
    keys.iter().find_map(|key| match config.get(*key)? {
        Value::String(s) if s.is_empty() => None,
        Value::String(s) => Some(s.clone()),
        Value::Bool(b) => Some(b.to_string()),
        Value::Number(n) => Some(n.to_string()),
        _ => None,
    })
}

/// The command line with `extra` where flags may still stand.
pub fn with_extra(mut argv: Vec<OsString>, extra: Vec<OsString>) -> Vec<OsString> {
    let end = argv.iter().position(|a| a == "--").unwrap_or(argv.len());
    argv.splice(end..end, extra);
    argv
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use serde_json::json;

    use super::*;
    use crate::args::{Cli, grammar};

    fn extra(line: &str, env: &[(&str, &str)], config: Value) -> Vec<String> {
        let root = grammar::pflag(Cli::command());
        let words = std::iter::once("manykube").chain(line.split_whitespace());
        let matches = root.clone().try_get_matches_from(words).unwrap();
        let env = |k: &str| env.iter().find(|(n, _)| *n == k).map(|(_, v)| (*v).to_owned());
        let mut list: Vec<_> = extra_args(&root, &matches, &env, config.as_object().unwrap())
            .into_iter()
            .map(|a| a.into_string().unwrap())
            .collect();
        list.sort();
        list
    }

    #[test]
    fn the_command_line_beats_the_environment_beats_the_file() {
        let env = [
            ("MINIKUBE_MEMORY", "4g"),
            ("MINIKUBE_CPUS", "3"),
            ("MANYKUBE_CPUS", "4"),
            ("MINIKUBE_HOME", "/x"),
        ];
        let config = json!({ "memory": "2g", "driver": "native", "cpus": 9, "profile": "demo", "WantUpdateNotification": false });
        assert_eq!(
            extra("start --memory=8g", &env, config.clone()),
            ["--cpus=4", "--driver=native", "--profile=demo"]
        );
        assert_eq!(extra("status", &env, config.clone()), ["--profile=demo"]);
        assert!(extra("status -p other", &env, config.clone()).is_empty());
        assert!(extra("node list -p other", &env, config.clone()).is_empty());
        assert!(extra("-p other node list", &env, config).is_empty());
    }

    #[test]
    fn extra_flags_stand_before_the_dashes() {
        let argv = ["mk", "ssh", "--", "ls", "-l"].map(OsString::from).to_vec();
        let line = with_extra(argv, vec!["--profile=x".into()]);
        assert_eq!(line, ["mk", "ssh", "--profile=x", "--", "ls", "-l"]);
    }
}
