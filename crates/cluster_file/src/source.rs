//! Places in a text, and how they are shown.

use std::fmt::Write as _;

/// Both count from 1; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub start: Position,
    /// Characters that are marked; on one line.
    pub width: usize,
}

impl Span {
    pub fn at(line: usize, column: usize, width: usize) -> Span {
        Span { start: Position { line: line.max(1), column: column.max(1) }, width: width.max(1) }
    }
}

/// More of a line than this says no more.
const SHOWN: usize = 100;
/// What is kept before the place when a line is cut.
const BEFORE: usize = 40;

/// The source line with a caret under the place.
pub fn snippet(source: &str, span: Span) -> String {
    let Position { line, column } = span.start;
    let text = source.lines().nth(line - 1).unwrap_or("");
    let from = if column > SHOWN - BEFORE / 2 { column - 1 - BEFORE } else { 0 };
    // Every character takes one cell: a tab or a control character would move the caret.
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = text.chars().skip(from).take(SHOWN).map(plain).collect();
    let cut =
        (if from > 0 { "…" } else { "" }, if text.chars().nth(from + SHOWN).is_some() { "…" } else { "" });
    let gutter = line.to_string();
    let pad = " ".repeat(gutter.len());
    let indent = column - 1 - from + cut.0.chars().count();
    let width = span.width.min(shown.chars().count().saturating_sub(column - 1 - from)).max(1);
    let mut out = String::new();
    let _ = writeln!(out, "{pad} |");
    let _ = writeln!(out, "{gutter} | {}{shown}{}", cut.0, cut.1);
    let _ = write!(out, "{pad} | {}{}", " ".repeat(indent), "^".repeat(width));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_is_under_the_place() {
        let text = "a: 1\n\tcpu: 2\n";
        assert_eq!(snippet(text, Span::at(2, 2, 3)), "  |\n2 |  cpu: 2\n  |  ^^^");
        // At the end of the text there is no line to show.
        assert_eq!(snippet(text, Span::at(9, 1, 1)), "  |\n9 | \n  | ^");
    }

    #[test]
    fn long_lines_are_cut_around_it() {
        let text = format!("{}X{}", "a".repeat(5000), "b".repeat(5000));
        let shown = snippet(&text, Span::at(1, 5001, 50000));
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.iter().all(|l| l.chars().count() < 120), "{shown}");
        let caret = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().nth(caret), Some('X'));
    }
}
