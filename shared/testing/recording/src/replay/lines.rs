//! Finds the first line that differs between two runs.

use std::collections::{BTreeMap, BTreeSet};

use swirl_model::event::{Event, HistoryEntry};
use swirl_scenario::differ;

use super::histories::{Pair, Path, by_scope};

/// The number of lines shown before the one that differs.
const BEFORE: usize = 3;

/// A line that differs.
pub struct DifferingLine<'o> {
    pub pair: &'o Pair<'o>,
    pub is_first: bool,
    pub scope: &'o str,
    pub state: Option<&'o str>,
    pub before: Vec<&'o HistoryEntry>,
    pub expected: Option<&'o HistoryEntry>,
    pub actual: Option<&'o HistoryEntry>,
    pub details: Vec<String>,
    order: Order,
}

/// Orders by time. At the same time, causes come before their consequences; then the order is by instance and branch.
type Order = (i64, bool, usize, Path);

#[derive(Default)]
pub struct Compared<'o> {
    pub first: Option<DifferingLine<'o>>,
    /// A line that occurs at another time.
    pub shifted: Option<DifferingLine<'o>>,
}

pub fn compare<'o>(pairs: &'o [Pair<'o>]) -> Compared<'o> {
    let mut compared = Compared::default();
    for (index, pair) in pairs.iter().enumerate() {
        let (before, after) = (
            by_scope(&pair.recorded.history),
            by_scope(&pair.new.history),
        );
        let paths: BTreeSet<&Path> = before.keys().chain(after.keys()).collect();
        for path in paths {
            let scope = Scope {
                pair,
                index,
                path,
                before: before.get(path).map_or(&[], Vec::as_slice),
                after: after.get(path).map_or(&[], Vec::as_slice),
            };
            let (first, shifted) = scope.compare();
            earliest(&mut compared.first, first, |first| {
                first.state = first.state.or(state_above(&before, path));
            });
            earliest(&mut compared.shifted, shifted, |shifted| {
                shifted.state = shifted.state.or(state_above(&before, path));
            });
        }
    }
    compared
}

fn earliest<'o>(
    known: &mut Option<DifferingLine<'o>>,
    found: Option<DifferingLine<'o>>,
    complete: impl FnOnce(&mut DifferingLine<'o>),
) {
    let Some(mut found) = found else {
        return;
    };
    if known.as_ref().is_none_or(|known| found.order < known.order) {
        complete(&mut found);
        *known = Some(found);
    }
}

/// A branch without states of its own is in the state that forked it.
fn state_above<'o>(scopes: &BTreeMap<Path, Vec<&'o HistoryEntry>>, path: &Path) -> Option<&'o str> {
    let (_, above) = path.split_last()?;
    let above = above.to_vec();
    let number = scopes.get(path)?.first()?.scope.to_string();
    let number: u32 = number.rsplit('.').nth(1)?.parse().ok()?;
    let entries = scopes.get(&above)?;
    let forked = entries.iter().position(|entry| match &entry.event {
        Event::Forked { fork, .. } => *fork == number,
        Event::ActionStarted { call, .. } => *call == number,
        _ => false,
    });
    let until = forked.unwrap_or(entries.len());
    state_at(&entries[..until]).or_else(|| state_above(scopes, &above))
}

fn state_at<'o>(entries: &[&'o HistoryEntry]) -> Option<&'o str> {
    entries.iter().rev().find_map(|entry| match &entry.event {
        Event::StateEntered { name, .. }
        | Event::ActionStarted {
            in_state: Some(name),
            ..
        }
        | Event::Forked {
            in_state: Some(name),
            ..
        } => Some(&**name),
        _ => None,
    })
}

/// A scope in both runs.
struct Scope<'o, 's> {
    pair: &'o Pair<'o>,
    index: usize,
    path: &'s Path,
    before: &'s [&'o HistoryEntry],
    after: &'s [&'o HistoryEntry],
}

impl<'o> Scope<'o, '_> {
    /// Returns the first line that differs, or the first one that occurs at another time.
    fn compare(&self) -> (Option<DifferingLine<'o>>, Option<DifferingLine<'o>>) {
        let mut shifted = None;
        for at in 0..self.before.len().max(self.after.len()) {
            let (expected, actual) = (self.before.get(at).copied(), self.after.get(at).copied());
            let (Some(left), Some(right)) = (expected, actual) else {
                return (Some(self.found(at, Vec::new())), shifted);
            };
            let (plain, new) = (self.pair.ids.plain(left), self.pair.new_ids.plain(right));
            if plain != new {
                return (Some(self.found(at, differ::diff(&plain, &new))), shifted);
            }
            if shifted.is_none() && self.since(left) != self.since_new(right) {
                shifted = Some(self.found(at, Vec::new()));
            }
        }
        (None, shifted)
    }

    fn since(&self, entry: &HistoryEntry) -> i64 {
        entry.at.0 - self.pair.recorded.started_at.0
    }

    fn since_new(&self, entry: &HistoryEntry) -> i64 {
        entry.at.0 - self.pair.new.started_at.0
    }

    fn found(&self, at: usize, details: Vec<String>) -> DifferingLine<'o> {
        let (expected, actual) = (self.before.get(at).copied(), self.after.get(at).copied());
        let times = [expected.map(|one| one.at.0), actual.map(|one| one.at.0)];
        let time = times.into_iter().flatten().min().unwrap_or(i64::MAX);
        let consequence = [expected, actual].into_iter().flatten().all(follows);
        let scope = self.before.first().or(self.after.first());
        let same = &self.before[..at.min(self.before.len())];
        DifferingLine {
            pair: self.pair,
            is_first: self.index == 0,
            scope: scope.map_or("r", |entry| entry.scope.as_str()),
            state: state_at(same),
            before: same[same.len().saturating_sub(BEFORE)..].to_vec(),
            expected,
            actual,
            details,
            order: (time, consequence, self.index, self.path.clone()),
        }
    }
}

/// Whether an entry can only be the consequence of another one at the same time.
fn follows(entry: &HistoryEntry) -> bool {
    matches!(
        entry.event,
        Event::ActionCompleted { .. }
            | Event::ActionFailed { .. }
            | Event::BranchFailed { .. }
            | Event::Joined { .. }
            | Event::StateLeft { .. }
            | Event::Ended { .. }
    )
}
