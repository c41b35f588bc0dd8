//! From text to tree, one event at a time, giving up as soon as a bound is passed.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use granit_parser::{Event, Marker, Options, Parser, ScalarStyle, Span as Place, Tag};

use super::error::Error;
use super::tree::{Data, Key, Tree};
use crate::source::Span;

/// Far more than any cluster needs.
pub const MAX_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 64;
/// Of the whole tree, in units of [`NODE_COST`] for a node and one for a byte of its text. Aliases count
/// each time they are used, so that a file of a kilobyte cannot mean a gigabyte.
const MAX_COST: usize = 8 << 20;
const NODE_COST: usize = 32;
const MERGE: &str = "<<";

/// The first document of `text`; that there is a second one is an error too.
pub fn load(text: &str) -> Result<Tree, Error> {
    if text.len() > MAX_BYTES {
        let line = text.as_bytes()[..MAX_BYTES].iter().filter(|b| **b == b'\n').count() + 1;
        return Err(error(
            Span::at(line, 1, 1),
            format!("the file has {} bytes, more than the {MAX_BYTES} that are read", text.len()),
        ));
    }
    let mut options = Options::default();
    options.flow_nesting_limit = options.flow_nesting_limit.min(MAX_DEPTH + 1);
    options.block_nesting_limit = options.block_nesting_limit.min(MAX_DEPTH + 1);
    let mut builder = Builder::default();
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, place) =
            next.map_err(|e| error(point(*e.marker(), 1), format!("not valid YAML: {}", e.info())))?;
        builder.event(event, place)?;
    }
    let empty = || error(Span::at(1, 1, 1), "the file is empty: it needs apiVersion and kind".to_owned());
    let root = builder.root.ok_or_else(empty)?;
    Rc::try_unwrap(root).map_err(|_| empty())
}

fn error(span: Span, message: String) -> Error {
    Error { message, span: Some(span) }
}

fn point(marker: Marker, width: usize) -> Span {
    Span::at(marker.line(), marker.col() + 1, width)
}

fn span(place: &Place) -> Span {
    let (start, end) = (place.start, place.end);
    let width = if start.line() == end.line() { end.col().saturating_sub(start.col()) } else { 1 };
    point(start, width)
}

struct Frame {
    span: Span,
    anchor: usize,
    kind: FrameKind,
}

enum FrameKind {
    List(Vec<Rc<Tree>>),
    Map(MapFrame),
}

#[derive(Default)]
struct MapFrame {
    entries: Vec<(Key, Rc<Tree>)>,
    /// The key whose value comes next.
    key: Option<Key>,
    /// Key → its line.
    seen: HashMap<String, usize>,
    merged: Vec<Rc<Tree>>,
}

impl MapFrame {
    fn begin(&mut self, key: Key) -> Result<(), Error> {
        if let Some(line) = self.seen.insert(key.text.clone(), key.span.start.line) {
            let short: String = key.text.chars().take(60).collect();
            return Err(error(key.span, format!("the key {short:?} is there twice: first on line {line}")));
        }
        self.key = Some(key);
        Ok(())
    }
}

