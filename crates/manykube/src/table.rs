//! Tables in box drawing: headers centred, cells to the left, one space around.

/// What a command that prints a table may print instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    #[default]
    Table,
    Json,
}

pub fn render(headers: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = headers.iter().map(|h| width(h)).collect();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let widest = cell.lines().map(width).max().unwrap_or(0);
            if let Some(w) = widths.get_mut(column) {
                *w = (*w).max(widest);
            }
        }
    }
    let border = |left: &str, middle: &str, right: &str| {
        let bars: Vec<String> = widths.iter().map(|w| "─".repeat(w + 2)).collect();
        format!("{left}{}{right}\n", bars.join(middle))
    };
    let mut out = border("┌", "┬", "┐");
    let titles: Vec<String> = headers.iter().zip(&widths).map(|(h, w)| centred(h, *w)).collect();
    out += &line(&titles);
    out += &border("├", "┼", "┤");
    for row in rows {
        let height = row.iter().map(|c| c.lines().count()).max().unwrap_or(0).max(1);
        for i in 0..height {
            let cell = |(column, w): (usize, &usize)| {
                let text = row.get(column).and_then(|c| c.lines().nth(i)).unwrap_or("");
                format!("{text}{}", " ".repeat(w - width(text)))
            };
            out += &line(&widths.iter().enumerate().map(cell).collect::<Vec<_>>());
        }
    }
    out + &border("└", "┴", "┘")
}

fn line(cells: &[String]) -> String {
    format!("│ {} │\n", cells.join(" │ "))
}

fn centred(text: &str, room: usize) -> String {
    let spare = room - width(text);
    format!("{}{text}{}", " ".repeat(spare / 2), " ".repeat(spare - spare / 2))
}

/// Characters that are seen: colours take no room.
fn width(text: &str) -> usize {
    let mut count = 0;
    let mut escape = false;
    for c in text.chars() {
        match c {
            '\u{1b}' => escape = true,
            'm' if escape => escape = false,
            _ if escape => {}
            // Drawn twice as wide as a letter.
            '✅' => count += 2,
            _ => count += 1,
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden() {
        let rows = vec![
            vec!["demo".to_owned(), "\u{1b}[32mOK\u{1b}[0m".to_owned()],
            vec!["p\nq".to_owned(), "Stopped".to_owned()],
        ];
        assert_eq!(
            render(&["Profile", "Status"], &rows),
            "┌─────────┬─────────┐\n\
             │ Profile │ Status  │\n\
             ├─────────┼─────────┤\n\
             │ demo    │ \u{1b}[32mOK\u{1b}[0m      │\n\
             │ p       │ Stopped │\n\
             │ q       │         │\n\
             └─────────┴─────────┘\n"
        );
    }

    proptest! {
        #[test]
        fn every_line_is_equally_wide(rows in prop::collection::vec(prop::collection::vec("[a-zé ]{0,12}(\n[a-z]{0,9})?", 0..4), 0..6)) {
            let text = render(&["A", "Title", "x"], &rows);
            let first = width(text.lines().next().unwrap());
            prop_assert!(text.lines().all(|l| width(l) == first));
        }
    }
}
