//! The API's answers in plain words.

use swirl_api::audit::Action;
use swirl_api::batches::{Batch, BatchStatus};
use swirl_api::instance::{AwaitedEvent, ScopePosition};
use swirl_api::{Condition, Status};

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

/// The status of an instance.
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

/// The same, where the word says all.
pub fn pill_of_condition(status: &Condition) -> Pill {
    match status {
        Condition::Running => pill_of(&Status::Running, false, false),
        Condition::Waiting => pill_of(&Status::Running, false, true),
        Condition::Suspended => pill_of(&Status::Running, true, false),
        ended => pill_of(&Status::from(ended.as_str()), false, false),
    }
}

/// The status of a batch. One that has ended is only good if that is known of its instances, which need not have
/// succeeded.
pub fn batch_status(batch: &Batch) -> Pill {
    let now = batch.afterwards.as_ref();
    let has_failed = now.is_some_and(|now| now.failed_again > 0);
    match batch.status {
        BatchStatus::Running => pill("running", "▶", "running"),
        BatchStatus::Paused => pill("suspended", "‖", "paused"),
        BatchStatus::Stopped => pill("terminated", "■", "stopped"),
        BatchStatus::Completed if batch.refused > 0 || batch.failed > 0 || has_failed => {
            pill("faulted", "✕", "not all succeeded")
        }
        BatchStatus::Completed if now.is_some_and(|now| now.settled) => {
            pill("completed", "✓", "all succeeded")
        }
        BatchStatus::Completed => pill("", "•", "processed"),
        BatchStatus::Other(_) => pill("", "?", "unknown"),
    }
}

/// An action of the audit log.
pub fn deed(action: &Action) -> &'static str {
    match action {
        Action::Activate => "made a version current",
        Action::Batch => "created a batch",
        Action::BatchPause => "paused a batch",
        Action::BatchResume => "resumed a batch",
        Action::BatchStop => "stopped a batch",
        Action::Cancel => "cancelled it",
        Action::DeadLetterDrop => "dropped a dead letter",
        Action::DeadLetterRetry => "sent a dead letter again",
        Action::Delete => "deleted a version",
        Action::Deploy => "deployed a version",
        Action::Edit => "edited its data and continued it",
        Action::Migrate => "moved it to another version",
        Action::Rehearse => "tried a definition",
        Action::Remove => "removed it",
        Action::Rerun => "sent it back to a state",
        Action::Resume => "resumed it",
        Action::Retry => "tried again",
        Action::ScheduleBackfill => "backfilled a past period",
        Action::ScheduleFire => "started an extra instance",
        Action::SchedulePause => "paused a schedule",
        Action::ScheduleResume => "resumed a schedule",
        Action::Skip => "skipped a step",
        Action::Suspend => "suspended it",
        Action::ViewRemove => "removed a saved view",
        Action::ViewSave => "saved a view",
        Action::Other(_) => "did something that this version doesn't know",
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
pub fn doing(place: &ScopePosition) -> String {
    let inside = inside(place);
    let action = place.action.as_ref();
    let action = action.map(|action| format!(" “{action}”"));
    let action = action.unwrap_or_default();
    let attempt = match place.attempt {
        Some(attempt) if attempt > 1 => format!(", attempt {attempt}"),
        _ => String::new(),
    };
    match place.doing.as_str() {
        "starting" => "It is about to start.".to_owned(),
        "kept active" => {
            "It has finished its states, and stays open for further events.".to_owned()
        }
        "failed" if action.is_empty() => format!("It failed{inside}."),
        "failed" => format!("It failed{inside}, in the action{action}."),
        "waiting for events" => match &place.waits_for[..] {
            [
                AwaitedEvent {
                    name: Some(name), ..
                },
            ] => format!("It waits for the event “{name}”{inside}."),
            _ => format!("It waits for an event{inside}."),
        },
        "waiting for an answer" => format!("It waits for the answer to{action}{inside}."),
        "waiting for a sub-workflow" => {
            format!("It waits for the sub-workflow{action} to end{inside}.")
        }
        "waiting for branches" => match place.branches.unwrap_or_default() {
            1 => format!("It waits for one branch{inside}."),
            count => format!("It waits for {count} branches{inside}."),
        },
        "waiting to retry" => format!("It will try{action} again{inside}{attempt}."),
        "calling a function" => format!("It calls the function{action}{inside}{attempt}."),
        "sleeping" => format!("It sleeps{inside}."),
        "" => format!("It is{inside}."),
        other => format!("It is {other}{inside}."),
    }
}

/// The state and the branch.
fn inside(place: &ScopePosition) -> String {
    let state = place.state.as_ref();
    let state = state.map(|state| format!(" in the state “{state}”"));
    let branch = match &place.name {
        None => String::new(),
        Some(name) => match name.rsplit_once(" / ") {
            Some((around, own)) if !name.ends_with(']') => {
                format!(" in the branch “{own}” of “{around}”")
            }
            _ => format!(" in “{name}”"),
        },
    };
    match state {
        Some(state) if !branch.is_empty() => format!("{state},{branch}"),
        state => state.unwrap_or(branch),
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

pub fn awaited(event: AwaitedEvent) -> Awaited {
    let by = event.correlation.into_iter();
    Awaited {
        name: event.name.unwrap_or_default(),
        kind: event.kind.unwrap_or_default(),
        source: event.source.unwrap_or_default(),
        by: by
            .map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned()))
            .collect(),
    }
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
            (
                json!({"doing": "waiting for branches", "state": "Both", "branches": 1}),
                "It waits for one branch in the state “Both”.",
            ),
            (
                json!({"doing": "waiting for events", "state": "Wait", "waitsFor": [{"name": "paid", "correlation": {}}]}),
                "It waits for the event “paid” in the state “Wait”.",
            ),
            (
                json!({"doing": "failed", "name": "Both / Pay", "action": "charge"}),
                "It failed in the branch “Pay” of “Both”, in the action “charge”.",
            ),
            (
                json!({"doing": "sleeping", "name": "Each[3]", "state": "Rest"}),
                "It sleeps in the state “Rest”, in “Each[3]”.",
            ),
            (json!({"doing": "ending"}), "It is ending."),
        ] {
            let mut place: serde_json::Value = place;
            place["scope"] = json!("r");
            assert_eq!(doing(&serde_json::from_value(place).unwrap()), sentence);
        }
    }

    #[test]
    fn a_status_has_a_sign_and_a_word_of_its_own() {
        let all = ["running", "completed", "faulted", "cancelled", "terminated"];
        let mut pills: Vec<Pill> = all
            .iter()
            .map(|word| pill_of(&Status::from(*word), false, false))
            .collect();
        pills.push(pill_of(&Status::Running, true, false));
        pills.push(pill_of(&Status::Running, false, true));
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
