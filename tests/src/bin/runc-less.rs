//! The engine's runtime where this process is root without all capabilities: a privileged container asks for
//! all of them, which nobody can give who has not got them. So what the host lacks is not asked for.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use serde_json::Value;

const LACKING: &str = "CAP_SYS_RESOURCE";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let asks = |verb: &str| args.iter().any(|a| a == verb);
    let changed = if asks("create") || asks("run") {
        option(&args, ["--bundle", "-b"]).map(|dir| change(dir.join("config.json"), true))
    } else if asks("exec") {
        option(&args, ["--process", "-p"]).map(|file| change(file, false))
    } else {
        None
    };
    if let Some(Err(e)) = changed {
        eprintln!("runc-less: {e}");
        return ExitCode::FAILURE;
    }
    let failed = Command::new("runc").args(&args).exec();
    eprintln!("runc-less: runc: {failed}");
    ExitCode::FAILURE
}

fn option(args: &[String], names: [&str; 2]) -> Option<PathBuf> {
    let at = args.iter().position(|a| names.contains(&a.as_str()));
    let joined = args.iter().find_map(|a| a.strip_prefix(names[0])?.strip_prefix('='));
    at.and_then(|i| args.get(i + 1)).map(String::as_str).or(joined).map(PathBuf::from)
}

fn change(file: PathBuf, container: bool) -> std::io::Result<()> {
    let mut document: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let process = if container { &mut document["process"] } else { &mut document };
    if let Some(sets) = process["capabilities"].as_object_mut() {
        for set in sets.values_mut().filter_map(Value::as_array_mut) {
            set.retain(|c| c != LACKING);
        }
    }
    // Both are raised with that capability.
    process["oomScoreAdj"] = Value::Null;
    process["rlimits"] = Value::Array(Vec::new());
    std::fs::write(file, serde_json::to_vec(&document)?)
}
