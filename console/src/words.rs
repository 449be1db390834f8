//! The API's answers in plain words.

use serde_json::Value;
use swirl_api::Status;

use crate::answer::{list, text};

/// A status as it is shown: a sign and a word in addition to the colour.
#[derive(Debug, Clone, PartialEq)]
pub struct Pill {
    pub class: &'static str,
    pub sign: &'static str,
    pub word: &'static str,
}

const fn pill(class: &'static str, sign: &'static str, word: &'static str) -> Pill {
    Pill { class, sign, word }
}

/// The status of an instance or of a line of a listing.
pub fn status(row: &Value) -> Pill {
    let status = Status::from(row["status"].as_str().unwrap_or_default());
    pill_of(&status, row["suspended"] == true, row["waiting"] == true)
}

pub fn pill_of(status: &Status, suspended: bool, waiting: bool) -> Pill {
    match status {
        Status::Running if suspended => pill("suspended", "‖", "suspended"),
        Status::Running if waiting => pill("waiting", "◷", "waiting"),
        Status::Running => pill("running", "▶", "running"),
        Status::Completed => pill("completed", "✓", "completed"),
        Status::Faulted => pill("faulted", "✕", "faulted"),
        Status::Cancelled => pill("cancelled", "⊘", "cancelled"),
        Status::Terminated => pill("terminated", "■", "terminated"),
        Status::Other(_) => pill("", "?", "unknown"),
    }
}

/// The status of a batch.
/// A batch that has ended is only good if that is known of its instances, which need not have succeeded.
pub fn batch_status(row: &Value) -> Pill {
    let afterwards = &row["afterwards"];
    let is_zero = |value: &Value| value.as_u64().unwrap_or_default() == 0;
    let is_refused = !is_zero(&row["refused"]) || !is_zero(&row["failed"]);
    match row["status"].as_str().unwrap_or_default() {
        "running" => pill("running", "▶", "running"),
        "paused" => pill("suspended", "‖", "paused"),
        "stopped" => pill("terminated", "■", "stopped"),
        "completed" if is_refused || !is_zero(&afterwards["failedAgain"]) => {
            pill("faulted", "✕", "not all succeeded")
        }
        "completed" if afterwards["settled"] == true => pill("completed", "✓", "all succeeded"),
        "completed" => pill("", "•", "processed"),
        _ => pill("", "?", "unknown"),
    }
}

/// An action of the audit log.
pub fn deed(action: &str) -> &'static str {
    match action {
        "activate" => "made a version current",
        "batch" => "created a batch",
        "batch-pause" => "paused a batch",
        "batch-resume" => "resumed a batch",
        "batch-stop" => "stopped a batch",
        "cancel" => "cancelled it",
        "dead-letter-drop" => "dropped a dead letter",
        "dead-letter-retry" => "sent a dead letter again",
        "delete" => "deleted a version",
        "deploy" => "deployed a version",
        "edit" => "edited its data and continued it",
        "migrate" => "moved it to another version",
        "remove" => "removed it",
        "rerun" => "sent it back to a state",
        "resume" => "resumed it",
        "retry" => "tried again",
        "schedule-backfill" => "backfilled a past period",
        "schedule-fire" => "started an extra instance",
        "schedule-pause" => "paused a schedule",
        "schedule-resume" => "resumed a schedule",
        "skip" => "skipped a step",
        "view-remove" => "removed a saved view",
        "view-save" => "saved a view",
        _ => "did something that this version doesn't know",
    }
}

/// An id that is short enough for a line.
pub fn short(id: &str) -> String {
    const CHARS_MAX: usize = 14;
    match id.chars().count() > CHARS_MAX {
        true => format!("{}…", id.chars().take(CHARS_MAX - 2).collect::<String>()),
        false => id.to_owned(),
    }
}

/// A sentence about what a scope does.
pub fn doing(place: &Value) -> String {
    let state = text(place, "state");
    let inside = match state.is_empty() {
        true => String::new(),
        false => format!(" in the state “{state}”"),
    };
    let action = match place["action"].as_str() {
        Some(action) => format!(" “{action}”"),
        None => String::new(),
    };
    let attempt = match place["attempt"].as_u64() {
        Some(attempt) if attempt > 1 => format!(", attempt {attempt}"),
        _ => String::new(),
    };
    match place["doing"].as_str().unwrap_or_default() {
        "starting" => "It is about to start.".to_owned(),
        "kept active" => {
            "It has finished its states, and stays open for further events.".to_owned()
        }
        "failed" => format!("It failed{inside}."),
        "waiting for events" => format!("It waits for an event{inside}."),
        "waiting for an answer" => format!("It waits for the answer to{action}{inside}."),
        "waiting for a sub-workflow" => {
            format!("It waits for the sub-workflow{action} to end{inside}.")
        }
        "waiting for branches" => {
            let count = place["branches"].as_u64().unwrap_or_default();
            format!("It waits for {count} branches{inside}.")
        }
        "waiting to retry" => format!("It will try{action} again{inside}{attempt}."),
        "calling a function" => format!("It calls the function{action}{inside}{attempt}."),
        "sleeping" => format!("It sleeps{inside}."),
        "" => format!("It is{inside}."),
        other => format!("It is {other}{inside}."),
    }
}

/// An event that is waited for.
#[derive(Debug, PartialEq)]
pub struct Awaited {
    pub name: String,
    pub kind: String,
    pub source: String,
    /// Attributes and their values, as far as they are known.
    pub by: Vec<(String, String)>,
}

pub fn awaited(place: &Value) -> Vec<Awaited> {
    let events = list(place, "waitsFor").iter();
    let one = |event: &Value| Awaited {
        name: text(event, "name"),
        kind: text(event, "type"),
        source: text(event, "source"),
        by: event["correlation"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
    };
    events.map(one).collect()
}

/// The consequence of a timer, in words.
pub fn timer(kind: &str) -> &'static str {
    match kind.replace('_', "").to_ascii_lowercase().as_str() {
        "sleep" | "pause" => "it continues",
        "retrydelay" => "it tries again",
        "state" => "the state times out",
        "action" => "the action times out",
        "event" | "consumeevent" | "entry" => "it stops waiting for the event",
        "workflow" => "the instance times out",
        "branch" => "the branch times out",
        _ => "its time limit ends",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sentences() {
        for (place, sentence) in [
            (
                json!({"doing": "waiting for events", "state": "Wait"}),
                "It waits for an event in the state “Wait”.",
            ),
            (
                json!({"doing": "calling a function", "state": "Pay", "action": "charge", "attempt": 2}),
                "It calls the function “charge” in the state “Pay”, attempt 2.",
            ),
            (
                json!({"doing": "waiting for branches", "state": "Both", "branches": 2}),
                "It waits for 2 branches in the state “Both”.",
            ),
            (json!({"doing": "ending"}), "It is ending."),
        ] {
            assert_eq!(doing(&place), sentence);
        }
    }

    #[test]
    fn a_status_has_a_sign_and_a_word_of_its_own() {
        let all = ["running", "completed", "faulted", "cancelled", "terminated"];
        let mut pills: Vec<Pill> = all
            .iter()
            .map(|word| status(&json!({"status": word})))
            .collect();
        pills.push(status(&json!({"status": "running", "suspended": true})));
        pills.push(status(&json!({"status": "running", "waiting": true})));
        for (index, one) in pills.iter().enumerate() {
            let others = pills.iter().skip(index + 1);
            for other in others {
                assert!(
                    one.sign != other.sign && one.word != other.word && one.class != other.class
                );
            }
        }
    }
}
