//! Character sets. A byte order mark counts more than `charset`, and that more than what an XML document declares. A text
//! without any of them is UTF-8.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE};

/// A declaration of XML is shorter.
const DECLARATION_BYTES_MAX: usize = 500;

/// The reason why bytes aren't a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CharsetError {
    #[error("the character set `{0}` isn't known")]
    Unknown(String),
    #[error("the body isn't valid {0}")]
    Invalid(&'static str),
    #[error("the text has characters that {0} doesn't have")]
    Unmappable(&'static str),
}

/// The text that the bytes are, without a byte order mark.
///
/// # Errors
/// [`CharsetError`].
pub fn text<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Result<Cow<'a, str>, CharsetError> {
    // Its mark begins with that of UTF-16.
    if bytes.starts_with(b"\xff\xfe\0\0") || bytes.starts_with(b"\0\0\xfe\xff") {
        return Err(CharsetError::Unknown("UTF-32".to_owned()));
    }
    let (encoding, mark) = match (Encoding::for_bom(bytes), content_type.and_then(label)) {
        (Some(marked), _) => marked,
        // Without a mark, this one is big-endian (RFC 2781, section 4.3).
        (None, Some(label)) if label.eq_ignore_ascii_case("utf-16") => (UTF_16BE, 0),
        (None, Some(label)) => (known(label)?, 0),
        (None, None) => match content_type.and_then(|media| declared(bytes, media)) {
            Some(label) => (known(label)?, 0),
            None => (UTF_8, 0),
        },
    };
    let text = encoding.decode_without_bom_handling_and_without_replacement(&bytes[mark..]);
    text.ok_or(CharsetError::Invalid(encoding.name()))
}

/// The bytes of a text in UTF-8, without a byte order mark.
///
/// # Errors
/// [`CharsetError`].
pub fn to_utf8(bytes: Vec<u8>, content_type: Option<&str>) -> Result<Vec<u8>, CharsetError> {
    match text(&bytes, content_type)? {
        Cow::Borrowed(text) if text.len() == bytes.len() => Ok(bytes),
        text => Ok(text.into_owned().into_bytes()),
    }
}

/// The bytes of a text in the `charset` of its content type, or in UTF-8.
///
/// # Errors
/// [`CharsetError`].
pub fn encode(text: &str, content_type: &str) -> Result<Vec<u8>, CharsetError> {
    let encoding = match label(content_type) {
        None => UTF_8,
        Some(label) => known(label)?,
    };
    // UTF-16 can only be read.
    if encoding.output_encoding() != encoding {
        return Err(CharsetError::Unknown(encoding.name().to_owned()));
    }
    match encoding.encode(text) {
        (bytes, _, false) => Ok(bytes.into_owned()),
        (_, _, true) => Err(CharsetError::Unmappable(encoding.name())),
    }
}

fn known(label: &str) -> Result<&'static Encoding, CharsetError> {
    let unknown = || CharsetError::Unknown(label.chars().take(40).collect());
    Encoding::for_label_no_replacement(label.as_bytes()).ok_or_else(unknown)
}

/// The encoding in the declaration of an XML document. It can be read as ASCII, so it isn't one of two bytes a character.
fn declared<'a>(bytes: &'a [u8], content_type: &str) -> Option<&'a str> {
    let media = crate::media_type(content_type);
    if !media.ends_with("/xml") && !media.ends_with("+xml") {
        return None;
    }
    let rest = bytes.strip_prefix(b"<?xml")?;
    let end = rest
        .windows(2)
        .take(DECLARATION_BYTES_MAX)
        .position(|two| two == b"?>")?;
    let declaration = std::str::from_utf8(&rest[..end]).ok()?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let label = value[1..].split(quote).next()?;
    let is_wide = label
        .get(..6)
        .is_some_and(|begin| begin.eq_ignore_ascii_case("utf-16"));
    (!is_wide && !label.is_empty()).then_some(label)
}

