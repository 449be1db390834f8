//! Finds one form of a value at a place in a text.
//!
//! Encoders differ in which characters they escape, and text may be escaped more than once. So each character of the
//! value matches in any of its forms, independently of the others; the search follows all possible ends of the matched
//! part at once.

/// The form in which a value is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternKind {
    /// The value, with any character escaped.
    Escaped,
    /// Part of Base64: the characters around it belong to it.
    Base64,
    /// Hexadecimal digits of either case.
    Digits,
}

/// How far a line of Base64 may be indented.
const INDENT_MAX: usize = 64;
/// How often `%` or `&` may be encoded again.
const ROUNDS_MAX: usize = 64;

/// A text that is searched.
pub struct Search<'t> {
    pub text: &'t [u8],
    /// Everything before it has been processed.
    pub floor: usize,
    /// The last stretch of Base64 that was cut out: nothing in it needs measuring again.
    stretch: (usize, usize),
    /// So are the last backslashes.
    backslashes: (usize, usize),
}

impl<'t> Search<'t> {
    pub fn new(text: &'t str, floor: usize) -> Search<'t> {
        Search {
            text: text.as_bytes(),
            floor,
            stretch: (0, 0),
            backslashes: (0, 0),
        }
    }

    /// All the Base64 around a part of it.
    fn widened(&mut self, start: usize, end: usize) -> (usize, usize) {
        if self.stretch.0 <= start && end <= self.stretch.1 {
            return self.stretch;
        }
        let before = self.text[self.floor..start].iter().rev();
        let after = self.text[end..].iter();
        self.stretch = (
            start - before.take_while(|byte| is_base64(**byte)).count(),
            end + after.take_while(|byte| is_base64(**byte)).count(),
        );
        self.stretch
    }

    /// The number of backslashes at `at`.
    fn backslashes(&mut self, at: usize) -> usize {
        if !(self.backslashes.0..self.backslashes.1).contains(&at) {
            let run = self.text[at..].iter().take_while(|byte| **byte == b'\\');
            self.backslashes = (at, at + run.count());
        }
        self.backslashes.1 - at
    }

    /// Whether backslashes that begin before `at` are followed by the same text as those at `at`: a match here would be
    /// the same as the match there.
    fn is_seen(&self, at: usize) -> bool {
        at > self.floor && self.text[at - 1] == b'\\' && self.text[at] == b'\\'
    }
}

pub struct Pattern {
    chars: Vec<char>,
    kind: PatternKind,
}

impl Pattern {
    pub fn escaped(value: &str) -> Pattern {
        Pattern::of(value, PatternKind::Escaped)
    }

    pub fn base64(core: &str) -> Pattern {
        Pattern::of(core, PatternKind::Base64)
    }

    /// `digits` are in lower case.
    pub fn digits(digits: &str) -> Pattern {
        Pattern::of(digits, PatternKind::Digits)
    }

    fn of(text: &str, kind: PatternKind) -> Pattern {
        Pattern {
            chars: text.chars().collect(),
            kind,
        }
    }

    /// The bytes that a match may begin with.
    pub fn first_bytes(&self) -> Vec<u8> {
        let Some(first) = self.chars.first().copied() else {
            return Vec::new();
        };
        let mut buffer = [0; 4];
        let mut bytes = vec![first.encode_utf8(&mut buffer).as_bytes()[0]];
        if self.kind == PatternKind::Digits {
            bytes.push(bytes[0].to_ascii_uppercase());
        } else {
            bytes.extend(b"\\%&");
            if first == ' ' {
                bytes.push(b'+');
            }
            if !first.is_ascii() {
                // Read as Latin-1, and replaced by U+FFFD.
                bytes.extend([0xc2, 0xc3, 0xef]);
            }
        }
        bytes.sort_unstable();
        bytes.dedup();
        bytes
    }

