//! The log of all commands that run workflows.
//!
//! Libraries write what they send and receive (headers, bodies, passwords) to their debug logs. So, whatever
//! `SWIRL_LOG` says, only Swirl's own log has more detail than `info`.

mod json;
mod time;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

pub use time::happened;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// The variable with the filter of the log.
const VARIABLE: &str = "SWIRL_LOG";

/// The filter if neither the variable nor the configuration sets one.
pub const DEFAULT: &str = "info,swirl_service::events=debug";

/// The format of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    Text { colours: bool },
}

impl Form {
    /// Text, with colours on a terminal.
    pub fn text() -> Form {
        Form::Text {
            colours: std::io::stderr().is_terminal(),
        }
    }
}

/// Starts logging to standard error. `filter` applies if the variable isn't set. A filter that cannot be parsed counts
/// as `info`.
pub fn start(filter: &str, form: Form) {
    let filter = EnvFilter::try_from_env(VARIABLE)
        .or_else(|_| EnvFilter::try_new(filter))
        .unwrap_or_else(|_| EnvFilter::new("info"));
    let filter = filter.and(filter_fn(is_harmless));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| OneLine)
        .with_timer(time::Happened)
        .with_target(false);
    let lines = match form {
        Form::Json => lines
            .fmt_fields(JsonFields::new())
            .event_format(json::Lines)
            .boxed(),
        Form::Text { colours } => lines.with_ansi(colours).boxed(),
    };
    // Fails if a subscriber is already installed, which is fine.
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .try_init();
}

/// Standard error, where each write is one line. What a line quotes may contain line breaks and other control characters,
/// which could pass for lines of our own; escapes of the terminal are removed by the formatter.
struct OneLine;

impl Write for OneLine {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(one_line(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A line without control characters, but for the escapes that colour it.
fn one_line(line: &str) -> Cow<'_, str> {
    let is_bad = |c: char| c.is_control() && c != '\u{1b}';
    let text = line.strip_suffix('\n').unwrap_or(line);
    if !text.contains(is_bad) {
        return Cow::Borrowed(line);
    }
    let escaped = text.chars().map(|c| match is_bad(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    });
    Cow::Owned(escaped.chain(["\n".to_owned()]).collect())
}

/// Whether a line cannot contain data that a library sends or receives.
fn is_harmless(metadata: &Metadata<'_>) -> bool {
    // `Level::INFO` and less verbose ones.
    *metadata.level() <= Level::INFO || is_own(metadata.target())
}

fn is_own(target: &str) -> bool {
    target == "swirl" || target.starts_with("swirl_") || target.starts_with("swirl::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_stays_in_its_line() {
        assert_eq!(
            one_line("\u{1b}[32mINFO\u{1b}[0m taken\n"),
            "\u{1b}[32mINFO\u{1b}[0m taken\n"
        );
        assert_eq!(
            one_line("event x\n2026-11-30 ERROR forged\r\u{9b}\n"),
            "event x\\n2026-11-30 ERROR forged\\r\\u{9b}\n"
        );
    }

    #[test]
    fn only_our_own_modules_are_recognised() {
        for target in ["swirl", "swirl::main", "swirl_functions::caller"] {
            assert!(is_own(target), "{target}");
        }
        for target in [
            "hyper::client",
            "reqwest",
            "h2",
            "rustls",
            "tonic",
            "log",
            "swirling",
        ] {
            assert!(!is_own(target), "{target}");
        }
    }
}