#[derive(Default)]
struct Builder {
    stack: Vec<Frame>,
    anchors: HashMap<usize, Rc<Tree>>,
    root: Option<Rc<Tree>>,
    cost: usize,
    documents: usize,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, place: Place) -> Result<(), Error> {
        let at = span(&place);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(error(at, "a second document begins here: a file has one".to_owned()));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let forced = tag.as_deref().is_some_and(|t| t.is_yaml_core_schema_tag("str"));
                check_tag(tag.as_deref(), at)?;
                let plain = style == ScalarStyle::Plain && !forced;
                let cost = NODE_COST + text.len();
                let data = Data::Scalar { text: text.into_owned(), plain };
                self.add(Tree { span: at, data, cost, height: 1 }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), at)?;
                self.open(at, anchor, FrameKind::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), at)?;
                self.open(at, anchor, FrameKind::Map(MapFrame::default()))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => {
                // An alias inside of what it names is not there yet.
                let tree = self.anchors.get(&id).cloned();
                let tree = tree.ok_or_else(|| error(at, "an alias of what it stands in".to_owned()))?;
                self.spend(tree.cost, at)?;
                self.place(tree, at)
            }
            _ => Ok(()),
        }
    }

    fn spend(&mut self, cost: usize, at: Span) -> Result<(), Error> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > MAX_COST {
            return Err(error(
                at,
                "too much: the file (with its aliases) has more than any cluster needs".to_owned(),
            ));
        }
        Ok(())
    }

    fn open(&mut self, span: Span, anchor: usize, kind: FrameKind) -> Result<(), Error> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(too_deep(span));
        }
        if let Some(Frame { kind: FrameKind::Map(MapFrame { key: None, .. }), .. }) = self.stack.last() {
            return Err(error(span, "a key must be a word, not a list or a mapping".to_owned()));
        }
        self.stack.push(Frame { span, anchor, kind });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Error> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let data = match frame.kind {
            FrameKind::List(items) => Data::List(items),
            FrameKind::Map(map) => Data::Map(self.merge(map.entries, map.merged, frame.span)?),
        };
        let (mut cost, mut height) = (NODE_COST, 0);
        let mut count = |tree: &Tree| {
            cost += tree.cost;
            height = height.max(tree.height);
        };
        match &data {
            Data::List(items) => items.iter().for_each(|t| count(t)),
            Data::Map(entries) => entries.iter().for_each(|(_, t)| count(t)),
            Data::Scalar { .. } => {}
        }
        self.spend(NODE_COST, frame.span)?;
        let tree = Rc::new(Tree { span: frame.span, data, cost, height: height + 1 });
        self.finish(tree, frame.anchor, frame.span)
    }

    /// `<<` brings the entries that the mapping has not itself; of several, the first has precedence.
    fn merge(
        &mut self,
        mut entries: Vec<(Key, Rc<Tree>)>,
        merged: Vec<Rc<Tree>>,
        at: Span,
    ) -> Result<Vec<(Key, Rc<Tree>)>, Error> {
        if merged.is_empty() {
            return Ok(entries);
        }
        let mut have: HashSet<String> = entries.iter().map(|(k, _)| k.text.clone()).collect();
        for tree in merged {
            let Data::Map(more) = &tree.data else {
                return Err(error(tree.span, "<< takes a mapping, or a list of them".to_owned()));
            };
            for (key, value) in more {
                if have.insert(key.text.clone()) {
                    self.spend(value.cost, at)?;
                    entries.push((key.clone(), value.clone()));
                }
            }
        }
        Ok(entries)
    }

    fn add(&mut self, tree: Tree, anchor: usize) -> Result<(), Error> {
        let at = tree.span;
        self.spend(tree.cost, at)?;
        self.finish(Rc::new(tree), anchor, at)
    }

    fn finish(&mut self, tree: Rc<Tree>, anchor: usize, at: Span) -> Result<(), Error> {
        // A chain of aliases is as deep as brackets are, and would end the stack as well.
        if tree.height > MAX_DEPTH {
            return Err(too_deep(at));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, tree.clone());
        }
        self.place(tree, at)
    }

    fn place(&mut self, tree: Rc<Tree>, at: Span) -> Result<(), Error> {
        match self.stack.last_mut().map(|f| &mut f.kind) {
            None => {
                self.anchors.clear();
                self.root = Some(tree);
            }
            Some(FrameKind::List(items)) => items.push(tree),
            Some(FrameKind::Map(map)) => match map.key.take() {
                None => map.begin(new_key(&tree, at)?)?,
                Some(key) if key.text == MERGE => match &tree.data {
                    Data::List(items) => map.merged.extend(items.iter().cloned()),
                    _ => map.merged.push(tree),
                },
                Some(key) => map.entries.push((key, tree)),
            },
        }
        Ok(())
    }
}

fn too_deep(at: Span) -> Error {
    error(at, format!("nested deeper than {MAX_DEPTH} levels"))
}

