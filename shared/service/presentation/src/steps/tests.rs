use serde_json::{Value, json};

use super::*;

/// Each as milliseconds, scope and members.
fn entries(all: &[(i64, &str, Value)]) -> Vec<HistoryEntry> {
    let entry = |(ms, scope, members): &(i64, &str, Value)| {
        let mut entry = members.clone();
        entry["at"] = swirl_api::Instant(swirl_model::time::Timestamp(*ms))
            .to_string()
            .into();
        entry["scope"] = (*scope).into();
        serde_json::from_value(entry).unwrap()
    };
    all.iter().map(entry).collect()
}

fn entered(name: &str) -> Value {
    json!({"event": "state_entered", "state": 0, "name": name, "purpose": "Main"})
}

fn left(name: &str) -> Value {
    json!({"event": "state_left", "state": 0, "name": name, "failed": false})
}

fn started(action: &str, attempt: u32) -> Value {
    json!({"event": "action_started", "action": action, "attempt": attempt, "call": 1, "in_state": "S"})
}

fn failed(action: &str, attempt: u32, retry_ms: Option<u64>) -> Value {
    json!({"event": "action_failed", "action": action, "attempt": attempt, "retry_ms": retry_ms,
        "error": {"name": "E", "message": "m"}})
}

fn completed(action: &str, attempt: u32) -> Value {
    json!({"event": "action_completed", "action": action, "attempt": attempt})
}

/// One line for each step, indented.
fn shown(steps: &Steps) -> Vec<String> {
    fn add(steps: &Steps, children: &[usize], depth: usize, lines: &mut Vec<String>) {
        for child in children {
            let step = &steps.all[*child];
            let to = step.to.map_or("".to_owned(), |to| to.to_string());
            let indent = "  ".repeat(depth);
            lines.push(format!(
                "{indent}{:?} {} {}-{to} {:?}",
                step.kind, step.name, step.from, step.outcome
            ));
            add(steps, &step.children, depth + 1, lines);
        }
    }
    let mut lines = Vec::new();
    add(steps, &steps.roots, 0, &mut lines);
    lines
}

#[test]
fn attempts_are_within_their_action() {
    let history = entries(&[
        (0, "r", entered("A")),
        (1, "r", left("A")),
        (1, "r", entered("S")),
        (2, "r", started("pay", 1)),
        (5, "r", failed("pay", 1, Some(10))),
        (15, "r", started("pay", 2)),
        (16, "r", completed("pay", 2)),
        (17, "r", started("ship", 1)),
        (20, "r", failed("ship", 1, None)),
        (20, "r", json!({"event": "ended", "status": "faulted"})),
    ]);
    let steps = Steps::new(&history, None);
    assert_eq!(
        shown(&steps),
        [
            "State A 0-1 Done",
            "State S 1-20 Failed",
            "  Action pay 2-16 Done",
            "    Attempt attempt 1 2-5 Failed",
            "    Wait retry delay 5-15 Done",
            "    Attempt attempt 2 15-16 Done",
            "  Action ship 17-20 Failed",
        ]
    );
    let failed = steps.failed().unwrap();
    assert_eq!(steps.all[failed].name, "ship");
    assert_eq!(steps.all[failed].lines, [7, 8]);
    assert_eq!(steps.of_line[8], Some(failed));
    assert_eq!(steps.lines_of(steps.roots[1]).len(), 8);
    assert_eq!(steps.next_state(steps.roots[0]), Some(steps.roots[1]));
}

