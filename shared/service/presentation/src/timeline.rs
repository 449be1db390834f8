//! An instance's history as readable text.

use std::sync::Arc;

use serde_json::{Map, Value};
use swirl_api::history::{Happened, HistoryEntry};
use swirl_model::WorkflowError;
use swirl_model::event::Event;
use swirl_model::instance::{EndStatus, Status};
use swirl_model::scope::{Purpose, TimerKind};

/// The kind of a line, for colouring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    Plain,
    /// A detail.
    Dim,
}

/// One entry.
pub struct Line {
    pub tone: Tone,
    pub text: String,
    place: String,
    /// The line only repeats an error, on its way from an action to the instance.
    pub repeats: bool,
}

impl Line {
    /// The branch, by its name if that is known, unless it is the main flow.
    pub fn place(&self) -> String {
        match self.place.as_str() {
            "" => String::new(),
            place => format!("[{place}] "),
        }
    }
}

/// Remembers the last error that was shown, so that each is shown once.
#[derive(Debug, Default)]
pub struct Told(Option<(String, String)>);

impl Told {
    /// As [`describe`], without an error that the lines before have shown.
    pub fn describe(&mut self, entry: &HistoryEntry) -> Line {
        let mut line = describe(entry);
        let Some(
            event @ (Event::ActionFailed { error, .. }
            | Event::ErrorHandled { error, .. }
            | Event::StartRefused { error, .. }
            | Event::BranchFailed { error }
            | Event::Ended {
                error: Some(error), ..
            }),
        ) = entry.event.event()
        else {
            return line;
        };
        let found = Some((error.name.clone(), error.message.clone()));
        match event {
            Event::BranchFailed { .. } if self.0 == found => {
                line.tone = Tone::Dim;
                "  failed".clone_into(&mut line.text);
                line.repeats = true;
            }
            Event::Ended { status, .. } if self.0 == found => {
                Status::from(*status).as_str().clone_into(&mut line.text);
            }
            _ => self.0 = found,
        }
        line
    }
}

/// Formats entries one by one, each as a line with the time since the first.
#[derive(Debug, Default)]
pub struct Timeline {
    pub colour: bool,
    /// Includes the recorded arguments, results and events.
    pub data: bool,
    begun: Option<i64>,
    told: Told,
}

impl Timeline {
    /// `colour`: uses terminal escape sequences. `data`: includes the recorded data.
    pub fn new(colour: bool, data: bool) -> Timeline {
        Timeline {
            colour,
            data,
            begun: None,
            told: Told::default(),
        }
    }

    /// Formats the next entries.
    pub fn lines(&mut self, entries: &[HistoryEntry]) -> String {
        let mut text = String::new();
        for entry in entries {
            let at = entry.at.0.0;
            let begun = *self.begun.get_or_insert(at);
            let line = self.told.describe(entry);
            if line.repeats {
                continue;
            }
            let seconds = (at - begun) as f64 / 1000.0;
            let (on, off) = match (self.colour, line.tone) {
                (false, _) | (true, Tone::Plain) => ("", ""),
                (true, Tone::Good) => ("\x1b[32m", "\x1b[0m"),
                (true, Tone::Bad) => ("\x1b[31m", "\x1b[0m"),
                (true, Tone::Dim) => ("\x1b[2m", "\x1b[0m"),
            };
            let place = line.place();
            text.push_str(&format!(
                "{seconds:>10.3}s  {on}{place}{}{off}\n",
                line.text
            ));
            if self.data {
                for (name, value) in entry.data.iter().flatten() {
                    let value = clean(&value.to_string());
                    text.push_str(&format!("{:>13}{name}: {value}\n", ""));
                }
            }
        }
        text
    }
}

