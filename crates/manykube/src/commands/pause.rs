//! `pause` and `unpause`: a cluster that stands still costs no CPU and keeps all it has.

use anyhow::Result;
use model::{Fault, Reason};

use super::cluster as common;
use crate::core;
use crate::ctx::Ctx;
use crate::report::{Event, Output, Style, steps};
use crate::state::lock::ProfileLock;

const DEFAULT: [&str; 3] = ["kube-system", "kubernetes-dashboard", "istio-operator"];

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The namespaces whose containers are meant
    #[arg(short, long, value_delimiter = ',', default_values = DEFAULT, value_name = "NAMES")]
    pub namespaces: Vec<String>,
    /// All namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// text, or json: one event per line
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Output,
}

impl Args {
    fn namespaces(&self) -> Result<Vec<String>, Fault> {
        if self.all_namespaces {
            return Ok(vec![core::pause::ALL.to_owned()]);
        }
        let named: Vec<String> = self.namespaces.iter().filter(|n| !n.is_empty()).cloned().collect();
        if named.is_empty() {
            return Err(Fault::new(Reason::Usage, "Use -A to specify all namespaces"));
        }
        // They become part of a filter that containerd reads.
        let odd = |n: &&String| !n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        match named.iter().find(odd) {
            Some(name) => Err(Fault::new(Reason::Usage, format!("{name:?} is no namespace's name"))),
            None => Ok(named),
        }
    }

    fn said(&self) -> String {
        if self.all_namespaces { String::new() } else { format!(" in: {}", self.namespaces.join(", ")) }
    }
}

pub fn pause(ctx: &Ctx, args: &Args) -> Result<u8> {
    run(ctx, args, true)
}

pub fn unpause(ctx: &Ctx, args: &Args) -> Result<u8> {
    run(ctx, args, false)
}

fn run(ctx: &Ctx, args: &Args, pauses: bool) -> Result<u8> {
    let (doing, done, style, begin, end) = match pauses {
        true => ("Pausing", "Paused", Style::Pausing, steps::pause::PAUSING, steps::pause::DONE),
        false => ("Unpausing", "Unpaused", Style::Unpausing, steps::unpause::UNPAUSING, steps::unpause::DONE),
    };
    let namespaces = args.namespaces()?;
    let cluster = common::load(ctx)?;
    ctx.run(async {
        common::require_running(ctx, &cluster).await?;
        let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
        ctx.recorder.open(&ctx.home.profile_events(&cluster.name))?;
        for node in &cluster.nodes {
            let message = format!("{doing} node {} ...", cluster.machine(node));
            ctx.emit(Event::step(begin, Style::Pausing, message));
        }
        let count = match pauses {
            true => core::pause::pause(ctx, &cluster, &namespaces).await?,
            false => core::pause::unpause(ctx, &cluster, &namespaces).await?,
        };
        ctx.emit(Event::step(end, style, format!("{done} {count} containers{}", args.said())));
        Ok(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_named_or_all() {
        let with = |list: &[&str], all_namespaces| {
            let namespaces = list.iter().map(|n| (*n).to_owned()).collect();
            Args { namespaces, all_namespaces, output: Output::Text }.namespaces()
        };
        assert_eq!(with(&["a", "", "b"], false), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(with(&[], true), Ok(vec!["*".to_owned()]));
        for bad in [&[""][..], &[], &["*"], &["a,b"], &["a\"b"], &["$(x)"]] {
            assert_eq!(with(bad, false).map_err(|f| f.reason), Err(Reason::Usage), "{bad:?}");
        }
    }
}
