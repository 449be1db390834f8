//! Compares the outcomes of two runs of one case.

use std::collections::BTreeMap;

use crate::rig::{Called, Trace};

/// The differences of `other` from `calm`. After a crash, a call may be repeated with its own key.
pub fn compare(calm: &Trace, other: &Trace, crashing: bool) -> Vec<String> {
    let mut found = keys(other);
    found.extend(maps("instance", &calm.instances, &other.instances));
    // An instance that was ended at the time of its start may or may not have begun.
    let lasting = |trace: &Trace| {
        let mut history = trace.history.clone();
        history.retain(|_, lines| !ended_at_once(lines) && !only_endless(lines));
        for lines in history.values_mut() {
            // Branches that end at the same time are joined together, or one after another.
            lines.dedup_by(|one, other| one == other && one.contains(" Joined "));
        }
        history
    };
    found.extend(maps("history of scope", &lasting(calm), &lasting(other)));
    found.extend(maps("produced event", &calm.produced, &other.produced));
    let calls = |trace: &Trace| {
        let mut calls: Vec<Called> = trace.calls.clone();
        calls.retain(|call| call.function != "endless");
        calls.sort();
        if crashing {
            calls.dedup();
        }
        calls
    };
    let (before, after) = (calls(calm), calls(other));
    if before != after {
        let more: Vec<_> = after.iter().filter(|call| !before.contains(call)).collect();
        let less: Vec<_> = before.iter().filter(|call| !after.contains(call)).collect();
        found.push(format!(
            "calls differ ({} and {}): too many {more:?}, missing {less:?}",
            before.len(),
            after.len()
        ));
    }
    found
}

/// A branch whose end is never awaited may be cancelled before it begins.
fn only_endless(lines: &[String]) -> bool {
    matches!(lines, [line] if line.contains("ActionStarted { action: \"endless\""))
}

fn ended_at_once(lines: &[String]) -> bool {
    let moment = |line: &String| line.split(' ').next().map(ToOwned::to_owned);
    let (first, last) = (lines.first(), lines.last());
    last.is_some_and(|line| line.contains("Ended { status: Terminated"))
        && first.and_then(moment) == last.and_then(moment)
}

/// Each key belongs to one attempt.
fn keys(trace: &Trace) -> Vec<String> {
    let mut known: BTreeMap<&str, &Called> = BTreeMap::new();
    let mut found = Vec::new();
    for call in &trace.calls {
        let first = known.entry(&call.key).or_insert(call);
        if *first != call {
            found.push(format!("one key for two calls: {first:?} and {call:?}"));
        }
    }
    found
}

fn maps<T: PartialEq + std::fmt::Debug>(
    what: &str,
    calm: &BTreeMap<String, T>,
    other: &BTreeMap<String, T>,
) -> Vec<String> {
    let mut names: Vec<&String> = calm.keys().chain(other.keys()).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .filter(|name| calm.get(*name) != other.get(*name))
        .map(|name| {
            let (calm, other) = (calm.get(name), other.get(name));
            format!("{what} {name}:\n  undisturbed {calm:?}\n  disturbed   {other:?}")
        })
        .collect()
}
