//! From text to a checked file.

use crate::check::{self, Finding};
use crate::file::{API_VERSION, ClusterFile, KIND};
use crate::kind;
use crate::problem::{Problem, Problems};
use crate::source::Span;
use crate::suggest::suggest;
use crate::yaml::{self, Path, Tree};

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Manykube,
    Kind,
}

/// A file that can be used, and the text it came from, so that later checks can point there too.
#[derive(Debug)]
pub struct Parsed {
    pub file: ClusterFile,
    pub origin: Origin,
    /// What the file asks for and will not get.
    pub notes: Vec<Problem>,
    source: String,
    tree: Tree,
}

impl Parsed {
    /// A problem with the value at `path` of [`Self::file`].
    pub fn problem(&self, path: &Path, message: impl Into<String>) -> Problem {
        Problem::new(&self.source, place(&self.tree, self.origin, path), message)
    }
}

fn place(tree: &Tree, origin: Origin, path: &Path) -> Span {
    match origin {
        Origin::Manykube => tree.locate(path),
        Origin::Kind => tree.locate(&kind::source_path(path)),
    }
}

pub fn parse(text: &str) -> Result<Parsed, Problems> {
    // Editors on some systems begin a file with one.
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let wrong =
        |e: yaml::Error| Problems::from(Problem::new(body, e.span.unwrap_or(Span::at(1, 1, 1)), e.message));
    let tree = yaml::load(body).map_err(wrong)?;
    let origin = origin(&tree).map_err(wrong)?;
    let (file, notes) = match origin {
        Origin::Manykube => (yaml::from_tree::<ClusterFile>(&tree).map_err(wrong)?, Vec::new()),
        Origin::Kind => {
            let read: kind::KindFile = yaml::from_tree(&tree).map_err(wrong)?;
            let converted = kind::convert(&read);
            let at = |(path, message): (Path, String)| Problem::new(body, tree.locate(&path), message);
            if !converted.wrong.is_empty() {
                return Err(Problems::new(converted.wrong.into_iter().map(at).collect()));
            }
            (converted.file, converted.notes.into_iter().map(at).collect())
        }
    };
    let problem = |finding: Finding| {
        let first = finding.first.map(|path| place(&tree, origin, &path).start.line);
        let also = first.map_or(String::new(), |line| format!(" (the other is on line {line})"));
        Problem::new(body, place(&tree, origin, &finding.path), finding.message + &also)
    };
    let findings = check::check(&file);
    if !findings.is_empty() {
        return Err(Problems::new(findings.into_iter().map(problem).collect()));
    }
    Ok(Parsed { file, origin, notes, source: body.to_owned(), tree })
}

fn origin(tree: &Tree) -> Result<Origin, yaml::Error> {
    let error = |span: Span, message: String| Err(yaml::Error { message, span: Some(span) });
    if !matches!(tree.data, yaml::Data::Map(_)) {
        return error(
            tree.span,
            format!("this is no cluster file: it begins with \"apiVersion: {API_VERSION}\""),
        );
    }
    let Some((key, version)) = tree.entry("apiVersion") else {
        return error(
            tree.span,
            format!("the key \"apiVersion\" is missing: write \"apiVersion: {API_VERSION}\""),
        );
    };
    let origin = match version.text() {
        Some(API_VERSION) => Origin::Manykube,
        Some(kind::API_VERSION) => Origin::Kind,
        written => {
            let known = [API_VERSION, kind::API_VERSION];
            let written = written.unwrap_or("");
            let hint = suggest(written, &known).map_or(String::new(), |w| format!("; did you mean {w}?"));
            let span = if written.is_empty() { key.span } else { version.span };
            return error(
                span,
                format!("this version reads {API_VERSION} and kind's {}{hint}", kind::API_VERSION),
            );
        }
    };
    match tree.entry("kind") {
        Some((_, kind)) if kind.text() == Some(KIND) => Ok(origin),
        Some((_, kind)) => error(kind.span, format!("the kind of a cluster file is {KIND}")),
        None => error(tree.span, format!("the key \"kind\" is missing: write \"kind: {KIND}\"")),
    }
}
