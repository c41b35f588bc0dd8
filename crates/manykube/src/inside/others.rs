//! Profiles whose machines are at another engine than the one that a command is run by: what is about all profiles
//! leaves those as they are, and says so.

use drivers::docker::Address;
use model::{Fault, Home, Reason};

use super::mark::{self, Mark};
use super::{INSIDE, door};
use crate::ctx::Ctx;
use crate::host;

/// Names them to a command that is run by an engine.
pub const VARIABLE: &str = "MANYKUBE_OTHERS";

#[derive(Debug, PartialEq, Eq)]
pub struct Other {
    pub name: String,
    /// None for this host's.
    engine: Option<String>,
}

/// Who runs the command.
#[derive(Clone, Copy)]
pub enum By<'a> {
    /// We do.
    Nobody,
    /// An engine with our files, and with our network or not.
    Same(&'a Address, bool),
    /// One with a home in a volume.
    There(&'a Mark),
}

/// In the command itself. One that is run by an engine was told.
pub fn here(home: &Home) -> Vec<Other> {
    if host::env(INSIDE).is_none() {
        return of(home, By::Nobody);
    }
    let names = host::env(VARIABLE).unwrap_or_default();
    let names = names.split(',').filter(|name| !name.is_empty());
    names.map(|name| Other { name: name.to_owned(), engine: None }).collect()
}

pub fn of(home: &Home, by: By<'_>) -> Vec<Other> {
    let mut names = mark::names(home);
    // A directory that has nothing in it is nobody's.
    names.retain(|name| mark::is_here(home, name) || mark::is_elsewhere(home, name));
    names.sort();
    let other = |name: String| {
        let at = door::address(home, &name).or_else(|| mark::address(home, &name));
        let own = match by {
            By::There(own) => own.is_on(home, &name),
            _ if mark::is_elsewhere(home, &name) => false,
            By::Nobody => at.is_none(),
            By::Same(engine, network) => at.as_ref().map_or(network, |at| at == engine),
        };
        (!own).then(|| Other { engine: at.map(|at| at.host), name })
    };
    names.into_iter().filter_map(other).collect()
}

/// For a command that only looks.
pub fn warn(ctx: &Ctx, others: &[Other]) {
    if !others.is_empty() && host::env(INSIDE).is_none() {
        ctx.warn(format!("{}. Run '{} status -p NAME' for each", passed_over(others), ctx.tool));
    }
}

/// One line for all of them.
fn passed_over(others: &[Other]) -> String {
    let place = |other: &Other| other.engine.clone().unwrap_or_else(|| "this host".to_owned());
    let each: Vec<String> = others.iter().map(|o| format!("{} ({})", o.name, place(o))).collect();
    format!("Clusters of other engines were passed over: {}", each.join(", "))
}

/// The end of a command that was to be for all. Who had an engine run it says this, not the command there.
pub fn refuse(ctx: &Ctx, command: &str, reason: Reason, others: &[Other]) -> Result<(), Fault> {
    if others.is_empty() || host::env(INSIDE).is_some() {
        return Ok(());
    }
    let mut advice = format!("Run '{} {command} -p NAME' for each", ctx.tool);
    if others.iter().any(|other| other.engine.is_none()) {
        advice.push_str(", for those of this host without DOCKER_HOST and DOCKER_CONTEXT");
    }
    Err(Fault::new(reason, passed_over(others)).advice(advice))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_engine_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        let at = |host: &str| Address { host: host.into(), certs: None };
        let (far, users) = (at("ssh://far"), at("unix:///run/user/1000/docker.sock"));
        let hosts = at("unix:///var/run/docker.sock");
        let mark = Mark { engine: "1".into(), address: far.clone() };
        assert!(mark.put(&home, "far").unwrap());
        door::reserve(&home, "far", &far, Path::new("/v")).unwrap();
        for name in ["host", "users"] {
            std::fs::create_dir_all(home.profile(name)).unwrap();
            std::fs::write(home.profile_config(name), "{}").unwrap();
        }
        door::reserve(&home, "users", &users, home.root()).unwrap();
        let names = |by| of(&home, by).into_iter().map(|other| other.name).collect::<Vec<_>>();
        assert_eq!(names(By::Nobody), ["far", "users"]);
        assert_eq!(names(By::Same(&hosts, true)), ["far", "users"]);
        assert_eq!(names(By::Same(&users, false)), ["far", "host"]);
        assert_eq!(names(By::There(&mark)), ["host", "users"]);
        let said = passed_over(&of(&home, By::Same(&users, false)));
        assert_eq!(said, "Clusters of other engines were passed over: far (ssh://far), host (this host)");
    }
}
