//! Lines of text in a diagram.

/// Longer conditions and values are truncated, in characters. A tooltip has the full text.
const TEXT_CHARS_MAX: usize = 40;
/// The longest text of a tooltip, in characters.
const FULL_CHARS_MAX: usize = 2000;

/// A line of text with an icon.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub sign: Sign,
    /// The shortened text that is drawn.
    pub text: String,
    /// The full text, including the truncated parts.
    pub full: String,
    /// Adds details to the line above it.
    pub detail: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    None,
    Action,
    /// Something is repeated.
    Again,
    /// A consumed event.
    In,
    /// A produced event.
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

    /// A line with details of the line above it.
    pub fn detail(sign: Sign, text: impl AsRef<str>) -> Line {
        Line {
            detail: true,
            ..Line::new(sign, text)
        }
    }

    /// A short text that stands for a longer one.
    pub fn short(sign: Sign, text: impl AsRef<str>, full: impl AsRef<str>) -> Line {
        Line {
            full: Line::new(sign, full).full,
            ..Line::new(sign, text)
        }
    }
}
