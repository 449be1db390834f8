//! The progress of a running instance on a terminal: one line for each event of its history, and a changing last line
//! with its current waits.

use std::io::Write;

use swirl_model::event::{Event, HistoryEntry};
use swirl_model::scope::{Scope, TimerKind};
use swirl_model::time::Timestamp;

pub struct Progress {
    colour: bool,
    shown: usize,
    begun: Option<Timestamp>,
    waiting: String,
}

impl Progress {
    pub fn new(colour: bool) -> Progress {
        Progress {
            colour,
            shown: 0,
            begun: None,
            waiting: String::new(),
        }
    }

    /// Shows new entries. Output errors are ignored, because there is nowhere to report them.
    pub fn show(&mut self, history: &[HistoryEntry], scopes: &[Scope]) {
        let mut out = std::io::stderr().lock();
        for entry in history.iter().skip(self.shown) {
            let begun = *self.begun.get_or_insert(entry.at);
            if let Some(line) = line(entry) {
                let seconds = (entry.at.0 - begun.0) as f64 / 1000.0;
                let (dim, plain) = if self.colour {
                    ("\x1b[2m", "\x1b[0m")
                } else {
                    ("", "")
                };
                let _ = writeln!(out, "\r\x1b[K{dim}{seconds:>8.3}s{plain} {line}");
                self.waiting.clear();
            }
        }
        self.shown = history.len();
        let waiting = waiting(scopes);
        if waiting != self.waiting {
            let _ = write!(out, "\r\x1b[K{waiting}");
            let _ = out.flush();
            self.waiting = waiting;
        }
    }
}

fn line(entry: &HistoryEntry) -> Option<String> {
    let place = if entry.scope.is_root() {
        String::new()
    } else {
        format!("[{}] ", entry.scope)
    };
    let text = match &entry.event {
        Event::StateEntered { name, .. } => format!("entered {name}"),
        Event::ActionStarted {
            action, attempt: 1, ..
        } => format!("  action {action}"),
        Event::ActionStarted {
            action, attempt, ..
        } => {
            format!("  action {action}, attempt {attempt}")
        }
        Event::ActionFailed {
            action,
            error,
            retry_ms,
            ..
        } => {
            let retry = retry_ms.map(|ms| format!("; again in {:.1} s", ms as f64 / 1000.0));
            format!(
                "  action {action} failed: {error}{}",
                retry.unwrap_or_default()
            )
        }
        Event::EventConsumed { name, .. } => format!("  event {name} arrived"),
        Event::EventProduced { name, .. } => format!("  event {name} produced"),
        Event::Forked { branches, .. } => format!("  {branches} branches"),
        Event::ErrorHandled { error, .. } => format!("  handled: {error}"),
        Event::Compensating { states } => format!("  compensating {}", states.join(", ")),
        Event::Ended { status, .. } => swirl_model::instance::Status::from(*status)
            .as_str()
            .to_owned(),
        _ => return None,
    };
    Some(format!("{place}{text}"))
}

/// Describes the current waits of the instance.
fn waiting(scopes: &[Scope]) -> String {
    let timers = scopes.iter().flat_map(|scope| &scope.timers);
    let due = timers
        .filter(|timer| matches!(timer.kind, TimerKind::Sleep | TimerKind::RetryDelay))
        .map(|timer| timer.due)
        .min();
    let events = scopes
        .iter()
        .any(|scope| scope.wait.is_some() || scope.answer.is_some());
    match (due, events) {
        (Some(due), _) => format!("          waiting until {due}"),
        (None, true) => "          waiting for an event".to_owned(),
        (None, false) => String::new(),
    }
}
