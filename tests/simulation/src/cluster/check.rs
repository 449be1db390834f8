//! Checks the logs. Each checker is independent, and knows nothing about engine and driver.

use std::collections::{BTreeMap, BTreeSet};

use swirl_model::event::{Command, Event, HistoryEntry};
use swirl_model::ids::ScopeRef;
use swirl_model::scope::{Fork, ForkOrigin};
use swirl_ports::Lease;

use super::faults::Faults;
use super::outside::Called;
use super::run::{Planned, Trace, instance_of};

/// A history event without the parts in which two runs may differ.
pub fn line(event: &Event) -> Option<String> {
    Some(match event {
        Event::StateEntered { name, purpose, .. } => format!("enter {name} {purpose:?}"),
        Event::StateLeft { name, failed, .. } => format!("leave {name} {failed}"),
        Event::ActionStarted {
            action, attempt, ..
        } => format!("begin {action} {attempt}"),
        Event::ActionCompleted {
            action, attempt, ..
        } => format!("done {action} {attempt}"),
        Event::ActionFailed {
            action, attempt, ..
        } => format!("failed {action} {attempt}"),
        Event::ActionSkipped { action, .. } => format!("skipped {action}"),
        Event::EventConsumed { name, id, .. } => format!("consumed {name} {id}"),
        Event::EventProduced { name, id } => format!("produced {name} {id}"),
        Event::Compensating { states } => format!("compensating {states:?}"),
        Event::ErrorHandled { error, .. } => format!("handled {}", error.name),
        Event::TimedOut { timer } => format!("timed out {:?}", timer.kind),
        Event::Ended { status, error } => {
            format!(
                "ended {status:?} {:?}",
                error.as_ref().map(|error| &error.name)
            )
        }
        Event::InstanceStarted { .. }
        | Event::Forked { .. }
        | Event::Joined { .. }
        | Event::Compensated
        | Event::Retried
        | Event::Idle
        | Event::BranchFailed { .. } => format!("{event:?}").chars().take(12).collect(),
        _ => return None,
    })
}

/// Runs all checkers for a single run.
pub fn judge(trace: &Trace, faults: &Faults) -> Vec<String> {
    let mut found = trace.violations.clone();
    if !faults.rollback {
        found.extend(transitions_once(trace));
        found.extend(inputs_once(trace));
        found.extend(joined_once(trace));
        found.extend(ended_is_final(trace));
        found.extend(history_in_order(trace));
    }
    found.extend(timers_not_early(trace, faults));
    found.extend(keys_are_stable(trace));
    found.extend(accepted_has_effect(trace));
    found
}

/// Each revision of a scope is committed once, in order.
fn transitions_once(trace: &Trace) -> Vec<String> {
    let mut next: BTreeMap<&ScopeRef, (u64, u64)> = BTreeMap::new();
    let mut found = Vec::new();
    for commit in &trace.log {
        let (rev, token) = next.entry(&commit.scope).or_default();
        if commit.rev < *rev || commit.rev > *rev && *rev > 0 {
            let (scope, is) = (&commit.scope, commit.rev);
            found.push(format!("transition once: {scope} went from {rev} to {is}"));
        }
        let is_taken = commit.token != Lease::SNAPSHOT;
        if is_taken && commit.token < *token {
            found.push(format!("transition once: {} by a lost lease", commit.scope));
        }
        (*rev, *token) = (commit.rev + 1, commit.token.max(*token));
    }
    found
}

fn inputs_once(trace: &Trace) -> Vec<String> {
    // A refused timer may be delivered again, and an operator may repeat a command.
    let may_repeat = |id: &str| {
        ["timer-", "cancel", "retry", "skip", "rerun"]
            .iter()
            .any(|p| id.starts_with(p))
    };
    let is_answer = |entry: &HistoryEntry| {
        matches!(
            entry.event,
            Event::ActionCompleted { .. } | Event::ActionFailed { .. }
        )
    };
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    for commit in &trace.log {
        let mut of_commit = BTreeSet::new();
        for id in &commit.consumed {
            let new = known.insert((&commit.scope, id));
            // A holder that has lost its lease may store its answer while the instance is suspended, after another
            // holder's answer was used.
            let is_late = id.starts_with("call-") && !commit.history.iter().any(is_answer);
            if !of_commit.insert(id) || !new && !may_repeat(id) && !is_late {
                found.push(format!("input once: {} had {id} twice", commit.scope));
            }
        }
    }
    found
}

