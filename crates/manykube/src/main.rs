//! manykube: local Kubernetes clusters of many nodes.

mod args;
mod background;
mod commands;
mod core;
mod ctx;
mod exit;
mod host;
mod inside;
mod kubeconfig;
mod report;
mod state;
mod table;
mod template;
mod version;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use model::{Fault, Reason};
use serde_json::Map;
use tokio_util::sync::CancellationToken;

use args::{Cli, Commands, Globals, Parsed};
use ctx::Ctx;
use report::Recorder;
use state::{audit, log, settings};

const USAGE: u8 = 14;

fn main() -> ExitCode {
    let mut argv: Vec<OsString> = std::env::args_os().collect();
    // In a node we are its first process: nothing else may happen before.
    if argv.get(1).is_some_and(|a| a == "agent") {
        return agent::main(&argv.split_off(2));
    }
    let command = argv.get(1).map(|a| a.to_string_lossy().into_owned()).unwrap_or_default();
    let rest = argv.get(2..).unwrap_or_default();
    match command.as_str() {
        core::containers::follow::COMMAND => return core::containers::follow::main(rest),
        core::registry::door::COMMAND => return core::registry::door::main(rest),
        inside::door::COMMAND => return inside::door::main(rest),
        _ => {}
    }
    if let Some(code) =
        drivers::native::entry(&command, rest).or_else(|| drivers::docker::entry(&command, rest))
    {
        return code;
    }
    // An error only means that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let called =
        argv.first().map(|a| Path::new(a).file_name().unwrap_or_default().to_owned()).unwrap_or_default();
    let tool = tool();
    if std::env::var_os(commands::completion::VARIABLE).is_some() {
        clap_complete::CompleteEnv::with_factory(move || args::completed(tool))
            .var(commands::completion::VARIABLE)
            .complete();
    }
    if called == "kubectl" {
        argv = commands::kubectl::as_kubectl(argv.split_off(1));
    }
    ExitCode::from(run(argv, tool))
}

/// The name we were called by, which decides where home is.
fn tool() -> &'static str {
    let called = std::env::args_os().next().unwrap_or_default();
    if Path::new(&called).file_name().is_some_and(|n| n == "minikube") { "minikube" } else { "manykube" }
}

fn run(argv: Vec<OsString>, tool: &'static str) -> u8 {
    let line: Vec<String> = argv.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let words: Vec<String> = line.iter().skip(1).cloned().collect();
    let home = state::home::resolve(tool, &host::env);
    let settings = match &home {
        Ok(home) => settings::load(home),
        Err(_) => Ok(Map::new()),
    };
    let empty = Map::new();
    let cli = match args::parse(argv, tool, &host::env, settings.as_ref().unwrap_or(&empty)) {
        Parsed::Cli(cli) => *cli,
        Parsed::Help(text) => {
            print!("{text}");
            return 0;
        }
        Parsed::Wrong(line) => {
            eprintln!("Error: {line}");
            return USAGE;
        }
    };
    let Cli { globals, command: Some(mut command) } = cli else {
        print!("{}", args::definition(tool).render_help());
        return 0;
    };
    // A file may name the profile; -p is the last word.
    let said = words.iter().any(|w| w.starts_with("-p") || w.starts_with("--profile"));
    let named = match &mut command {
        Commands::Start(args) => args.read(),
        _ => Ok(None),
    };
    let by_file = named.as_ref().ok().cloned().flatten().filter(|_| !said);
    let default_profile = args::default_profile(tool, &host::env);
    let ctx = Ctx {
        home: home.clone().unwrap_or_else(|_| model::Home::new("", None)),
        profile: by_file.or_else(|| globals.profile.clone()).unwrap_or_else(|| default_profile.clone()),
        default_profile,
        tool,
        called: called(&words),
        cancel: CancellationToken::new(),
        lock_timeout: globals.lock_timeout,
        reporter: report::reporter(command.output()),
        recorder: Recorder::default(),
    };
    let ready =
        named.and(home.map(drop)).and_then(|()| prepare(&ctx, &globals, &command, settings.map(drop)));
    if let Err(fault) = ready {
        return exit::report(&ctx, fault);
    }
    if globals.profile.is_none() && !command.only_prints() {
        commands::profile::mention_older(&ctx);
    }
    match inside::instead(&ctx, &globals, &command, line) {
        Ok(Some(code)) => return code,
        Ok(None) => {}
        Err(error) => return exit::report(&ctx, exit::fault(&error, commands::default_reason(&command))),
    }
    log::init(&globals, command.name(), &words, &ctx.home);
    let entry = audit_entry(&ctx, &globals, &command, &words);
    let code = match commands::run(&ctx, &command) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{error:#}");
            exit::report(&ctx, exit::fault(&error, commands::default_reason(&command)))
        }
    };
    drivers::native::command_ends();
    if let Some(entry) = entry {
        entry.append(&ctx.home, version::VERSION);
    }
    if let Err(error) = state::handout::write(&ctx.home) {
        ctx.warn(format!("What the caller needs could not be handed out: {error:#}"));
    }
    state::owner::give_back(&ctx.home);
    code
}

/// Options are left out: a name that follows one is one's value or not, and a guess would be worse.
fn called(words: &[String]) -> String {
    words.iter().take_while(|w| !w.starts_with('-')).map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// What must be right before any command runs; those that only print need none of it.
fn prepare(
    ctx: &Ctx,
    globals: &Globals,
    command: &Commands,
    settings: Result<(), Fault>,
) -> Result<(), Fault> {
    if command.only_prints() {
        return Ok(());
    }
    settings?;
    commands::profile::check_name(&ctx.profile)?;
    if globals.user.as_ref().is_some_and(|u| u.chars().count() > 60) {
        return Err(Fault::new(Reason::Usage, "User name must be 60 chars or less."));
    }
    state::home::create(&ctx.home)
}

fn audit_entry(ctx: &Ctx, globals: &Globals, command: &Commands, words: &[String]) -> Option<audit::Entry> {
    let silent = match command {
        Commands::Status(_) | Commands::Version(_) | Commands::Logs(_) | Commands::Profile(_) => true,
        _ if command.only_prints() => true,
        Commands::Delete(args) => args.purge,
        _ => globals.skip_audit,
    };
    if silent {
        return None;
    }
    let command = command.name().to_owned();
    let args: Vec<String> = words.iter().filter(|w| **w != command).cloned().collect();
    Some(audit::Entry {
        args: audit::without_secrets(&args),
        profile: ctx.profile.clone(),
        user: globals.user.clone().unwrap_or_else(log::whoami),
        start: jiff::Zoned::now(),
        command,
    })
}