/// The value of `charset`.
fn label(content_type: &str) -> Option<&str> {
    let label = content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_it = name.trim().eq_ignore_ascii_case("charset");
        is_it.then(|| value.trim().trim_matches(['"', '\'']).trim())
    });
    label.filter(|label| !label.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_more_than_the_charset_and_utf_8_is_the_default() {
        for (media, bytes, expected) in [
            (None, &b"caf\xc3\xa9"[..], "caf\u{e9}"),
            (Some("text/plain"), b"\xef\xbb\xbfa", "a"),
            (
                Some("text/plain; charset=\"ISO-8859-1\""),
                b"caf\xe9",
                "caf\u{e9}",
            ),
            (
                Some("text/plain; format=flowed; Charset='latin1'"),
                b"\xe9",
                "\u{e9}",
            ),
            (Some("text/plain; charset="), b"a", "a"),
            (
                Some("application/json; charset=utf-16le"),
                b"1\x002\0",
                "12",
            ),
            (Some("text/plain; charset=utf-8"), b"\xff\xfe1\0", "1"),
            (None, b"\xfe\xff\x001", "1"),
            (Some("text/plain; charset=UTF-16"), b"\x001\x002", "12"),
            (Some("text/plain; charset=utf-16"), b"\xff\xfe1\0", "1"),
        ] {
            assert_eq!(text(bytes, media).as_deref(), Ok(expected), "{media:?}");
            let utf8 = to_utf8(bytes.to_vec(), media);
            assert_eq!(utf8.as_deref(), Ok(expected.as_bytes()));
        }
    }

    #[test]
    fn an_xml_document_declares_its_encoding() {
        let latin = b"<?xml version=\"1.0\" encoding = 'ISO-8859-1' ?><a>\xe9</a>";
        for media in ["application/xml", "text/xml; version=1", "image/svg+xml"] {
            let found = text(latin, Some(media)).unwrap();
            assert!(found.ends_with("<a>\u{e9}</a>"), "{media}");
        }
        assert!(text(latin, Some("text/plain")).is_err());
        assert!(text(latin, Some("text/xml; charset=utf-8")).is_err());
        for plain in [
            "<a>\u{e9}</a>",
            "<?xml version='1.0'?><a>\u{e9}</a>",
            "<?xml version='1.0' encoding='UTF-16'?><a>\u{e9}</a>",
            "<?xml encoding=latin1 <a>\u{e9}</a>",
        ] {
            let found = text(plain.as_bytes(), Some("application/xml"));
            assert_eq!(found.as_deref(), Ok(plain));
        }
        let unknown = b"<?xml version='1.0' encoding='klingon'?><a/>";
        let error = text(unknown, Some("application/xml")).unwrap_err();
        assert_eq!(error.to_string(), "the character set `klingon` isn't known");
    }

    #[test]
    fn texts_are_sent_in_their_character_set() {
        let latin = encode("caf\u{e9}", "text/plain; charset=iso-8859-1");
        assert_eq!(latin.as_deref(), Ok(&b"caf\xe9"[..]));
        let plain = encode("caf\u{e9}", "text/plain");
        assert_eq!(plain.as_deref(), Ok("caf\u{e9}".as_bytes()));
        for (text, charset) in [("\u{4e2d}", "latin1"), ("a", "utf-16"), ("a", "klingon")] {
            let media = format!("text/plain; charset={charset}");
            assert!(encode(text, &media).is_err(), "{charset}");
        }
    }

    #[test]
    fn what_is_not_a_text_is_refused() {
        for (media, bytes, expected) in [
            (None, &b"\xff"[..], "the body isn't valid UTF-8"),
            (
                Some("text/plain; charset=klingon"),
                b"x",
                "the character set `klingon` isn't known",
            ),
            (
                Some("text/plain; charset=shift_jis"),
                b"\x81",
                "the body isn't valid Shift_JIS",
            ),
            (
                None,
                b"\xff\xfe\0\x001\0\0\0",
                "the character set `UTF-32` isn't known",
            ),
        ] {
            let error = text(bytes, media).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
