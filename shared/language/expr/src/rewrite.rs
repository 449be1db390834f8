//! Rewrites forms that jq accepts but jaq's lexer doesn't into forms that both accept: numbers without a digit on one
//! side of the point (`.1`, `1.`), and characters beyond 65535 as two escapes (`"\ud83d\ude00"`).

use std::ops::Range;

/// A source in the form for the lexer, with a mapping of positions back to the original.
pub(crate) struct Rewritten {
    pub text: String,
    /// From each position in the new text on: the difference from the position in the original.
    shifts: Vec<(usize, isize)>,
}

impl Rewritten {
    /// The corresponding span in the original.
    pub fn original(&self, span: Range<usize>) -> Range<usize> {
        let at = |place: usize| {
            let before = self.shifts.partition_point(|(from, _)| *from <= place);
            let shift = before.checked_sub(1).map_or(0, |n| self.shifts[n].1);
            usize::try_from(place as isize - shift).unwrap_or(0)
        };
        at(span.start)..at(span.end)
    }
}

/// `None` if nothing has to be changed.
pub(crate) fn rewritten(source: &str) -> Option<Rewritten> {
    let bytes = source.as_bytes();
    let mut out = Rewritten {
        text: String::new(),
        shifts: Vec::new(),
    };
    // The end of the part that has been copied.
    let mut copied = 0;
    // For each enclosing string: the number of open parentheses in its interpolation.
    let mut strings: Vec<usize> = Vec::new();
    let mut in_string = false;
    let mut at = 0;
    let mut replace = |from: usize, to: usize, with: &str, copied: &mut usize| {
        out.text.push_str(&source[*copied..from]);
        out.text.push_str(with);
        *copied = to;
        let shift = out.text.len() as isize - to as isize;
        out.shifts.push((out.text.len(), shift));
    };
    while let Some(&byte) = bytes.get(at) {
        if in_string {
            match byte {
                b'"' => in_string = false,
                b'\\' if bytes.get(at + 1) == Some(&b'(') => {
                    strings.push(0);
                    in_string = false;
                    at += 1;
                }
                b'\\' => {
                    if let Some(c) = pair(source, at) {
                        replace(at, at + 12, c.encode_utf8(&mut [0; 4]), &mut copied);
                        at += 11;
                    } else {
                        at += 1;
                    }
                }
                _ => {}
            }
            at += 1;
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'#' => {
                let rest = &bytes[at..];
                at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                continue;
            }
            b'(' => {
                if let Some(open) = strings.last_mut() {
                    *open += 1;
                }
            }
            b')' => match strings.last_mut() {
                Some(0) => {
                    strings.pop();
                    in_string = true;
                }
                Some(open) => *open -= 1,
                None => {}
            },
            b'.' if digit(bytes, at + 1) && !follows_term(bytes, at) => {
                replace(at, at, "0", &mut copied);
                at = number(bytes, at + 1);
                continue;
            }
            b'0'..=b'9' if !in_name(bytes, at) => {
                let end = digits(bytes, at);
                if bytes.get(end) == Some(&b'.')
                    && !digit(bytes, end + 1)
                    && bytes.get(end + 1) != Some(&b'.')
                {
                    replace(end + 1, end + 1, "0", &mut copied);
                }
                at = number(bytes, at);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    if copied == 0 && out.text.is_empty() {
        return None;
    }
    out.text.push_str(&source[copied..]);
    Some(out)
}

fn digit(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(u8::is_ascii_digit)
}

fn digits(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    at + rest
        .iter()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(rest.len())
}

/// The end of a number: its digits, a point, and the digits after it.
fn number(bytes: &[u8], at: usize) -> usize {
    let end = digits(bytes, at);
    match bytes.get(end) {
        Some(b'.') if bytes.get(end + 1) != Some(&b'.') => digits(bytes, end + 1),
        _ => end,
    }
}

/// A digit in a name.
fn in_name(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|at| bytes[at]);
    before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A point after something that may have members.
fn follows_term(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|at| bytes[at]);
    before.is_some_and(|b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b')' | b']' | b'}' | b'"' | b'.' | b'?')
    })
}

/// The character that two escapes stand for.
fn pair(source: &str, at: usize) -> Option<char> {
    let unit = |at: usize| {
        let digits = source.get(at..at + 6)?.strip_prefix("\\u")?;
        let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    };
    let (high, low) = (unit(at)?, unit(at + 6)?);
    let is_pair = (0xd800..0xdc00).contains(&high);
    char::decode_utf16([high, low])
        .next()?
        .ok()
        .filter(|_| is_pair)
}

#[cfg(test)]
mod tests {
    use super::rewritten;

    #[test]
    fn only_unsupported_forms_are_rewritten() {
        let text = |source| rewritten(source).map(|done| done.text);
        for source in [
            ".a",
            "1.5",
            ".[0].b",
            "1..",
            ".a.b",
            "\".1 1.\"",
            "a1.b",
            "# .1",
            ".[1:2]",
            "\"\\ud83d x\"",
        ] {
            assert_eq!(text(source), None, "{source}");
        }
        for (source, expected) in [
            (".1", "0.1"),
            ("1. + .5", "1.0 + 0.5"),
            ("[.1,2.]", "[0.1,2.0]"),
            ("\"a\\(.5)b.5\"", "\"a\\(0.5)b.5\""),
            ("\"\\ud83d\\ude00\"", "\"😀\""),
            (".1e5", "0.1e5"),
            ("\"\\(\"\\(.1)\")\" | .2", "\"\\(\"\\(0.1)\")\" | 0.2"),
        ] {
            assert_eq!(text(source).as_deref(), Some(expected));
        }
    }

    #[test]
    fn positions_refer_to_the_original() {
        let done = rewritten(".1 + \"\\ud83d\\ude00\" + nope").unwrap_or_else(|| unreachable!());
        let at = done.text.find("nope").unwrap_or_default();
        assert_eq!(done.original(at..at + 4), 22..26);
    }
}
