//! Small helpers for text output.

/// Formats rows as columns with two spaces between them. The first row is the header.
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
