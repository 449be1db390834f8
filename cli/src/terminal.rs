//! The output: results to stdout, messages to stderr.
//!
//! The command doesn't fail if its reader stops reading: a closed pipe is ignored, and the exit code still shows the
//! outcome.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// If the output is a terminal and `NO_COLOR` isn't set.
    #[default]
    Auto,
    Always,
    Never,
}

/// The format of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For code scanning services. Only for `swirl validate`.
    Sarif,
}

/// The global options.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terminal {
    pub colour: Colour,
    pub output: Output,
}

impl Terminal {
    /// Whether results on stdout are coloured.
    pub fn colours(&self) -> bool {
        self.output == Output::Text && wanted(self.colour, io::stdout().is_terminal(), no_colour())
    }

    /// Writes a result. A file or a program gets it as it is, a terminal without what would control it.
    ///
    /// # Errors
    /// The operating system's error; a closed pipe is not an error.
    pub fn result(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let text = match out.is_terminal() {
            true => shown(text),
            false => Cow::Borrowed(text),
        };
        open_or_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    /// Reports a failure: the message, and with JSON also a result in the format of a server's refusals.
    pub fn failure(&self, detail: &str, message: &str) {
        if self.output == Output::Json {
            let body = serde_json::json!({
                "title": "Command failed",
                "code": "command-failed",
                "detail": detail.trim_end(),
            });
            let _ = self.result(&format!("{body:#}\n"));
        }
        self.message(message);
    }

    /// Reports that an instance is still running, and that the time to wait for its end is over.
    pub fn still_running(&self, id: &str) {
        if self.output == Output::Json {
            let body = serde_json::json!({"id": id, "status": "running"});
            let _ = self.result(&format!("{body:#}\n"));
        }
        self.message(&format!("error: instance {id} is still running"));
    }

    /// Writes a message. Failures are ignored, because there is nowhere to report them.
    pub fn message(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", shown(text.trim_end()));
    }
}

/// A text without characters that control a terminal: it may quote data from anywhere. Colours stay.
fn shown(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = colour(rest).unwrap_or(c.len_utf8());
        let (part, after) = rest.split_at(length);
        rest = after;
        match length > c.len_utf8() || !is_bad(c) || (c == '\r' && rest.starts_with('\n')) {
            true => clean.push_str(part),
            false => clean.push('\u{fffd}'),
        }
    }
    Cow::Owned(clean)
}

/// The length of the sequence that sets a colour, if the text begins with one.
fn colour(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\u{1b}[")?;
    let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    codes[end..].starts_with('m').then_some(end + 3)
}

fn open_or_closed(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn wanted(colour: Colour, is_terminal: bool, no_colour: bool) -> bool {
    match colour {
        Colour::Auto => is_terminal && !no_colour,
        Colour::Always => true,
        Colour::Never => false,
    }
}

/// <https://no-color.org>: set and not empty.
fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_does_not_control_the_terminal() {
        let text = "a\u{1b}[1;31mred\u{1b}[0m\r\nb\tc";
        assert_eq!(shown(text), text);
        assert_eq!(
            shown("x\u{1b}]0;title\u{7}\rforged \u{9b}2J\u{1b}[2J\u{1b}["),
            "x\u{fffd}]0;title\u{fffd}\u{fffd}forged \u{fffd}2J\u{fffd}[2J\u{fffd}["
        );
    }

    #[test]
    fn colours() {
        assert!(wanted(Colour::Auto, true, false));
        assert!(!wanted(Colour::Auto, true, true) && !wanted(Colour::Auto, false, false));
        assert!(wanted(Colour::Always, false, true) && !wanted(Colour::Never, true, false));
    }

    #[test]
    fn a_closed_pipe_is_not_an_error() {
        let closed = || Err(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(open_or_closed(closed()).is_ok());
        assert!(open_or_closed(Err(io::Error::from(io::ErrorKind::StorageFull))).is_err());
    }
}
