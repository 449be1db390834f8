//! One layout for all documents: the implementation of `swirl fmt`.
//!
//! Comments, the order of keys and the meaning of each value are preserved. This is verified independently of the
//! printers: the result is read again and compared with the original, and formatted again to make sure that it no
//! longer changes. A text that fails a check is not returned.

mod json;
mod same;
mod yaml;

use swirl_documents::diagnostic::Diagnostic;
use swirl_documents::source::{self, Limits, Node};

/// The preferred maximum length of a line, in characters.
pub const WIDTH: usize = 120;

/// The reason why a text was not formatted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a document, so its layout can't be determined.
    #[error("{0}")]
    Unreadable(Box<Diagnostic>),
    /// YAML that the reader supports but the printer doesn't.
    #[error("the formatter cannot read this YAML: {0}; the text stays as it is")]
    Unprintable(String),
    /// One of the checks failed.
    #[error("formatting would change {0}; the text stays as it is")]
    Unfaithful(String),
}

/// Formats a document in the common layout. JSON stays JSON, and YAML stays YAML.
///
/// # Errors
/// See [`Error`]. Retrying never helps.
pub fn format(document: &[u8]) -> Result<String, Error> {
    let before = parse(document)?;
    // The reader has checked that it is UTF-8.
    let text = String::from_utf8_lossy(document);
    let is_json =
        serde_json::from_str::<serde::de::IgnoredAny>(text.trim_start_matches('\u{feff}'));
    let print = match is_json {
        Ok(_) => json::print,
        Err(_) => yaml::print,
    };
    let windows = text
        .split_once('\n')
        .is_some_and(|(first, _)| first.ends_with('\r'));
    let plain = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut printed = print(&plain)?;
    let again = print(&printed)?;
    if again != printed {
        // A moved comment may make room for a value, so the second result is the stable one.
        if print(&again)? != again {
            return Err(Error::Unfaithful("its own result each time".to_owned()));
        }
        printed = again;
    }
    if windows {
        printed = printed.replace('\n', "\r\n");
    }
    let after = parse(printed.as_bytes())?;
    if let Some(pointer) = same::difference(&before, &after) {
        let place = if pointer.is_empty() { "/" } else { pointer };
        return Err(Error::Unfaithful(format!("the value at '{place}'")));
    }
    if is_json.is_err()
        && yaml::comments(&plain)? != yaml::comments(&printed.replace("\r\n", "\n"))?
    {
        return Err(Error::Unfaithful("a comment".to_owned()));
    }
    Ok(printed)
}

fn parse(document: &[u8]) -> Result<Node, Error> {
    source::parse(document, &Limits::default())
        .map_err(|finding| Error::Unreadable(Box::new(finding)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        for (given, expected) in [
            ("a:   1\nb:\n- x\n-   y\n", "a: 1\nb:\n  - x\n  - y\n"),
            (
                "# top\na: 1 # side\n\n\n\n# end\n",
                "# top\na: 1 # side\n\n# end\n",
            ),
            ("a: { b: 1,c: [ 2,3 ] }", "a: {b: 1, c: [2, 3]}\n"),
            ("a: 'x'\nb: 'say \"x\"'\n", "a: \"x\"\nb: 'say \"x\"'\n"),
            ("v: 1.0\nn: ~\n", "v: 1.0\nn: ~\n"),
            (
                "a: |\n    text  \n      more\n",
                "a: |\n  text  \n    more\n",
            ),
            (
                "a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n",
                "a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n",
            ),
            ("\u{feff}a: 1\r\nb:   2\r\n", "a: 1\r\nb: 2\r\n"),
            (
                "{\"a\":1,\"b\":[1,2.50],\"c\":\"\\u00e9\"}",
                "{\n  \"a\": 1,\n  \"b\": [1, 2.50],\n  \"c\": \"\\u00e9\"\n}\n",
            ),
            ("[]", "[]\n"),
            ("{a: [1, two,], b: 'x'}", "{a: [1, two], b: \"x\"}\n"),
        ] {
            let formatted = format(given.as_bytes()).unwrap();
            assert_eq!(formatted, expected, "{given}");
            assert_eq!(format(formatted.as_bytes()).unwrap(), formatted, "{given}");
        }
    }

    #[test]
    fn invalid_documents_are_rejected_with_their_location() {
        for (text, message) in [
            ("a: [1", "1:4"),
            ("", "1:1"),
            ("a: 1\na: 2\n", "2:1"),
            ("{\"a\": 1, \"a\": 2}", "1:10"),
        ] {
            match format(text.as_bytes()) {
                Err(Error::Unreadable(finding)) => {
                    assert_eq!(
                        format!("{}:{}", finding.line, finding.column),
                        message,
                        "{text}"
                    );
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn mutated_documents_are_formatted_faithfully_or_refused() {
        let seeds: [&str; 3] = [
            "# c\na: &x [1, 2.5, {b: 'c'}] # d\nd:\n  <<: {e: ~}\n  f: *x\n? g\n: |\n  text\n",
            "states:\n- name: A # first\n  data: {\n    a: 1, # one\n    b: \"two\" }\n  # last\n- >-\n  folded\n\n  text\n",
            "{\"a\": [1, -2.5e3, \"\\u00e9\\/\"],\n \"b\": {\"c\": null, \"d\": true}}",
        ];
        let bytes = b"{}[]:,&*!|>'\"%@`#-?~<\\\n\t 0eux";
        let mut state = 0x2545_f491_4f6c_dd1du64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let mut formatted = 0;
        for round in 0..1500 {
            let mut text = seeds[round % 3].as_bytes().to_vec();
            for _ in 0..=random(3) {
                let at = random(text.len());
                match random(3) {
                    0 => text[at] = bytes[random(bytes.len())],
                    1 => text.insert(at, bytes[random(bytes.len())]),
                    _ => drop(text.remove(at)),
                }
            }
            let text = String::from_utf8(text).unwrap();
            if let Ok(first) = format(text.as_bytes()) {
                formatted += 1;
                assert_eq!(
                    format(first.as_bytes()).ok().as_ref(),
                    Some(&first),
                    "{text}"
                );
            }
        }
        assert!(formatted > 250, "{formatted}");
    }
}
