//! minikube's exit codes, one row each: the line that ends with it here, or why none does.
//!
//! Rows that need no cluster are run by the command's own tests, the others on the cluster of
//! tests/tests/command_line.

mod table;

use std::path::Path;

pub use table::ROWS;

pub struct Row {
    /// minikube's reason, or what ends so without one.
    pub id: &'static str,
    pub code: i32,
    pub how: How,
}

pub enum How {
    /// Run where that is the case: the line, and words of what it says. `A=b` in front is the environment's,
    /// `$DIR` a directory of the test.
    Run(When, &'static str, &'static str),
    /// Another test has it.
    Test(&'static str),
    /// Why no line here ends so.
    Never(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// There is no profile.
    Nothing,
    /// There is a profile `demo` of which there is only the configuration.
    Demo,
    /// The same, and something in the home is wrong: [`Wrong`].
    Broken(Wrong),
    /// As a user without any rights.
    Nobody,
    /// A cluster `minikube` runs.
    Running,
    /// And a tunnel beside it.
    Tunnel,
    Paused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// The profile's file is no JSON.
    Config,
    /// Everybody may write to the home.
    Mode,
    /// A profile bears the name of a machine that is to come.
    Name,
    /// No node of the profile is a control plane.
    NoControlPlane,
}

/// Variables that stand before the command, and its words.
pub fn split<'a>(line: &'a str, dir: &Path) -> (Vec<(&'a str, String)>, Vec<String>) {
    let filled = |word: &str| word.replace("$DIR", &dir.to_string_lossy());
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let (mut variables, mut words) = (Vec::new(), Vec::new());
    for word in line.split_whitespace() {
        match word.split_once('=').filter(|(name, _)| words.is_empty() && is_name(name)) {
            Some((name, value)) => variables.push((name, filled(value))),
            None => words.push(filled(word)),
        }
    }
    (variables, words)
}

/// The rows to be run where that is the case.
pub fn rows(
    when: impl Fn(When) -> bool,
) -> impl Iterator<Item = (&'static Row, When, &'static str, &'static str)> {
    ROWS.iter().filter_map(move |row| match row.how {
        How::Run(case, line, words) if when(case) => Some((row, case, line, words)),
        _ => None,
    })
}