/// Describes an entry. Of one that only newer servers know, only its name is shown.
pub fn describe(entry: &HistoryEntry) -> Line {
    let is_root = matches!(&*entry.scope, "r" | "");
    let (tone, text) = match &entry.event {
        Happened::Event(event) => (
            tone_of(event),
            text_of(event, entry.data.as_ref(), !is_root),
        ),
        unknown => (Tone::Dim, clean(&unknown.kind())),
    };
    let place = match (&entry.place, is_root) {
        (Some(place), _) => clean(place),
        (None, true) => String::new(),
        (None, false) => clean(&entry.scope),
    };
    Line {
        tone,
        text,
        place,
        repeats: false,
    }
}

fn tone_of(event: &Event) -> Tone {
    match event {
        Event::Ended {
            status: EndStatus::Completed,
            ..
        } => Tone::Good,
        Event::ActionFailed { .. }
        | Event::ValidationFailed { .. }
        | Event::AttributeLeftOut { .. }
        | Event::BranchFailed { .. }
        | Event::StartRefused { .. }
        | Event::GivenUp { .. }
        | Event::Ended { .. } => Tone::Bad,
        Event::StateLeft { .. }
        | Event::StateSkipped { .. }
        | Event::ActionStarted { .. }
        | Event::ActionCompleted { .. }
        | Event::Joined { .. } => Tone::Dim,
        _ => Tone::Plain,
    }
}

/// `is_branch`: its lines may be far from those of the state that they belong to.
fn text_of(event: &Event, data: Option<&Map<String, Value>>, is_branch: bool) -> String {
    let within = |state: &Option<Arc<str>>| match state {
        Some(state) if is_branch => format!(" in {}", clean(state)),
        _ => String::new(),
    };
    match event {
        Event::InstanceStarted { scheduled_at } => {
            let scheduled = scheduled_at.map(|at| format!(" for {at}"));
            format!("started{}", scheduled.unwrap_or_default())
        }
        Event::StateEntered { name, purpose, .. } => {
            let why = match purpose {
                Purpose::Main => "",
                Purpose::Compensation => ", to compensate",
                Purpose::RunBefore => ", because time is up",
            };
            format!("entered {}{why}", clean(name))
        }
        Event::StateLeft { name, failed, .. } => {
            let how = if *failed { " by an error" } else { "" };
            format!("left {}{how}", clean(name))
        }
        Event::TaskRetried { name, .. } => format!("tried {} again", clean(name)),
        Event::StateSkipped { name, .. } => format!("skipped {}", clean(name)),
        Event::ActionStarted {
            action,
            attempt,
            in_state,
            ..
        } => {
            let (action, within) = (clean(action), within(in_state));
            format!("  action {action}{within}{}", nth(*attempt))
        }
        Event::ActionCompleted {
            action, attempt, ..
        } => format!("  action {} completed{}", clean(action), nth(*attempt)),
        Event::ActionFailed {
            action,
            attempt,
            error,
            retry_ms,
            ..
        } => {
            let again = retry_ms.map(|ms| format!("; again in {:.1} s", ms as f64 / 1000.0));
            let (action, attempt) = (clean(action), nth(*attempt));
            let (error, again) = (failure(error), again.unwrap_or_default());
            format!("  action {action} failed{attempt}: {error}{again}")
        }
        Event::ActionSkipped { action, in_state } => {
            format!("  action {}{} skipped", clean(action), within(in_state))
        }
        Event::EventConsumed { name, source, id } => {
            let (name, source, id) = (clean(name), clean(source), clean(id));
            format!("  event {name} arrived ({source} {id})")
        }
        Event::EventProduced { name, id } => {
            format!("  event {} produced ({})", clean(name), clean(id))
        }
        Event::Forked {
            branches, in_state, ..
        } => {
            let word = if *branches == 1 { "branch" } else { "branches" };
            format!("  {branches} {word}{}", within(in_state))
        }
        Event::Joined { .. } => "  branches joined".to_owned(),
        Event::TimedOut { timer } => format!("  {}", reached(timer.kind)),
        Event::ErrorHandled { error, .. } => format!("  handled: {}", failure(error)),
        Event::ValidationFailed { of, message } => {
            format!("  {} fails its schema: {}", clean(of), clean(message))
        }
        Event::AttributeLeftOut { attribute, message } => {
            format!("  not found by @{}: {}", clean(attribute), clean(message))
        }
        Event::Compensating { states } => {
            let names: Vec<String> = states.iter().map(|name| clean(name)).collect();
            format!("  compensating {}", names.join(", "))
        }
        Event::Compensated => "  compensated".to_owned(),
        Event::BranchFailed { error } => format!("  failed: {}", failure(error)),
        Event::Retried => "continued by an operator".to_owned(),
        Event::CallRepeated { function, .. } => {
            let function = clean(function);
            format!("  call of {function} repeated: the previous attempt recorded no answer")
        }
        Event::Operated { .. } => operation(event, data),
        Event::StartRefused { workflow, error } => {
            format!("  '{}' not started: {}", clean(workflow), failure(error))
        }
        Event::GivenUp { reason } => format!(
            "suspended, because it cannot be executed: {}",
            clean(reason)
        ),
        Event::Idle => "kept active".to_owned(),
        Event::Ended {
            status: EndStatus::Completed,
            ..
        } => "completed".to_owned(),
        Event::Ended { status, error } => {
            let error = error.as_ref().map(|error| format!(": {}", failure(error)));
            let status = Status::from(*status).as_str();
            format!("{status}{}", error.unwrap_or_default())
        }
        // The others are not part of a history ([`Event::is_history`]).
        _ => String::new(),
    }
}