#[test]
fn branches_end_with_their_last_entry() {
    let forked = json!({"event": "forked", "fork": 3, "branches": 2, "in_state": "S"});
    let mut paid = started("pay", 1);
    paid["place"] = json!("S / Payment");
    let mut stocked = started("stock", 1);
    stocked["place"] = json!("S / Stock");
    let error = json!({"event": "branch_failed", "error": {"name": "E", "message": "m"}});
    let history = entries(&[
        (0, "r", entered("S")),
        (1, "r", forked),
        (2, "r.3.0", paid),
        (3, "r.3.1", stocked),
        (4, "r.3.1", completed("stock", 1)),
        (6, "r.3.0", failed("pay", 1, None)),
        (6, "r.3.0", error),
        (7, "r", json!({"event": "ended", "status": "faulted"})),
        (9, "r", json!({"event": "retried"})),
        (9, "r.3.0", json!({"event": "retried"})),
        (10, "r.3.0", started("pay", 1)),
    ]);
    let steps = Steps::new(&history[..8], None);
    assert_eq!(
        shown(&steps),
        [
            "State S 0-7 Failed",
            "  Branch Payment 2-6 Failed",
            "    Action pay 2-6 Failed",
            "  Branch Stock 3-4 Done",
            "    Action stock 3-4 Done",
        ]
    );
    assert_eq!(steps.all[steps.failed().unwrap()].name, "pay");
    let steps = Steps::new(&history, None);
    assert_eq!(
        shown(&steps)[..4],
        [
            "State S 0- Open",
            "  Branch Payment 2- Open",
            "    Action pay 2-6 Failed",
            "    Action pay 10- Open",
        ]
    );
    assert_eq!(steps.failed(), None);
}

#[test]
fn an_operator_sends_it_to_another_state() {
    let operated = json!({"event": "operated", "action": "rerun", "state": "A"});
    let history = entries(&[
        (0, "r", entered("A")),
        (1, "r", left("A")),
        (1, "r", entered("S")),
        (2, "r", json!({"event": "ended", "status": "faulted"})),
        (5, "r", operated),
        (6, "r", json!({"event": "retried"})),
        (6, "r", entered("A")),
    ]);
    let steps = Steps::new(&history, None);
    assert_eq!(
        shown(&steps),
        ["State A 0-1 Done", "State S 1-2 Failed", "State A 6- Open"]
    );
}

#[test]
fn compensated_states_are_not_done() {
    let mut undo = entered("Release");
    undo["purpose"] = json!("Compensation");
    let mut declined = left("S");
    declined["failed"] = json!(true);
    let history = entries(&[
        (0, "r", entered("Reserve")),
        (1, "r", left("Reserve")),
        (1, "r", entered("S")),
        (2, "r", declined),
        (
            2,
            "r",
            json!({"event": "compensating", "states": ["Reserve"]}),
        ),
        (2, "r", undo),
        (3, "r", left("Release")),
        (3, "r", json!({"event": "compensated"})),
        (3, "r", entered("Declined")),
        (4, "r", left("Declined")),
        (4, "r", json!({"event": "ended", "status": "completed"})),
    ]);
    let steps = Steps::new(&history, None);
    assert_eq!(
        shown(&steps),
        [
            "State Reserve 0-1 Compensated",
            "State S 1-2 Caught",
            "State Release 2-3 Done",
            "State Declined 3-4 Done",
        ]
    );
    assert!(steps.all[2].compensates);
    assert_eq!(steps.failed(), None, "the error was handled");
}

#[test]
fn tasks_are_within_tasks_and_waits_within_states() {
    let place = |doing: &str| ScopePosition {
        scope: "r".to_owned(),
        doing: doing.to_owned(),
        ..ScopePosition::default()
    };
    let timer = json!({"seq": 1, "kind": "sleep", "due": "1970-01-01T00:00:00.005Z"});
    let history = entries(&[
        (0, "r", entered("outer")),
        (1, "r", entered("inner")),
        (5, "r", json!({"event": "timed_out", "timer": timer})),
        (5, "r", left("inner")),
        (6, "r", entered("second")),
    ]);
    let steps = Steps::new(&history, Some(&[place("waiting for events")]));
    assert_eq!(
        shown(&steps),
        [
            "State outer 0- Open",
            "  State inner 1-5 Done",
            "    Wait sleep 1-5 Done",
            "  State second 6- Open",
            "    Wait event 6- Open",
        ]
    );
}

#[test]
fn a_part_of_a_history_has_steps_too() {
    let history = entries(&[
        (10, "r", completed("pay", 1)),
        (11, "r", started("ship", 2)),
        (12, "r.4.1", completed("track", 1)),
        (13, "r", left("S")),
        (14, "r.4.2.1.1", json!({"event": "teleported"})),
    ]);
    let steps = Steps::new(&history, Some(&[]));
    assert_eq!(steps.of_line.len(), history.len());
    assert!(
        steps
            .all
            .iter()
            .all(|step| step.to.is_none_or(|to| to >= step.from))
    );
}
