//! Lines of text in a picture.

/// Longer conditions and values are cut, in characters; a tooltip has the rest.
const TEXT_CHARS_MAX: usize = 40;
/// The longest text of a tooltip, in characters.
const FULL_CHARS_MAX: usize = 2000;

/// A line of text with a sign before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub sign: Sign,
    /// The shortened text that is drawn.
    pub text: String,
    /// With the parts that the text leaves out.
    pub full: String,
    /// Says more of the line above it.
    pub detail: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    None,
    Action,
    /// Something is done again.
    Again,
    /// An event that is waited for.
    In,
    /// An event that is produced.
    Out,
    Subflow,
    Time,
}

impl Line {
    pub fn new(sign: Sign, text: impl AsRef<str>) -> Line {
        let text: String = text
            .as_ref()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        Line {
            sign,
            full: crate::text::cut(&text, FULL_CHARS_MAX),
            text: crate::text::cut(&text, TEXT_CHARS_MAX),
            detail: false,
        }
    }

    /// One that says more of the line above it.
    pub fn detail(sign: Sign, text: impl AsRef<str>) -> Line {
        Line {
            detail: true,
            ..Line::new(sign, text)
        }
    }

    /// A short text for a longer one.
    pub fn short(sign: Sign, text: impl AsRef<str>, full: impl AsRef<str>) -> Line {
        Line {
            full: Line::new(sign, full).full,
            ..Line::new(sign, text)
        }
    }
}
