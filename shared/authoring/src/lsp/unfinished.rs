//! Reads a document that is being written: text that can't be parsed is left out, and what is open is closed.

use swirl_documents::source::{self, Limits, Node};

/// The number of lines that are left out at most.
const LINES_MAX: usize = 6;

/// Reads a document with the cursor in this line, which stays in any case.
pub fn read(document: &str, cursor: usize) -> Option<Node> {
    let closed = closed_by_layout(document);
    if closed != document
        && let Some(root) = without_errors(&closed, cursor)
    {
        return Some(root);
    }
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

/// Closes brackets and quotes before a line that, by its indentation, can't be inside them. A document that can be parsed
/// stays as it is.
fn closed_by_layout(document: &str) -> String {
    let parsed = source::read(document.as_bytes(), &Limits::default());
    if parsed.root.is_some() || document.trim_start().starts_with('{') {
        return document.to_owned();
    }
    let mut out = String::with_capacity(document.len());
    let mut open = Open::default();
    // The indentation of the line in which the outermost of them was opened.
    let mut outer = 0;
    // Where the last text ends, without the comment behind it.
    let mut end = 0;
    for (number, line) in document.split('\n').enumerate() {
        let bare = line.trim_start_matches(' ');
        let indent = line.len() - bare.len();
        let is_key = !bare.trim().is_empty() && !bare.starts_with(['}', ']', ',', '#']);
        if !open.is_empty() && is_key && indent <= outer {
            out.insert_str(end, &std::mem::take(&mut open).closing());
        }
        if open.is_empty() {
            outer = indent;
        }
        if number > 0 {
            out.push('\n');
        }
        let text = open.read(line);
        if !text.trim().is_empty() {
            end = out.len() + text.trim_end().len();
        }
        out.push_str(line);
    }
    out
}

/// The signs that close what is open at the end of a text.
fn closing(text: &str) -> String {
    let mut open = Open::default();
    for line in text.split('\n') {
        open.read(line);
    }
    open.closing()
}

/// The brackets that are open, as the signs that close them, and the quote.
#[derive(Default)]
struct Open {
    brackets: Vec<char>,
    quote: Option<char>,
}

impl Open {
    fn is_empty(&self) -> bool {
        self.brackets.is_empty() && self.quote.is_none()
    }

    /// Returns the line without its comment.
    fn read<'l>(&mut self, line: &'l str) -> &'l str {
        let mut chars = line.char_indices();
        let mut before = ' ';
        while let Some((at, c)) = chars.next() {
            match (self.quote, c) {
                (Some('"'), '\\') => {
                    chars.next();
                }
                (Some(q), c) if q == c => self.quote = None,
                (Some(_), _) => {}
                // A quote within a word is a part of it.
                (None, '"' | '\'') if !before.is_alphanumeric() => self.quote = Some(c),
                (None, '#') if before.is_whitespace() => return &line[..at],
                (None, '{') => self.brackets.push('}'),
                (None, '[') => self.brackets.push(']'),
                (None, '}' | ']') => {
                    self.brackets.pop();
                }
                _ => {}
            }
            before = c;
        }
        line
    }

    fn closing(self) -> String {
        let brackets = self.brackets.into_iter().rev();
        self.quote.into_iter().chain(brackets).collect()
    }
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

    #[test]
    fn what_an_earlier_line_leaves_open_ends_by_the_layout() {
        for (document, cursor) in [
            (
                "a:\n  - {name: f, x: \"y#z\"\nb:\n  - c: 1\n    d: 2\ne: 3",
                3,
            ),
            (
                "a:\n  - {name: f, x: \"y#z\n  - {name: g}\nb: {c: 1}\ne: 3",
                3,
            ),
            ("a: [1, {x: 2\n\n# more\nb:\n  c: {x: 'y\n  d: 1\ne: 3", 4),
            ("a: {x: 1,\n  y: 2\nb: [{c: 1,\nf: 1\ne: 3", 5),
        ] {
            let root = read(document, cursor).unwrap_or_else(|| panic!("{document}"));
            for key in ["a", "b", "e"] {
                assert!(root.get(key).is_some(), "{key}: {document}");
            }
        }
        // A document that can be parsed keeps the layout of its author.
        let document = "a: {b: 1,\n    c: 2\n}\nd: 1";
        assert_eq!(closed_by_layout(document), document);
    }
}
