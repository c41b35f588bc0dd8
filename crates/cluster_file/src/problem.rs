//! What is wrong with a file, and where.

use std::fmt;

use crate::source::{Position, Span, snippet};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub message: String,
    pub span: Span,
    /// The lines that show the place.
    snippet: String,
}

impl Problem {
    pub fn new(source: &str, span: Span, message: impl Into<String>) -> Problem {
        // One line, whatever the file had in it.
        let message = message.into().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Problem { message, span, snippet: snippet(source, span) }
    }

    pub fn position(&self) -> Position {
        self.span.start
    }

    /// `cluster.yaml:3:5: unknown key …`
    pub fn line(&self, file: &str) -> String {
        let Position { line, column } = self.position();
        format!("{file}:{line}:{column}: {}", self.message)
    }

    /// As [`Self::line`], with the source line and a caret below.
    pub fn show(&self, file: &str) -> String {
        format!("{}\n{}", self.line(file), self.snippet)
    }
}

/// Everything that is wrong, in the order of the file; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// After so many the rest is noise.
const SHOWN: usize = 10;

impl Problems {
    pub fn new(mut list: Vec<Problem>) -> Problems {
        list.sort_by_key(Problem::position);
        list.dedup();
        Problems(list)
    }

    pub fn list(&self) -> &[Problem] {
        &self.0
    }

    /// The summary of the first one comes first.
    pub fn show(&self, file: &str) -> String {
        let mut shown: Vec<String> = self.0.iter().take(SHOWN).map(|p| p.show(file)).collect();
        if self.0.len() > SHOWN {
            shown.push(format!("{file}: and {} more", self.0.len() - SHOWN));
        }
        shown.join("\n")
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Problems {
        Problems(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show("cluster file"))
    }
}

impl std::error::Error for Problems {}
