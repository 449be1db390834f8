//! A text with line positions, for converting the protocol's positions.

use serde::Serialize;

/// Counted from 0, in UTF-16 units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    pub line: usize,
    pub character: usize,
}

#[derive(Debug, Serialize)]
pub struct Range {
    pub start: Position,
    pub end: Position,
}

impl Range {
    pub fn holds(&self, at: Position) -> bool {
        self.start <= at && at <= self.end
    }
}

pub struct Text {
    text: String,
    /// The byte positions of the lines' beginnings, the first of which is 0.
    lines: Vec<usize>,
}

impl Text {
    pub fn new(text: String) -> Text {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        Text { text, lines }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A line without its line break; empty beyond the last line.
    pub fn line(&self, line: usize) -> &str {
        let Some(&start) = self.lines.get(line) else {
            return "";
        };
        let end = self
            .lines
            .get(line + 1)
            .map_or(self.text.len(), |end| end - 1);
        self.text[start..end].trim_end_matches('\r')
    }

    /// The byte at a position. A position beyond a line or the text is its end.
    pub fn byte(&self, at: Position) -> usize {
        match self.lines.get(at.line) {
            Some(start) => start + byte_of(self.line(at.line), at.character),
            None => self.text.len(),
        }
    }

    pub fn end(&self) -> Position {
        let line = self.lines.len() - 1;
        Position {
            line,
            character: units(self.line(line)),
        }
    }

    /// The byte at a location of the reader: line and character, both from 1.
    pub fn offset(&self, line: usize, column: usize) -> usize {
        let index = line.saturating_sub(1);
        let Some(start) = self.lines.get(index) else {
            return self.text.len();
        };
        let text = self.line(index);
        let mut characters = text.char_indices();
        let within = characters.nth(column.saturating_sub(1));
        start + within.map_or(text.len(), |(at, _)| at)
    }

    /// The position of a byte. A byte beyond the text is its end.
    pub fn position(&self, byte: usize) -> Position {
        let line = self.lines.partition_point(|start| *start <= byte) - 1;
        let text = self.line(line);
        let within = byte - self.lines[line];
        Position {
            line,
            character: units(text.get(..within).unwrap_or(text)),
        }
    }

    /// The range between two byte offsets.
    pub fn between(&self, bytes: std::ops::Range<usize>) -> Range {
        Range {
            start: self.position(bytes.start),
            end: self.position(bytes.end),
        }
    }

    /// The location of a position in the reader's form: line and character, both from 1.
    pub fn place(&self, at: Position) -> (usize, usize) {
        (at.line + 1, self.before(at).chars().count() + 1)
    }

    pub fn replace(&mut self, start: Position, end: Position, new: &str) {
        let (start, end) = (self.byte(start), self.byte(end));
        let mut text = std::mem::take(&mut self.text);
        text.replace_range(start.min(end)..end.max(start), new);
        *self = Text::new(text);
    }

    /// The text of the line before a position.
    pub fn before(&self, at: Position) -> &str {
        let line = self.line(at.line);
        &line[..byte_of(line, at.character)]
    }

    /// The line of a position, and the range of bytes of one kind around the position.
    pub fn around(
        &self,
        at: Position,
        part: impl Fn(char) -> bool,
    ) -> (&str, std::ops::Range<usize>) {
        let line = self.line(at.line);
        let (before, after) = line.split_at(self.before(at).len());
        let start = before.trim_end_matches(&part).len();
        let end = line.len() - after.trim_start_matches(&part).len();
        (line, start..end)
    }

    /// A range in a line, given in bytes of the line.
    pub fn range(&self, line: usize, start: usize, end: usize) -> Range {
        let text = self.line(line);
        let position = |byte: usize| Position {
            line,
            character: units(text.get(..byte).unwrap_or(text)),
        };
        Range {
            start: position(start),
            end: position(end),
        }
    }

    /// The range from a location of the reader (line and character, both from 1) to the end of the word there.
    pub fn word_at(&self, line: usize, column: usize) -> Range {
        let line = line.saturating_sub(1);
        let text = self.line(line);
        let start = text
            .char_indices()
            .nth(column.saturating_sub(1))
            .map_or(text.len(), |(at, _)| at);
        let rest = &text[start..];
        let length = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => rest[1..].find(quote).map_or(rest.len(), |end| end + 2),
            Some('{' | '[') => 1,
            Some(_) => {
                let end = rest.find([',', '}', ']', '#']).unwrap_or(rest.len());
                let end = rest[..end].find(": ").unwrap_or(end);
                rest[..end].trim_end().trim_end_matches(':').len().max(1)
            }
            None => 0,
        };
        self.range(line, start, (start + length).min(text.len()))
    }
}

fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

fn byte_of(line: &str, character: usize) -> usize {
    let mut passed = 0;
    for (at, c) in line.char_indices() {
        if passed >= character {
            return at;
        }
        passed += c.len_utf16();
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, character: usize) -> Position {
        Position { line, character }
    }

    #[test]
    fn edits() {
        let mut text = Text::new("a\u{1f600}b\r\nc\n".to_owned());
        text.replace(at(0, 3), at(0, 4), "X");
        assert_eq!(text.as_str(), "a\u{1f600}X\r\nc\n");
        text.replace(at(0, 99), at(1, 0), "-");
        assert_eq!(text.as_str(), "a\u{1f600}X-c\n");
        text.replace(at(9, 0), at(9, 9), "end");
        assert_eq!(
            (text.as_str(), text.end()),
            ("a\u{1f600}X-c\nend", at(1, 3))
        );
        text.replace(at(1, 3), at(1, 0), "");
        assert_eq!(text.as_str(), "a\u{1f600}X-c\n");
    }

    #[test]
    fn bytes_and_positions() {
        let text = Text::new("a\u{1f600}b\r\nc\n".to_owned());
        for (byte, position) in [
            (0, at(0, 0)),
            (5, at(0, 3)),
            (8, at(1, 0)),
            (9, at(1, 1)),
            (10, at(2, 0)),
            (99, at(2, 0)),
        ] {
            assert_eq!(text.position(byte), position, "{byte}");
        }
        assert_eq!(text.offset(1, 3), 5);
        assert_eq!(text.offset(2, 9), 9);
        assert_eq!(text.offset(9, 1), 10);
        assert_eq!(text.place(at(0, 3)), (1, 3));
    }

    #[test]
    fn words() {
        let text = Text::new("a: {name: \"x y\", b: c}\nkey: two words # c\n".to_owned());
        for ((line, column), (start, end)) in [
            ((1, 5), (4, 8)),
            ((1, 11), (10, 15)),
            ((1, 21), (20, 21)),
            ((1, 4), (3, 4)),
            ((2, 1), (0, 3)),
            ((2, 6), (5, 14)),
            ((9, 9), (0, 0)),
        ] {
            let range = text.word_at(line, column);
            assert_eq!(
                (range.start.character, range.end.character),
                (start, end),
                "{line}:{column}"
            );
        }
    }
}
