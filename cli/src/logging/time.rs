//! The times of log lines: RFC 3339 with milliseconds.

use std::cell::Cell;
use std::fmt;

use swirl_embedded::SystemClock;
use swirl_model::time::Timestamp;
use swirl_ports::Clock;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

thread_local! {
    /// The time of the line that this thread is logging, if it isn't the current time.
    static HAPPENED: Cell<Option<Timestamp>> = const { Cell::new(None) };
}

/// Logs something that happened earlier. The line has the time when it happened.
pub fn happened(at: Timestamp, log: impl FnOnce()) {
    HAPPENED.set(Some(at));
    log();
    HAPPENED.set(None);
}

/// Formats the time of a line.
pub struct Happened;

impl FormatTime for Happened {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let at = HAPPENED.get().unwrap_or_else(|| SystemClock.now());
        writer.write_str(&text(at))
    }
}

/// Always with three decimals, so that lines are aligned.
fn text(at: Timestamp) -> String {
    let whole = at.to_string();
    let Some(begun) = whole.strip_suffix('Z') else {
        return whole;
    };
    match begun.split_once('.') {
        Some((seconds, part)) => format!("{seconds}.{part:0<3}Z"),
        None => format!("{begun}.000Z"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_always_shown() {
        let shown = |ms: i64| text(Timestamp(1_700_000_000_000 + ms));
        assert_eq!(shown(0), "2023-11-14T22:13:20.000Z");
        assert_eq!(shown(40), "2023-11-14T22:13:20.040Z");
        assert_eq!(shown(123), "2023-11-14T22:13:20.123Z");
    }

    #[test]
    fn a_line_has_the_time_of_its_event() {
        let shown = || {
            let mut line = String::new();
            Happened
                .format_time(&mut Writer::new(&mut line))
                .map(|()| line)
        };
        happened(Timestamp(1_700_000_000_000), || {
            assert_eq!(shown().as_deref(), Ok("2023-11-14T22:13:20.000Z"));
        });
        assert_ne!(shown().as_deref(), Ok("2023-11-14T22:13:20.000Z"));
    }
}