/// Between two joins of a fork, a batch must have extended it. A commit may have several of both. Their order isn't
/// known, so a second join with an extension after it, in one commit, isn't detected.
fn joined_once(trace: &Trace) -> Vec<String> {
    let mut joined: BTreeMap<(&ScopeRef, u32), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for commit in &trace.log {
        let mut extended: BTreeMap<u32, usize> = BTreeMap::new();
        for command in &commit.commands {
            match command {
                Command::ExtendFork { fork, .. } | Command::ReviveBranch { fork, .. } => {
                    *extended.entry(*fork).or_default() += 1;
                }
                // Nothing is notified of branches that nothing waits for.
                Command::Fork(Fork {
                    origin: ForkOrigin::Apart(..),
                    ..
                }) => {}
                Command::Fork(fork) if fork.needed > fork.total => {
                    found.push(format!("join once: {} needs too many", commit.scope));
                }
                _ => {}
            }
        }
        for entry in &commit.history {
            if let Event::Joined { fork, .. } = entry.event {
                *joined.entry((&commit.scope, fork)).or_default() += 1;
                extended.entry(fork).or_default();
            }
        }
        for (fork, extensions) in extended {
            let joins = joined.entry((&commit.scope, fork)).or_default();
            *joins = joins.saturating_sub(extensions);
            if *joins > 1 {
                found.push(format!("join once: {} joined {fork} twice", commit.scope));
            }
        }
    }
    found.extend(joined_with_all(trace));
    found
}

/// A join happens only after as many branches have reported as it needs.
fn joined_with_all(trace: &Trace) -> Vec<String> {
    let mut needed: BTreeMap<(String, String), u32> = BTreeMap::new();
    let mut reported: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for commit in &trace.log {
        let instance = commit.scope.instance.to_string();
        let place = |fork: u32| (instance.clone(), format!("{}.{fork}", commit.scope.scope));
        for entry in &commit.history {
            if let Event::Joined { fork, .. } = entry.event {
                let key = place(fork);
                let heard = reported.get(&key).map_or(0, BTreeSet::len) as u32;
                if needed.get(&key).is_some_and(|needed| heard < *needed) {
                    found.push(format!("join once: {key:?} with {heard} branches only"));
                }
            }
        }
        for command in &commit.commands {
            match command {
                Command::Fork(fork) => drop(needed.insert(place(fork.fork), fork.needed)),
                Command::ExtendFork {
                    fork, needed: n, ..
                } => {
                    needed.insert(place(*fork), *n);
                }
                Command::Report(_) => {
                    let name = commit.scope.scope.as_str();
                    if let Some((fork, index)) = name.rsplit_once('.') {
                        let key = (instance.clone(), fork.to_owned());
                        reported.entry(key).or_default().insert(index.to_owned());
                    }
                }
                _ => {}
            }
        }
    }
    found
}

fn ended_is_final(trace: &Trace) -> Vec<String> {
    let mut ended: BTreeMap<String, String> = BTreeMap::new();
    let mut found = Vec::new();
    for commit in trace
        .log
        .iter()
        .filter(|commit| commit.scope.scope.is_root())
    {
        let id = commit.scope.instance.to_string();
        if commit.commands.contains(&Command::Reopen) {
            ended.remove(&id);
        } else if let Some(how) = ended.get(&id)
            && (!commit.history.is_empty() || !commit.commands.is_empty())
        {
            found.push(format!("ended is final: {id} went on after it was {how}"));
        }
        for command in &commit.commands {
            if let Command::End {
                status,
                output,
                error,
            } = command
            {
                let status = swirl_model::instance::Status::from(*status).as_str();
                let error = error.as_ref().map(|error| error.name.clone());
                let output = output.as_ref().map(crate::plans::in_order);
                ended.insert(id.clone(), format!("{status} {output:?} {error:?}"));
            }
        }
    }
    for (id, how) in &ended {
        let shown = trace.outcomes.get(id);
        if shown.is_some_and(|shown| shown != how) {
            found.push(format!("ended is final: {id} was {how}, and is {shown:?}"));
        }
    }
    found
}

/// The history is what was committed, in this order.
fn history_in_order(trace: &Trace) -> Vec<String> {
    let mut committed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for commit in &trace.log {
        for entry in &commit.history {
            if let Some(line) = line(&entry.event) {
                let place = format!("{} {}", commit.scope.instance, entry.scope);
                committed.entry(place).or_default().push(line);
            }
        }
    }
    let stored = trace.history.iter();
    stored
        .filter(|(place, lines)| committed.get(*place) != Some(*lines))
        .map(|(place, lines)| format!("history in order: {place} {lines:?}"))
        .collect()
}

/// A timer fires no earlier than its time, apart from the difference between clocks.
fn timers_not_early(trace: &Trace, faults: &Faults) -> Vec<String> {
    let mut due: BTreeMap<(&ScopeRef, u32), i64> = BTreeMap::new();
    let mut found = Vec::new();
    for commit in &trace.log {
        for id in &commit.consumed {
            let Some(seq) = id.strip_prefix("timer-").and_then(|seq| seq.parse().ok()) else {
                continue;
            };
            let acted = commit.commands.contains(&Command::Disarm(seq));
            let at = due.get(&(&commit.scope, seq)).copied().unwrap_or_default();
            if acted && commit.at.0 + faults.skew_ms < at {
                let early = at - commit.at.0;
                found.push(format!("timer early: {} by {early} ms", commit.scope));
            }
        }
        for command in &commit.commands {
            if let Command::Arm(timer) = command {
                due.insert((&commit.scope, timer.seq), timer.due.0);
            }
        }
    }
    found
}