/// The action of an operator, with its options. `data`: those that may be large.
fn operation(event: &Event, data: Option<&Map<String, Value>>) -> String {
    let Event::Operated {
        action,
        by,
        reason,
        state,
        from,
        to,
        batch,
        with,
    } = event
    else {
        return String::new();
    };
    let given = |name: &str| data?.get(name).map(Value::to_string);
    let parent = with.as_ref().map(|parent| parent.as_str().to_owned());
    let mut text = format!("operator: {}", clean(action));
    for (before, value) in [
        (" from version ", from),
        (" to version ", to),
        (" to state ", state),
        (" with the result ", &given("result")),
        (" with the data ", &given("data")),
        (", with its parent ", &parent),
        (", by ", by),
        (", in batch ", batch),
        (", because: ", reason),
    ] {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            text.push_str(&format!("{before}{}", clean(value)));
        }
    }
    text
}

/// That the time of a timer has come; timeouts have their names in the language.
fn reached(kind: TimerKind) -> &'static str {
    match kind {
        TimerKind::Workflow => "workflowExecTimeout reached",
        TimerKind::State => "stateExecTimeout reached",
        TimerKind::Branch => "branchExecTimeout reached",
        TimerKind::Action => "actionExecTimeout reached",
        TimerKind::Event | TimerKind::Entry => "eventTimeout reached",
        TimerKind::ConsumeEvent => "consumeEventTimeout reached",
        TimerKind::Sleep => "slept",
        TimerKind::RetryDelay => "the delay before the retry is over",
        TimerKind::Pause => "the pause between iterations is over",
        TimerKind::Task => "the timeout of the task reached",
    }
}

/// The number of the attempt, unless it is the first.
fn nth(attempt: u32) -> String {
    match attempt {
        0 | 1 => String::new(),
        _ => format!(", attempt {attempt}"),
    }
}

fn failure(failure: &WorkflowError) -> String {
    let name = clean(&failure.name);
    let code = failure.code.as_deref().map(clean).unwrap_or_default();
    error_text(&name, &code, &clean(&failure.message))
}

/// A value in a line.
pub fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    clean(&text)
}

/// A text in a line. Control characters are removed, because they could move the cursor of a terminal.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// An error from the API: its name, its code if that adds information, and its message.
pub fn told(error: &swirl_api::instance::Error) -> String {
    let code = error.code.as_deref().unwrap_or_default();
    error_text(&clean(&error.name), &clean(code), &clean(&error.message))
}

