//! Text output in rustc's style.

use std::fmt::Write as _;

use crate::diagnostic::{Diagnostic, Severity};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    No,
    Ansi,
}

/// The shown width of a line, because minified documents have one long line.
const WIDTH: usize = 120;

/// One block for each finding, and a last line with their numbers. Empty if there are none.
pub fn human(file: &str, text: &str, diagnostics: &[Diagnostic], colour: Colour) -> String {
    if diagnostics.is_empty() {
        return String::new();
    }
    let lines = lines(text);
    let file = clean(file);
    let mut out = String::new();
    for diagnostic in diagnostics {
        block(&mut out, &file, &lines, diagnostic, colour);
        out.push('\n');
    }
    let count = |severity: Severity, word: &str| {
        let number = diagnostics
            .iter()
            .filter(|d| d.severity == severity)
            .count();
        match number {
            0 => None,
            1 => Some(format!("1 {word}")),
            number => Some(format!("{number} {word}s")),
        }
    };
    let counts = [
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning"),
        count(Severity::Info, "note"),
    ];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let _ = writeln!(out, "{file}: {}", counts.join(", "));
    out
}

/// Lines end with LF, CR LF or CR alone, as in the parsers.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        lines.extend(line.strip_suffix('\r').unwrap_or(line).split('\r'));
    }
    lines
}

/// Removes control characters, because a document must not control the terminal.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

fn paint(colour: Colour, style: &str, text: &str) -> String {
    match colour {
        Colour::No => text.to_owned(),
        Colour::Ansi => format!("\u{1b}[{style}m{text}\u{1b}[0m"),
    }
}

fn block(out: &mut String, file: &str, lines: &[&str], diagnostic: &Diagnostic, colour: Colour) {
    let Diagnostic {
        severity,
        code,
        line,
        column,
        message,
        ..
    } = diagnostic;
    let style = match severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Info => "1;36",
    };
    let place = paint(colour, "1", &format!("{file}:{line}:{column}"));
    let head = paint(colour, style, &format!("{severity}[{code}]"));
    let _ = writeln!(out, "{place}: {head}: {}", clean(message));
    let related = diagnostic.related.as_ref();
    let last = related.map_or(*line, |related| related.place.line.max(*line));
    let margin = last.to_string().len();
    snippet(out, lines, (*line, *column), margin, "", style, colour);
    if let Some(related) = related {
        let at = (related.place.line, related.place.column);
        snippet(
            out,
            lines,
            at,
            margin,
            &clean(&related.message),
            "1;34",
            colour,
        );
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = writeln!(
            out,
            "{:margin$} = {}: {}",
            "",
            paint(colour, "1", "hint"),
            clean(hint)
        );
    }
}

/// The line with a caret under the column.
fn snippet(
    out: &mut String,
    lines: &[&str],
    (line, column): (usize, usize),
    margin: usize,
    label: &str,
    style: &str,
    colour: Colour,
) {
    let Some(text) = line.checked_sub(1).and_then(|index| lines.get(index)) else {
        return;
    };
    // The part of the line around the column.
    let skipped = column.saturating_sub(WIDTH / 2 + 1);
    let skipped = if text.chars().count() <= WIDTH {
        0
    } else {
        skipped
    };
    let shown: String = text.chars().skip(skipped).take(WIDTH).collect();
    let before: String = shown
        .chars()
        .take(column.saturating_sub(1 + skipped))
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let shown: String = shown
        .chars()
        .map(|c| {
            if c.is_control() && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect();
    let _ = writeln!(out, "{line:margin$} | {}", shown.trim_end());
    let caret = paint(colour, style, format!("^ {label}").trim_end());
    let _ = writeln!(out, "{:margin$} | {before}{caret}", "");
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TEXT, findings};
    use super::*;
    use crate::codes;

    #[test]
    fn blocks() {
        let shown = human("greet.yaml", TEXT, &findings(), Colour::No);
        insta::assert_snapshot!(shown, @r#"
        greet.yaml:4:5: error[duplicate-key]: the key 'name' appears twice
        4 |     name: B
          |     ^
        3 |   - name: A
          |     ^ first here
          = hint: remove one of the two, or rename it

        greet.yaml:5:7: warning[leading-zero]: '012' is a decimal number in YAML 1.2, and loses its zeros
        5 | year: 012
          |       ^
          = hint: put it in quotes if it is a string, write 0o... if it is octal

        greet.yaml: 1 error, 1 warning
        "#);
        assert_eq!(human("greet.yaml", TEXT, &[], Colour::No), "");
    }

    #[test]
    fn colour_only_on_request() {
        let shown = human("greet.yaml", TEXT, &findings(), Colour::Ansi);
        assert!(shown.contains("\u{1b}[1;31merror[duplicate-key]\u{1b}[0m"));
        assert!(!human("greet.yaml", TEXT, &findings(), Colour::No).contains('\u{1b}'));
    }

    #[test]
    fn long_lines_odd_characters_and_invalid_positions() {
        let text = format!("{}!\u{1b}[31m{}", "x".repeat(500), "y".repeat(500));
        let at = |line, column| {
            Diagnostic::new(
                Severity::Info,
                codes::WRONG_TYPE,
                "",
                line,
                column,
                "a\u{7}b",
            )
        };
        let list = [at(1, 501), at(9, 9), at(0, 0), at(1, usize::MAX)];
        let shown = human("a\nb", &text, &list, Colour::No);
        assert!(!shown.contains(['\u{1b}', '\u{7}']));
        assert!(
            shown.contains(&format!("1 | {}!", "x".repeat(60))),
            "{shown}"
        );
        assert!(
            shown.contains(&format!("\n  | {}^\n", " ".repeat(60))),
            "{shown}"
        );
        assert!(shown.ends_with("a\u{fffd}b: 4 notes\n"), "{shown}");
    }
}