    /// Start and end of the text to cut out, if a match begins at `at`.
    pub fn matches(&self, search: &mut Search<'_>, at: usize) -> Option<(usize, usize)> {
        let text = search.text;
        if search.is_seen(at) {
            return None;
        }
        let (mut ends, mut next) = (vec![at], Vec::new());
        for (index, char) in self.chars.iter().enumerate() {
            for at in ends.drain(..) {
                match self.kind {
                    PatternKind::Escaped => forms(search, at, *char, &mut next),
                    PatternKind::Base64 => {
                        forms(search, at, *char, &mut next);
                        let after = line_break(text, at);
                        if index > 0 && after > at {
                            forms(search, after, *char, &mut next);
                        }
                    }
                    PatternKind::Digits => {
                        digit(text, at, *char, &mut next);
                        // Between bytes: `de:ad:be:ef`.
                        let is_apart = text.get(at).is_some_and(|byte| b":-. ".contains(byte));
                        if index > 0 && index % 2 == 0 && is_apart {
                            digit(text, at + 1, *char, &mut next);
                        }
                    }
                }
            }
            if next.is_empty() {
                return None;
            }
            next.sort_unstable();
            next.dedup();
            std::mem::swap(&mut ends, &mut next);
        }
        let end = ends.last().copied()?;
        Some(match self.kind {
            PatternKind::Base64 => search.widened(at, end),
            PatternKind::Digits | PatternKind::Escaped => (at, end),
        })
    }
}

/// In an URL or a JSON string too.
fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_=%\\".contains(&byte)
}

/// Returns the end of a line break that begins at `at`: Base64 is written in lines (RFC 2045, RFC 7468).
/// The line break may be escaped as in JSON or a URL, and the next line indented.
fn line_break(text: &[u8], at: usize) -> usize {
    let mut end = at;
    for line in [
        &b"\r"[..],
        b"\\r",
        b"%0D",
        b"%0d",
        b"\n",
        b"\\n",
        b"%0A",
        b"%0a",
    ] {
        if text.get(end..).is_some_and(|rest| rest.starts_with(line)) {
            end += line.len();
        }
    }
    if end > at {
        let rest = text.get(end..).unwrap_or_default().iter();
        let indent = rest
            .take(INDENT_MAX)
            .take_while(|byte| b" \t".contains(byte));
        end += indent.count();
    }
    end
}

fn digit(text: &[u8], at: usize, char: char, ends: &mut Vec<usize>) {
    if text
        .get(at)
        .is_some_and(|byte| char::from(byte.to_ascii_lowercase()) == char)
    {
        ends.push(at + 1);
    }
}

/// Returns the possible ends of a character that begins at `at`, one for each form that it may have
/// there.
fn forms(search: &mut Search<'_>, at: usize, char: char, ends: &mut Vec<usize>) {
    let text = search.text;
    let rest = text.get(at..).unwrap_or_default();
    let mut buffer = [0; 4];
    let plain = char.encode_utf8(&mut buffer).as_bytes();
    if rest.starts_with(plain) {
        ends.push(at + plain.len());
    }
    match rest.first() {
        Some(b'\\') => backslash(search, at, char, ends),
        Some(b'%') => percent(text, at, char, plain, ends),
        Some(b'&') => entity(text, at, char, ends),
        Some(b'+') if char == ' ' => ends.push(at + 1),
        Some(0xc2 | 0xc3) if !char.is_ascii() => {
            let latin: String = plain.iter().copied().map(char::from).collect();
            if rest.starts_with(latin.as_bytes()) {
                ends.push(at + latin.len());
            }
        }
        Some(0xef) if !char.is_ascii() => {
            let replaced = "\u{fffd}".as_bytes();
            let mut end = at;
            while text[end..].starts_with(replaced) && end < at + plain.len() * replaced.len() {
                end += replaced.len();
                ends.push(end);
            }
        }
        _ => {}
    }
}