fn new_key(tree: &Tree, at: Span) -> Result<Key, Error> {
    match tree.text() {
        Some(text) => Ok(Key { text: text.to_owned(), span: at }),
        None => Err(error(at, "a key must be a word, not a list or a mapping".to_owned())),
    }
}

fn check_tag(tag: Option<&Tag>, at: Span) -> Result<(), Error> {
    match tag {
        Some(tag) if tag.is_custom() => Err(error(at, "tags like !this mean nothing here".to_owned())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> (usize, usize, String) {
        let error = load(text).unwrap_err();
        let at = error.span.unwrap().start;
        (at.line, at.column, error.message)
    }

    #[test]
    fn places() {
        let tree = load("a: 1\nb:\n  - x\n  - {c: yes}\n").unwrap();
        let at = |path: crate::yaml::Path| tree.locate(&path).start;
        let place = |line, column| crate::source::Position { line, column };
        assert_eq!(at(crate::yaml::at!["a"]), place(1, 4));
        assert_eq!(at(crate::yaml::at!["b"]), place(2, 1));
        assert_eq!(at(crate::yaml::at!["b", 0]), place(3, 5));
        assert_eq!(at(crate::yaml::at!["b", 1, "c"]), place(4, 9));
        // As far as there is one.
        assert_eq!(at(crate::yaml::at!["b", 1, "d", "e"]), place(4, 5));
    }

    #[test]
    fn keys_that_are_there_twice() {
        let (line, column, message) = wrong("a: 1\nb: 2\na: 3\n");
        assert_eq!((line, column), (3, 1));
        assert_eq!(message, "the key \"a\" is there twice: first on line 1");
    }

    #[test]
    fn merging() {
        let tree = load("x: &x {a: 1, b: 1}\ny:\n  <<: *x\n  b: 2\nz:\n  <<: [*x, {c: 3}]\n").unwrap();
        let y = tree.get("y").unwrap();
        assert_eq!((y.get("a").unwrap().text(), y.get("b").unwrap().text()), (Some("1"), Some("2")));
        assert_eq!(tree.get("z").unwrap().get("c").unwrap().text(), Some("3"));
        assert_eq!(wrong("a:\n  <<: word\n").0, 2);
    }

    #[test]
    fn bombs() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..40 {
            let last = format!("*a{}, ", i - 1).repeat(10);
            text += &format!("a{i}: &a{i} [{}]\n", last.trim_end_matches(", "));
        }
        let (line, _, message) = wrong(&text);
        assert!(line < 10 && message.starts_with("too much"), "{line} {message}");
        // One long text many times is as bad.
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), "*a, ".repeat(1000));
        assert_eq!(wrong(&long).0, 2);
        // A chain of aliases is deep without a deep text.
        let chain: String = (1..500).map(|i| format!("a{i}: &a{i} [*a{}]\n", i - 1)).collect();
        assert!(wrong(&format!("a0: &a0 [x]\n{chain}")).2.contains("nested"));
        assert!(wrong("a: &a [*a]\n").2.contains("alias"));
    }

    #[test]
    fn depth_and_size() {
        for deep in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000), "? ".repeat(100_000)]
        {
            let (_, _, message) = wrong(&deep);
            assert!(
                message.contains("nest") || message.contains("key") || message.contains("YAML"),
                "{message}"
            );
        }
        let (line, _, message) = wrong(&"# long\n".repeat(1 << 20));
        assert!(line > 1000 && message.contains("bytes"), "{message}");
        assert!(wrong(&format!("[{}", "a,".repeat(500_000))).2.starts_with("too much"));
    }

    #[test]
    fn what_is_no_document() {
        for text in ["", "---\n", "# only a comment\n"] {
            let got = load(text);
            assert!(got.is_err() || got.unwrap().is_null(), "{text:?}");
        }
        assert_eq!(wrong("a: 1\n---\nb: 2\n").0, 2);
        assert!(wrong("a: !secret x\n").2.contains("tags"));
        assert!(wrong("[a]: 1\n").2.contains("key"));
        assert!(wrong("a: [1\n").2.contains("YAML"));
    }
}