/// Each key belongs to one call.
fn keys_are_stable(trace: &Trace) -> Vec<String> {
    let mut known: BTreeMap<&str, &Called> = BTreeMap::new();
    let mut found = Vec::new();
    for call in &trace.calls {
        let first = known.entry(&call.key).or_insert(call);
        if *first != call {
            found.push(format!("call keys: one for {first:?} and {call:?}"));
        }
    }
    found
}

fn accepted_has_effect(trace: &Trace) -> Vec<String> {
    let mut found = Vec::new();
    for what in &trace.accepted {
        if let Planned::Start { workflow, key, .. } = what {
            let id = instance_of(workflow, key).to_string();
            if !trace.outcomes.contains_key(&id) {
                found.push(format!("accepted: {workflow} {key} was never started"));
            }
        }
    }
    found
}

/// Compares the parts that two runs of one plan must have in common.
pub fn compare(calm: &Trace, other: &Trace, in_full: bool) -> Vec<String> {
    let outcomes = |trace: &Trace| trace.names.lines(&trace.outcomes);
    let mut found = differences("outcome", &outcomes(calm), &outcomes(other));
    if !in_full {
        return found;
    }
    found.extend(histories(calm, other));
    let produced = |trace: &Trace| trace.names.lines(&trace.produced);
    found.extend(differences("produced", &produced(calm), &produced(other)));
    let calls = |trace: &Trace| {
        let calls = trace.calls.iter();
        calls
            .map(|call| trace.names.call(call))
            .collect::<BTreeSet<_>>()
    };
    let (before, after) = (calls(calm), calls(other));
    for call in after.difference(&before) {
        found.push(format!("call keys: {call:?} is one too many"));
    }
    // A cancelled branch may not have come this far.
    let root = |call: &&Called| call.scope == "r" && call.function != "endless";
    for call in before.difference(&after).filter(root) {
        found.push(format!("calls: {call:?} was never made"));
    }
    found
}

/// For a cancelled branch, one run may have recorded more than the other.
fn histories(calm: &Trace, other: &Trace) -> Vec<String> {
    let named = |trace: &Trace| {
        let line = |line: &String| trace.names.text(line);
        let history = trace.history.iter();
        history
            .map(|(place, lines)| {
                let mut lines: Vec<String> = lines.iter().map(line).collect();
                // Branches that end at the same time are joined together, or one after another.
                lines.dedup_by(|one, other| one == other && one.starts_with("Joined"));
                (line(place), lines)
            })
            .collect::<BTreeMap<String, Vec<String>>>()
    };
    let (calm, other) = (named(calm), named(other));
    let found = differences("history", &calm, &other);
    let none = Vec::new();
    let names: BTreeSet<&String> = calm.keys().chain(other.keys()).collect();
    let names = names
        .into_iter()
        .filter(|name| calm.get(*name) != other.get(*name));
    let begins_alike = |name: &String| {
        let (a, b) = (calm.get(name), other.get(name));
        let (a, b) = (a.unwrap_or(&none), b.unwrap_or(&none));
        let sorted = |lines: &Vec<String>| lines.iter().cloned().collect::<BTreeSet<_>>();
        // Events that several entries of a state wait for arrive in any order.
        if name.ends_with(" r") {
            // It ended with its parent, and may or may not have begun.
            let shown = |lines: &Vec<String>| {
                lines
                    .last()
                    .is_some_and(|l| l.starts_with("ended Terminated"))
            };
            if shown(a) && shown(b) {
                return true;
            }
            return a.len() == b.len() && sorted(a) == sorted(b);
        }
        // It is late beside a branch whose timeout fails the state in any case.
        let timed_out = |lines: &[String]| lines.iter().any(|line| line == "timed out Branch");
        timed_out(a) || timed_out(b) || a.starts_with(b) || b.starts_with(a)
    };
    names
        .zip(found)
        .filter(|(name, _)| !begins_alike(name))
        .map(|(_, text)| text)
        .collect()
}

fn differences<T: PartialEq + std::fmt::Debug>(
    what: &str,
    calm: &BTreeMap<String, T>,
    other: &BTreeMap<String, T>,
) -> Vec<String> {
    let names: BTreeSet<&String> = calm.keys().chain(other.keys()).collect();
    let names = names.into_iter();
    names
        .filter(|name| calm.get(*name) != other.get(*name))
        .map(|name| {
            let (calm, other) = (calm.get(name), other.get(name));
            format!("{what} {name}:\n  calm   {calm:?}\n  faults {other:?}")
        })
        .collect()
}