/// Escapes of JSON and of programming languages; the more often a text was escaped, the more
/// backslashes there are.
fn backslash(search: &mut Search<'_>, at: usize, char: char, ends: &mut Vec<usize>) {
    let text = search.text;
    let run = search.backslashes(at);
    if char == '\\' {
        // All of them, or all but the one that escapes the next character.
        ends.extend((at + (run - 1).max(1)..=at + run).take(2));
    }
    let after = at + run;
    let rest = &text[after..];
    let short = match char {
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '\u{8}' => Some('b'),
        '\u{c}' => Some('f'),
        char if char.is_ascii_alphanumeric() => None,
        char => Some(char),
    };
    if let Some(short) = short {
        let mut buffer = [0; 4];
        let short = short.encode_utf8(&mut buffer).as_bytes();
        if rest.starts_with(short) {
            ends.push(after + short.len());
        }
    }
    let code = u32::from(char);
    if rest.starts_with(b"u{") {
        let digits = rest
            .iter()
            .skip(2)
            .take(8)
            .take_while(|byte| **byte != b'}')
            .count();
        if number(&rest[2..2 + digits], 16) == Some(code) && rest.get(2 + digits) == Some(&b'}') {
            ends.push(after + digits + 3);
        }
    } else if rest.first() == Some(&b'u') {
        ends.extend(utf16(search, after, char));
    } else if rest.first() == Some(&b'x')
        && number(rest.get(1..3).unwrap_or_default(), 16) == Some(code)
    {
        ends.push(after + 3);
    }
}

/// The end of `uXXXX`, or of `uXXXX\uXXXX` for a character of two such units.
fn utf16(search: &mut Search<'_>, mut at: usize, char: char) -> Option<usize> {
    let text = search.text;
    let mut buffer = [0; 2];
    for (index, unit) in char.encode_utf16(&mut buffer).iter().enumerate() {
        if index > 0 {
            at += search.backslashes(at);
        }
        let digits = text.get(at + 1..at + 5)?;
        if text[at] != b'u' || number(digits, 16) != Some(u32::from(*unit)) {
            return None;
        }
        at += 5;
    }
    Some(at)
}

/// `%XX` of each byte, in UTF-8 or Latin-1; `%` itself may be encoded again and again.
fn percent(text: &[u8], at: usize, char: char, plain: &[u8], ends: &mut Vec<usize>) {
    let mut reached = vec![at];
    for byte in plain {
        let mut next = Vec::new();
        for at in reached {
            percent_byte(text, at, u32::from(*byte), &mut next);
        }
        reached = next;
    }
    ends.extend(reached);
    let code = u32::from(char);
    if (0x80..0x100).contains(&code) {
        percent_byte(text, at, code, ends);
    }
}

fn percent_byte(text: &[u8], at: usize, byte: u32, ends: &mut Vec<usize>) {
    if text.get(at) != Some(&b'%') {
        return;
    }
    let mut at = at + 1;
    for _ in 0..ROUNDS_MAX {
        let Some(digits) = text.get(at..at + 2) else {
            return;
        };
        at += 2;
        if number(digits, 16) == Some(byte) {
            ends.push(at);
        }
        if digits != b"25" {
            return;
        }
    }
}

/// `&amp;`, `&#38;`, `&#x26;`; `&` itself may be encoded again and again.
fn entity(text: &[u8], at: usize, char: char, ends: &mut Vec<usize>) {
    let named: &[&str] = match char {
        '&' => &["amp;"],
        '<' => &["lt;"],
        '>' => &["gt;"],
        '"' => &["quot;"],
        '\'' => &["apos;"],
        _ => &[],
    };
    let mut after = at + 1;
    for _ in 0..ROUNDS_MAX {
        let rest = &text[after..];
        for name in named {
            if rest.starts_with(name.as_bytes()) {
                ends.push(after + name.len());
            }
        }
        if rest.first() == Some(&b'#') {
            let digits = rest.iter().take(10);
            let digits = digits.take_while(|byte| **byte != b';').count();
            let (radix, from) = match rest.get(1) {
                Some(b'x' | b'X') => (16, 2),
                _ => (10, 1),
            };
            let is_char =
                number(rest.get(from..digits).unwrap_or_default(), radix) == Some(u32::from(char));
            if is_char && rest.get(digits) == Some(&b';') {
                ends.push(after + digits + 1);
            }
        }
        if !rest.starts_with(b"amp;") {
            return;
        }
        after += 4;
    }
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty()
        || !digits
            .iter()
            .all(|digit| char::from(*digit).is_digit(radix))
    {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}
