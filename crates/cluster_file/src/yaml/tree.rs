//! The tree of one document.

use std::rc::Rc;

use super::scalar;
use crate::source::Span;

#[derive(Debug)]
pub struct Tree {
    pub span: Span,
    pub data: Data,
    /// What it takes to walk it, aliases counted as often as they are used.
    pub cost: usize,
    pub height: usize,
}

#[derive(Debug)]
pub enum Data {
    Scalar {
        text: String,
        /// Unquoted: then it may be a number, a boolean or nothing at all.
        plain: bool,
    },
    List(Vec<Rc<Tree>>),
    Map(Vec<(Key, Rc<Tree>)>),
}

#[derive(Debug, Clone)]
pub struct Key {
    pub text: String,
    pub span: Span,
}

impl Tree {
    #[cfg(test)]
    pub fn get(&self, key: &str) -> Option<&Tree> {
        self.entry(key).map(|(_, value)| value)
    }

    pub fn entry(&self, key: &str) -> Option<(&Key, &Tree)> {
        match &self.data {
            Data::Map(entries) => entries.iter().find(|(k, _)| k.text == key).map(|(k, v)| (k, &**v)),
            _ => None,
        }
    }

    pub fn item(&self, index: usize) -> Option<&Tree> {
        match &self.data {
            Data::List(items) => items.get(index).map(|t| &**t),
            _ => None,
        }
    }

    /// Nothing at all; the parser says `~` also where nothing is written.
    pub fn is_null(&self) -> bool {
        matches!(&self.data, Data::Scalar { text, plain: true } if scalar::is_null(text))
    }

    pub fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }
}