fn error_text(name: &str, code: &str, message: &str) -> String {
    match code.is_empty() || code == name {
        true => format!("{name}: {message}"),
        false => format!("{name} ({code}): {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_timeline() {
        let entries = [
            json!({"at": "2024-01-31T09:00:00Z", "scope": "r", "event": "instance_started"}),
            json!({"at": "2024-01-31T09:00:00.5Z", "scope": "r.3.1", "event": "action_failed", "action": "pay", "attempt": 2,
                "error": {"name": "FunctionError", "code": "503", "message": "busy\u{1b}[2J"}, "retry_ms": 1500}),
            json!({"at": "2024-01-31T09:00:59Z", "scope": "r", "event": "validation_failed", "of": "output", "message": "1 is not a string"}),
            json!({"at": "2024-01-31T09:00:59Z", "scope": "r", "event": "attribute_left_out", "attribute": "total",
                "message": "its value is of type string, not a number"}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r.3.1", "event": "action_started", "action": "pay", "attempt": 3,
                "call": 9, "in_state": "Charge", "data_until": "2024-02-07T09:01:00Z"}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r", "event": "forked", "fork": 3, "branches": 2, "in_state": "Charge"}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r", "event": "ended", "status": "completed"}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r", "event": "teleported"}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r", "event": "operated", "action": "skip", "by": "ada",
                "reason": "paid by phone", "data": {"result": {"paid": true}}}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r", "event": "operated", "action": "migrate", "from": "1",
                "to": "2", "by": "ada", "batch": "b7"}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r", "event": "operated", "action": "suspend", "with": "2f6c"}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r", "event": "call_repeated", "function": "pay", "call": 3}),
            json!({"at": "2024-01-31T09:01:02Z", "scope": "r.3.1", "place": "Charge / Card", "event": "timed_out",
                "timer": {"seq": 4, "kind": "action", "due": "2024-01-31T09:01:02Z"}}),
            json!({"at": "2024-01-31T09:01:02Z", "scope": "r.3.1", "place": "Charge / Card", "event": "action_failed",
                "action": "pay", "attempt": 1, "error": {"name": "ActionTimeout", "message": "too long"}, "retry_ms": null}),
            json!({"at": "2024-01-31T09:01:02Z", "scope": "r.3.1", "place": "Charge / Card", "event": "branch_failed",
                "error": {"name": "ActionTimeout", "message": "too long"}}),
            json!({"at": "2024-01-31T09:01:02Z", "scope": "r", "event": "ended", "status": "faulted",
                "error": {"name": "ActionTimeout", "message": "too long"}}),
            json!({"at": "2024-01-31T09:01:03Z", "scope": "r", "event": "ended", "status": "faulted",
                "error": {"name": "DataError", "message": "another"}}),
        ];
        let entries = entries.map(|entry| serde_json::from_value(entry).unwrap());
        let timeline = |colour| Timeline::new(colour, true).lines(&entries);
        insta::assert_snapshot!(timeline(false), @r#"
             0.000s  started
             0.500s  [r.3.1]   action pay failed, attempt 2: FunctionError (503): busy [2J; again in 1.5 s
            59.000s    output fails its schema: 1 is not a string
            59.000s    not found by @total: its value is of type string, not a number
            60.000s  [r.3.1]   action pay in Charge, attempt 3
            60.000s    2 branches
            60.000s  completed
            60.000s  teleported
            60.000s  operator: skip with the result {"paid":true}, by ada, because: paid by phone
                     result: {"paid":true}
            60.000s  operator: migrate from version 1 to version 2, by ada, in batch b7
            60.000s  operator: suspend, with its parent 2f6c
            60.000s    call of pay repeated: the previous attempt recorded no answer
            62.000s  [Charge / Card]   actionExecTimeout reached
            62.000s  [Charge / Card]   action pay failed: ActionTimeout: too long
            62.000s  faulted
            63.000s  faulted: DataError: another
        "#);
        assert!(timeline(true).contains("\x1b[32mcompleted\x1b[0m"));
    }
}
