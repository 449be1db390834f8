//! The size of texts. There is no font here, so widths are those of Helvetica and similar fonts, plus a margin.

/// The width of a text in pixels, for a font size in pixels.
pub(super) fn width(text: &str, font: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * font * 1.13
}

/// In fractions of the font size.
fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' | '|' | '.' | ',' | ':' | ';' | '!' => 0.28,
        'f' | 't' | 'r' | 'I' | ' ' | '(' | ')' | '[' | ']' | '{' | '}' | '"' | '-' | '/' => 0.36,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 0.94,
        'A'..='Z' | '&' => 0.72,
        '\0'..='\u{7f}' => 0.58,
        '\u{80}'..='\u{2ff}' => 0.66,
        _ => 1.05,
    }
}

#[cfg(test)]
mod tests {
    use super::width;

    #[test]
    fn wider_texts_are_wider() {
        assert!(width("mmm", 10.0) > width("iii", 10.0));
        assert!(width("日本", 10.0) >= 20.0);
        assert_eq!(width("", 10.0), 0.0);
    }
}
