//! Small helpers for text output.

use std::io::IsTerminal;

/// Shortens a text for people at a terminal, with a mark where it is cut. Whoever reads a pipe gets all of it.
pub fn short(text: String, chars_max: usize, mark: &str) -> String {
    match std::io::stdout().is_terminal() {
        true => cut(text, chars_max, mark),
        false => text,
    }
}

fn cut(text: String, chars_max: usize, mark: &str) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}{mark}", &text[..end]),
        None => text,
    }
}

/// Formats rows as columns with two spaces between them. The first row is the header.
pub fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: Vec<usize> = (0..N)
        .map(|column| {
            let widths = rows.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or_default()
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (value, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{value:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terminals_get_texts_that_are_cut() {
        assert_eq!(cut("äöü".to_owned(), 2, "…"), "äö…");
        assert_eq!(cut("äöü".to_owned(), 3, "…"), "äöü");
        // The output of tests is not a terminal, as that of a command in a pipe.
        if !std::io::stdout().is_terminal() {
            assert_eq!(short("äöü".to_owned(), 2, "…"), "äöü");
        }
    }
}
