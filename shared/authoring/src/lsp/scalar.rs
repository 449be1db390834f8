//! A scalar as written in the document, and its value: with quotes, escapes, or as a block on several lines.

/// The decoded value of a scalar.
#[derive(Debug, Default)]
pub struct Scalar {
    pub value: String,
    /// The position in the document of each byte of the value, and of its end.
    offsets: Vec<usize>,
}

impl Scalar {
    /// Reads the scalar that begins at a byte of the document. A block begins at its header, or, as in the reader, at
    /// the first character in the lines below it. A scalar without quotes is read to the end of its line, since only
    /// its context determines whether a comma or brace ends it.
    pub fn at(document: &str, start: usize) -> Scalar {
        let rest = document.get(start..).unwrap_or_default();
        let mut scalar = Scalar::default();
        let header = header(document, start);
        match rest.chars().next() {
            _ if header.is_some() => scalar.block(document, header.unwrap_or(start)),
            Some('"') => scalar.quoted(rest, start, '"'),
            Some('\'') => scalar.quoted(rest, start, '\''),
            Some('|' | '>') => scalar.block(document, start),
            _ => {
                let line = rest.split(['\n', '\r']).next().unwrap_or_default();
                scalar.push(line.split(" #").next().unwrap_or(line), start);
            }
        }
        scalar
            .offsets
            .push(scalar.offsets.last().map_or(start, |at| at + 1));
        scalar
    }

    /// The position in the document of a part of the value.
    pub fn place(&self, part: std::ops::Range<usize>) -> Option<std::ops::Range<usize>> {
        Some(*self.offsets.get(part.start)?..*self.offsets.get(part.end)?)
    }

    fn push(&mut self, text: &str, at: usize) {
        self.value.push_str(text);
        self.offsets.extend(at..at + text.len());
    }

    /// Adds one character of the value that is written at `at`.
    fn stands_for(&mut self, c: char, at: usize) {
        self.value.push(c);
        self.offsets.extend(std::iter::repeat_n(at, c.len_utf8()));
    }

    fn quoted(&mut self, rest: &str, start: usize, quote: char) {
        let mut chars = rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '\'' if quote == '\'' => match chars.next_if(|(_, next)| *next == '\'') {
                    Some(_) => self.stands_for('\'', start + at),
                    None => return,
                },
                '"' if quote == '"' => return,
                '\\' if quote == '"' => match chars.next() {
                    Some((_, 'n')) => self.stands_for('\n', start + at),
                    Some((_, 't')) => self.stands_for('\t', start + at),
                    Some((_, escaped)) => self.stands_for(escaped, start + at),
                    None => return,
                },
                // A line break inside quotes is a space.
                '\n' => {
                    self.stands_for(' ', start + at);
                    while chars.next_if(|(_, next)| next.is_whitespace()).is_some() {}
                }
                '\r' => {}
                c => self.push(c.encode_utf8(&mut [0; 4]), start + at),
            }
        }
    }

    fn block(&mut self, document: &str, start: usize) {
        let is_folded = document[start..].starts_with('>');
        let header = document[start..].find('\n').map(|at| start + at + 1);
        let Some(mut at) = header else { return };
        let mut indent = None;
        for line in document[at..].split_inclusive('\n') {
            let text = line.trim_end_matches(['\n', '\r']);
            let spaces = text.len() - text.trim_start_matches(' ').len();
            let is_blank = text.len() == spaces;
            let indent = match (indent, is_blank) {
                (None, true) => spaces,
                (None, false) => *indent.insert(spaces),
                (Some(indent), _) => indent,
            };
            if !is_blank && (spaces < indent || indent == 0) {
                return;
            }
            self.push(text.get(indent..).unwrap_or_default(), at + indent);
            let end = if is_folded { ' ' } else { '\n' };
            self.stands_for(end, at + text.len());
            at += line.len();
        }
    }
}

/// The beginning of the block whose text has its first character at a byte.
fn header(document: &str, start: usize) -> Option<usize> {
    let before = document.get(..start)?;
    let (above, indent) = before.rsplit_once('\n')?;
    let above = above.trim_end();
    let line = above.rfind('\n').map_or(0, |at| at + 1);
    let bare = above.trim_end_matches(|c: char| "+-".contains(c) || c.is_ascii_digit());
    let sign = bare.len().checked_sub(1)?;
    let is_header = bare.ends_with(['|', '>']) && above[line..sign].ends_with(": ");
    (is_header && indent.trim().is_empty()).then_some(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(document: &str, start: usize, part: &str) -> String {
        let scalar = Scalar::at(document, start);
        let found = scalar.value.find(part).unwrap();
        let place = scalar.place(found..found + part.len()).unwrap();
        document[place].to_owned()
    }

    #[test]
    fn parts_of_values_are_found_in_the_document() {
        assert_eq!(part("a: .b | c # d", 3, ".b | c"), ".b | c");
        assert_eq!(part("a: 'it''s ${ .b }'", 3, ".b"), ".b");
        assert_eq!(part("a: \"\\\"x\\\" + .b\"", 3, "+ .b"), "+ .b");
        assert_eq!(part("a: 'x\n   y'\n", 3, "y"), "y");
        assert_eq!(part("a: |\n  x\n  y z\nb: 1", 3, "y z"), "y z");
        assert_eq!(part("a: >-\n\n    x\n    y\nb: 1", 3, "x y"), "x\n    y");
        assert_eq!(Scalar::at("a: |\n  x\nb: 1", 3).value, "x\n");
        assert_eq!(Scalar::at("a: |-\n\n  x\n  y\nb: 1", 9).value, "\nx\ny\n");
        assert_eq!(Scalar::at("", 9).value, "");
    }
}
