//! Finds the properties around a position in the text, even if it can't be parsed.

use super::text::{Position, Text};

/// The number of lines above the position that are examined.
const LINES_MAX: usize = 2_000;

/// The names of the properties around a position, innermost first.
pub fn keys(text: &Text, at: Position) -> Vec<String> {
    let before = text.before(at);
    let mut keys: Vec<String> = Vec::new();
    let mut add = |line: &str| keys.extend(opened(line).into_iter().rev().map(str::to_owned));
    add(before);
    let mut limit = Begin::of(before).outer();
    for line in (0..at.line).rev().take(LINES_MAX) {
        let line = text.line(line);
        let begin = Begin::of(line);
        if begin.is_empty {
            continue;
        }
        if begin.key < limit {
            add(line);
        }
        // The first line of an item also stands for its dash.
        if begin.key < limit || (begin.key == limit && begin.dash.is_some()) {
            limit = begin.outer();
        }
        if limit == 0 {
            break;
        }
    }
    keys
}

/// The indentation of a line, in spaces.
struct Begin {
    is_empty: bool,
    dash: Option<usize>,
    key: usize,
}

impl Begin {
    fn of(line: &str) -> Begin {
        let bare = line.trim_start_matches(' ');
        let indent = line.len() - bare.len();
        let is_item = bare.starts_with("- ") || bare == "-";
        let inner = bare.trim_start_matches([' ', '-']);
        Begin {
            is_empty: bare.trim().is_empty() || bare.starts_with('#'),
            dash: is_item.then_some(indent),
            key: if is_item {
                line.len() - inner.len()
            } else {
                indent
            },
        }
    }

    /// Properties that enclose it begin before this column. A list may begin at the column of its property.
    fn outer(&self) -> usize {
        self.dash.map_or(self.key, |dash| dash + 1)
    }
}

/// The properties in a line whose values are not closed on it, outermost first.
fn opened(line: &str) -> Vec<&str> {
    // For each bracket, the property that it belongs to.
    let mut stack: Vec<Option<&str>> = Vec::new();
    let first = line.len() - line.trim_start_matches([' ', '-']).len();
    let mut start = first;
    let mut key: Option<&str> = None;
    let mut quote = None;
    let mut last = ' ';
    for (at, c) in line.char_indices().skip_while(|(at, _)| *at < first) {
        match (quote, c) {
            (Some(open), c) if c == open && last != '\\' => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if matches!(last, ' ' | '{' | '[' | ',' | ':') => quote = Some(c),
            // An expression without quotes.
            (None, '{') if last == '$' => break,
            (None, '{' | '[') => {
                stack.push(key.take());
                start = at + 1;
            }
            (None, '}' | ']') => {
                key = stack.pop().flatten();
            }
            (None, ',') => (start, key) = (at + 1, None),
            (None, ':') if key.is_none() => {
                key = Some(line[start..at].trim().trim_matches(['"', '\'']));
            }
            _ => {}
        }
        last = c;
    }
    let mut keys: Vec<&str> = stack.into_iter().flatten().collect();
    keys.extend(key);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(document: &str) -> String {
        let (before, after) = document.split_once('\u{a6}').unwrap();
        let text = Text::new(format!("{before}{after}"));
        keys(&text, text.position(before.len())).join(" ")
    }

    #[test]
    fn properties_around() {
        for (document, expected) in [
            ("a: ¦", "a"),
            ("a: {b: 1, c: {d: '${ {x: .¦", "d c a"),
            ("a:\n- b: 1\n  c:\n    d: ¦", "d c a"),
            ("a:\n  - b: 1\n    c: 2\n  - b: {e: 2}\n    d: ¦", "d a"),
            (
                "x: 1\na:\n  - b:\n      c: |\n        .d\n        | .¦",
                "c b a",
            ),
            ("a:\n  - - b: 1\n      # c:\n\n      d: [1, {e: ¦", "e d a"),
            (
                "{\n  \"a\": [\n    {\n      \"b\": {\n        \"c\": \"${ .¦",
                "c b a",
            ),
            ("a: {b: {c: 1}, d: ¦", "d a"),
            ("¦", ""),
        ] {
            assert_eq!(around(document), expected, "{document}");
        }
    }
}
