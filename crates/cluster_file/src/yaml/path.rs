//! From a place in the typed file (`nodes`, 2, `ports`) to one in the text.

use super::tree::Tree;
use crate::source::Span;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

pub type Path = Vec<Step>;

impl From<&str> for Step {
    fn from(key: &str) -> Step {
        Step::Key(key.to_owned())
    }
}

impl From<&String> for Step {
    fn from(key: &String) -> Step {
        Step::Key(key.clone())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Step {
        Step::Index(index)
    }
}

/// `at!["nodes", 2, "ports"]`
macro_rules! at {
    ($($step:expr),* $(,)?) => { vec![$($crate::yaml::Step::from($step)),*] };
}
pub(crate) use at;

impl Tree {
    /// Where the path leads, or as far as it exists: what a file does not say stands nowhere.
    pub fn locate(&self, path: &[Step]) -> Span {
        let (mut at, mut span) = (self, self.span);
        for step in path {
            let next = match step {
                Step::Index(index) => at.item(*index).map(|tree| (tree, tree.span)),
                Step::Key(key) => at.entry(key).map(|(k, tree)| {
                    // A collection begins below its key: the key shows better what is meant.
                    let scalar = tree.text().is_some() && !tree.is_null();
                    (tree, if scalar { tree.span } else { k.span })
                }),
            };
            match next {
                Some((tree, place)) => (at, span) = (tree, place),
                None => break,
            }
        }
        span
    }
}
