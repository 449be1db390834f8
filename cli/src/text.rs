//! Small helpers for texts that people read.

/// A text cut to so many characters.
pub fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Rows in columns, two spaces between them; the first is the header.
pub fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: Vec<usize> = (0..N)
        .map(|column| {
            let widths = rows.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or_default()
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (value, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{value:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
