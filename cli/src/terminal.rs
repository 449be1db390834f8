//! The output: results to stdout, messages to stderr.
//!
//! The command doesn't fail if its reader stops reading: a closed pipe is ignored, and the exit code still shows the
//! outcome.

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

    /// Writes a result.
    ///
    /// # Errors
    /// The operating system's error; a closed pipe is not an error.
    pub fn result(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        open_or_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    /// Writes a message. Failures are ignored, because there is nowhere to report them.
    pub fn message(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
    }
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
