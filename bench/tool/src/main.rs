//! What the benchmarks need besides the command: machines with nothing prepared in them, a clock that
//! watches a cluster come up from outside, and what machines have used. Works in MANYKUBE_HOME.

mod bare;
mod chaos;
mod usage;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use model::Home;

const USAGE: &str =
    "usage: bench-tool bare-up N | bare-down | run MACHINE ARGV... | usage | kubernetes | chaos
       bench-tool watch PROFILE SINCE PORT CONTROL-PLANES NODES";

fn main() -> ExitCode {
    let mut argv: Vec<OsString> = std::env::args_os().collect();
    // The driver starts machines with the program it is part of, and that becomes their init.
    if argv.get(1).is_some_and(|a| a == "agent") {
        return agent::main(&argv.split_off(2));
    }
    let command = argv.get(1).map(|a| a.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(code) = drivers::native::entry(&command, argv.get(2..).unwrap_or_default()) {
        return code;
    }
    let words: Vec<String> = argv.iter().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    match run(&words) {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<u8> {
    if words == ["chaos"] {
        return chaos::run().map(|()| 0);
    }
    let home = home()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    runtime.block_on(async {
        match words.as_slice() {
            ["bare-up", count] => bare::up(&home, count.parse().context("not a number")?).await.map(|()| 0),
            ["bare-down"] => bare::down(&home).await.map(|()| 0),
            ["run", machine, argv @ ..] => bare::run(&home, machine, argv).await,
            ["kubernetes"] => {
                println!("{}", image::default_version());
                Ok(0)
            }
            ["usage"] => usage::print(&home).map(|()| 0),
            ["watch", profile, since, port, control_planes, nodes] => {
                let wanted = watch::Wanted {
                    profile: (*profile).to_owned(),
                    since: since.parse().context("SINCE is not a time")?,
                    port: port.parse().context("PORT is no port")?,
                    control_planes: control_planes.parse().context("not a number")?,
                    nodes: nodes.parse().context("not a number")?,
                };
                watch::run(&home, &wanted).await.map(|()| 0)
            }
            _ => bail!("{USAGE}"),
        }
    })
}

fn home() -> Result<Home> {
    let dir = |name: &str| std::env::var_os(name).map(PathBuf::from);
    Ok(Home::new(dir("MANYKUBE_HOME").context("MANYKUBE_HOME is not set")?, dir("MANYKUBE_CACHE")))
}
