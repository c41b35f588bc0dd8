//! clap, made to read a command line as Go's pflag does, so that minikube's scripts run unchanged.

use clap::builder::{ArgAction, ValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use super::values::go_bool;

/// Applies pflag's rules to a command and all below it.
pub fn pflag(command: Command) -> Command {
    // The last of several wins; a value may begin with a dash; booleans take `=false`.
    command
        .args_override_self(true)
        .disable_help_subcommand(true)
        .mut_args(|arg| match arg.get_action() {
            ArgAction::SetTrue => boolean(arg),
            ArgAction::Set | ArgAction::Append if !arg.is_positional() && needs_value(&arg) => {
                arg.allow_hyphen_values(true)
            }
            _ => arg,
        })
        .mut_subcommands(pflag)
}

/// Where a value may be left out, the next flag is none.
fn needs_value(arg: &Arg) -> bool {
    arg.get_num_args().is_none_or(|range| range.min_values() > 0)
}

fn boolean(arg: Arg) -> Arg {
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .default_value("false")
        .hide_default_value(true)
        .hide_possible_values(true)
        .value_name("BOOL")
        .value_parser(ValueParser::from(go_bool))
}

/// clap's error as the one line that follows `Error: `.
pub fn error_line(error: &clap::Error, tool: &str) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(s)) => Some(s.clone()),
        Some(ContextValue::Strings(list)) => Some(list.join(", ")),
        _ => None,
    };
    let arg = text(ContextKind::InvalidArg).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => match arg.strip_prefix('-') {
            Some(rest) if rest.starts_with('-') => match text(ContextKind::SuggestedArg) {
                Some(similar) => format!("unknown flag: {arg}; did you mean {similar}?"),
                None => format!("unknown flag: {arg}"),
            },
            Some(rest) => format!("unknown shorthand flag: '{rest}' in {arg}"),
            None => format!("unexpected argument {arg:?}"),
        },
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            let line = format!("unknown command {name:?} for {tool:?}");
            match text(ContextKind::SuggestedSubcommand) {
                Some(similar) => format!("{line}; did you mean {similar}?"),
                None => line,
            }
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::NoEquals => {
            let value = text(ContextKind::InvalidValue).unwrap_or_default();
            // A positional that takes nothing.
            if arg.starts_with('[')
                && std::error::Error::source(error).is_some_and(|e| e.to_string().is_empty())
            {
                return format!("unexpected argument {value:?}");
            }
            let flag = arg.split([' ', '[', '=']).next().unwrap_or_default().to_owned();
            if value.is_empty() {
                return format!("flag needs an argument: {flag}");
            }
            let why = match text(ContextKind::ValidValue) {
                Some(valid) => format!("valid values: {valid}"),
                None => std::error::Error::source(error).map(ToString::to_string).unwrap_or_default(),
            };
            format!("invalid argument {value:?} for {flag:?} flag: {why}")
        }
        ErrorKind::MissingRequiredArgument => format!("missing argument: {arg}"),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a subcommand is needed; see --help".to_owned()
        }
        _ => {
            let whole = error.to_string();
            whole.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::args::{Cli, Commands};

    fn parse(line: &str) -> Result<Cli, String> {
        let words = std::iter::once("manykube").chain(line.split_whitespace());
        pflag(Cli::command())
            .try_get_matches_from(words)
            .and_then(|m| Cli::from_arg_matches(&m))
            .map_err(|e| error_line(&e, "manykube"))
    }

    #[test]
    fn clap_agrees_with_the_definition() {
        pflag(Cli::command()).debug_assert();
    }

    #[test]
    fn every_command_knows_its_name() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let line = if name == "completion" { "completion bash" } else { name };
            if let Ok(cli) = parse(line) {
                assert_eq!(cli.command.unwrap().name(), name);
            }
        }
    }

    #[test]
    fn all_forms_of_a_flag() {
        for line in [
            "status -ojson",
            "status -o=json",
            "status -o json",
            "status --output=json",
            "-p x status -o json -p demo",
        ] {
            match parse(line).unwrap().command.unwrap() {
                Commands::Status(a) => assert_eq!(a.view.output, crate::report::Output::Json, "{line}"),
                _ => panic!("{line}"),
            }
        }
        for line in ["start -n=3", "start -n3", "start -n 3", "start --nodes=1 --nodes 3"] {
            match parse(line).unwrap().command.unwrap() {
                Commands::Start(a) => assert_eq!(a.nodes, Some(3), "{line}"),
                _ => panic!("{line}"),
            }
        }
    }

    #[test]
    fn globals_go_anywhere() {
        for line in [
            "-p demo status",
            "status -p demo",
            "status -pdemo",
            "node list --profile=demo",
            "node -p demo list",
        ] {
            assert_eq!(parse(line).unwrap().globals.profile.as_deref(), Some("demo"), "{line}");
        }
        for line in [
            "status --alsologtostderr -v=5",
            "status -v 5 --logtostderr=false",
            "--user=me status --skip-audit",
        ] {
            parse(line).unwrap();
        }
    }

    #[test]
    fn lists_accumulate_and_split() {
        match parse(
            "start --wait=apiserver,kubelet --wait extra --apiserver-ips 1.2.3.4 --apiserver-ips=1.2.3.5",
        )
        .unwrap()
        .command
        .unwrap()
        {
            Commands::Start(a) => {
                assert_eq!(a.wait.unwrap(), ["apiserver", "kubelet", "extra"]);
                assert_eq!(a.apiserver_ips.len(), 2);
            }
            _ => panic!(),
        }
    }

    #[test]
    fn a_mount_or_minikubes_boolean() {
        for line in [
            "start --mount --mount-string=/a:/b",
            "start --mount -p demo",
            "start --mount /a:/b --mount=/c:/d:ro",
            "start --mount=false",
        ] {
            parse(line).unwrap();
        }
        let profile = parse("start --mount -p demo").unwrap().globals.profile;
        assert_eq!(profile.as_deref(), Some("demo"));
    }

    #[test]
    fn a_dash_dash_ends_flags() {
        match parse("ssh -n m02 ls -- -l -p /").unwrap().command.unwrap() {
            Commands::Ssh(a) => assert_eq!(a.command, ["ls", "-l", "-p", "/"]),
            _ => panic!(),
        }
        match parse("start --driver=").unwrap().command.unwrap() {
            Commands::Start(a) => assert_eq!(a.driver.as_deref(), Some("")),
            _ => panic!(),
        }
    }

    #[test]
    fn booleans() {
        for (line, want) in [
            ("start --dry-run", true),
            ("start --dry-run=false", false),
            ("start --dry-run=1", true),
            ("start", false),
        ] {
            match parse(line).unwrap().command.unwrap() {
                Commands::Start(a) => assert_eq!(a.dry_run, want, "{line}"),
                _ => panic!(),
            }
        }
    }

    #[test]
    fn errors_are_one_line() {
        for (line, want) in [
            ("start --frobnicate", "unknown flag: --frobnicate"),
            ("start -Z", "unknown shorthand flag: 'Z' in -Z"),
            ("delete now", "unexpected argument \"now\""),
            (
                "start --dry-run=maybe",
                "invalid argument \"maybe\" for \"--dry-run\" flag: not a boolean: give true or false",
            ),
            (
                "start --wait-timeout=soon",
                "invalid argument \"soon\" for \"--wait-timeout\" flag: not a duration: give one like 90s, 6m or 1h30m",
            ),
            (
                "start --output=yaml",
                "invalid argument \"yaml\" for \"--output\" flag: valid values: text, json",
            ),
            ("start --driver", "flag needs an argument: --driver"),
            ("node", "a subcommand is needed; see --help"),
        ] {
            match parse(line) {
                Err(got) => assert_eq!(got, want, "{line}"),
                Ok(_) => panic!("{line} was accepted"),
            }
        }
        let unknown = parse("stat").err().unwrap();
        assert!(unknown.starts_with("unknown command \"stat\" for \"manykube\""), "{unknown}");
    }

    #[test]
    fn every_flag_of_minikubes_start_parses() {
        let flags = "--addons=a,b --apiserver-name=x --auto-pause-interval=1m --auto-update-drivers=false --base-image=x \
            --binary-mirror= --cache-images=false --cni=auto -c containerd --cri-socket= --disable-metrics --disk-size=20g \
            --docker-env A=b,c --docker-opt x --extra-config=kubelet.x=y --extra-disks=1 --gpus=all -g all \
            --host-dns-resolver=false --hyperv-virtual-switch=x --insecure-registry=a,b --install-addons=false --interactive=false \
            --kvm-network=x --listen-address=0.0.0.0 --mount --mount-string=/a:/b --mount-port=0 --native-ssh=false --network= \
            --ports=80:80 --preload=false --registry-mirror=x --ssh-port=22 --static-ip=1.2.3.4 --vm --uuid=x --trace= \
            --network-plugin=cni --enable-default-cni --vm-driver=native --rosetta --mdns --driver native -d native";
        parse(&format!("start {flags}")).unwrap();
    }
}
