//! Reads a document that is being written: text that can't be parsed is left out, and what is open is closed.

use swirl_documents::source::{self, Limits, Node};

/// The number of lines that are left out at most.
const LINES_MAX: usize = 6;

/// Reads a document with the cursor in this line, which stays in any case.
pub fn read(document: &str, cursor: usize) -> Option<Node> {
    let until: Vec<&str> = document.split('\n').take(cursor + 1).collect();
    let mut until = until.join("\n");
    until.push_str(&closing(&until));
    // The author has finished the text before the cursor, so it counts more than the rest.
    [document, &until]
        .into_iter()
        .find_map(|text| without_errors(text, cursor))
}

fn without_errors(document: &str, cursor: usize) -> Option<Node> {
    let mut lines: Vec<&str> = document.split('\n').collect();
    for _ in 0..=LINES_MAX {
        let parsed = source::read(lines.join("\n").as_bytes(), &Limits::default());
        if parsed.root.is_some() {
            return parsed.root;
        }
        // The parser notices an error at its line or behind it.
        let line = parsed.diagnostics.iter().next()?.line.checked_sub(1)?;
        let wrong = (0..=line.min(lines.len() - 1))
            .rev()
            .find(|line| *line != cursor && !lines[*line].trim().is_empty())?;
        lines[wrong] = "";
    }
    None
}

/// The signs that close what is open at the end of a text.
fn closing(text: &str) -> String {
    let mut open = Vec::new();
    let mut quote = None;
    let mut chars = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some('"'), '\\') => {
                chars.next();
            }
            (Some(q), c) if q == c => quote = None,
            (Some(_), _) => {}
            // A quote within a word is a part of it.
            (None, '"' | '\'') if !before.is_alphanumeric() => quote = Some(c),
            (None, '#') if before.is_whitespace() => {
                while chars.next_if(|c| *c != '\n').is_some() {}
            }
            (None, '{') => open.push('}'),
            (None, '[') => open.push(']'),
            (None, '}' | ']') => {
                open.pop();
            }
            _ => {}
        }
        before = c;
    }
    quote.into_iter().chain(open.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_parsed_is_left_out() {
        for (document, cursor) in [
            ("a: 1\nb: {c: [1, \nd: 2", 1),
            ("a: 1\nb: {c: 'x", 1),
            ("a: 1\nx: ]\nb: {c: 1}", 2),
            ("a: 1\nb:\n  c: 1\n nothing: [\nd: 2", 2),
        ] {
            let root = read(document, cursor).unwrap_or_else(|| panic!("{document}"));
            assert!(
                root.get("b").is_some_and(|b| b.get("c").is_some()),
                "{document}"
            );
        }
    }
}
