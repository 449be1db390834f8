//! The last calls of a scope, with what went into them and what came out. They are kept with the scope and not with its
//! history, so that each commit replaces the oldest and an instance has only a few, however long it runs.

use serde::{Deserialize, Serialize};

use super::Scope;
use crate::Data;
use crate::event::{Event, HistoryEntry};
use crate::time::Timestamp;

/// An answered call. The history has an entry about it, without data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecentCall {
    pub at: Timestamp,
    pub action: String,
    pub attempt: u32,
    /// As the entry would have it.
    pub data: Data,
    /// When it must no longer be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_until: Option<Timestamp>,
}

impl RecentCall {
    fn is_of(&self, entry: &HistoryEntry) -> bool {
        let Event::ActionCompleted {
            action, attempt, ..
        } = &entry.event
        else {
            return false;
        };
        entry.at == self.at && *action == self.action && *attempt == self.attempt
    }
}

impl Scope {
    /// Keeps this call in place of the oldest one.
    pub fn keep_recent(&mut self, call: RecentCall, calls_max: usize) {
        let surplus = (self.recent.len() + 1).saturating_sub(calls_max);
        self.recent.drain(..surplus.min(self.recent.len()));
        if calls_max > 0 {
            self.recent.push(call);
        }
    }

    /// Gives the data of the last calls to the entries about them, as far as it may still be shown.
    pub fn fill_in_recent(&self, entries: &mut [HistoryEntry], now: Timestamp) {
        let mut end = entries.len();
        for call in self.recent.iter().rev() {
            let is_of = |entry: &HistoryEntry| entry.scope == self.id && call.is_of(entry);
            // A call that was stored after the entries were read has none.
            let Some(at) = entries[..end].iter().rposition(is_of) else {
                continue;
            };
            end = at;
            let is_over = call.data_until.is_some_and(|until| until <= now);
            let entry = &mut entries[at];
            if entry.data.is_none() && !is_over {
                entry.data = Some(call.data.clone());
                entry.data_until = call.data_until;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ScopeId;
    use crate::scope::Role;

    fn call(number: u32) -> RecentCall {
        RecentCall {
            at: Timestamp(7),
            action: "pay".to_owned(),
            attempt: 1,
            data: Data::int(i64::from(number)),
            data_until: None,
        }
    }

    fn entry(scope: &ScopeId, at: i64) -> HistoryEntry {
        HistoryEntry {
            at: Timestamp(at),
            scope: scope.clone(),
            event: Event::ActionCompleted {
                action: "pay".to_owned(),
                attempt: 1,
                in_state: None,
            },
            data: None,
            data_until: None,
        }
    }

    #[test]
    fn only_the_last_calls_are_kept() {
        let mut scope = Scope::new(ScopeId::root(), Role::Root, Data::NULL);
        for number in 0..7 {
            scope.keep_recent(call(number), 3);
        }
        let kept: Vec<String> = scope
            .recent
            .iter()
            .map(|one| one.data.to_string())
            .collect();
        assert_eq!(kept, ["4", "5", "6"]);
        scope.keep_recent(call(8), 2);
        assert_eq!(scope.recent.len(), 2, "the limit was lowered");
        scope.keep_recent(call(9), 0);
        assert_eq!(scope.recent, []);
    }

    #[test]
    fn entries_get_the_data_of_their_own_calls() {
        let mut scope = Scope::new(ScopeId::root(), Role::Root, Data::NULL);
        scope.keep_recent(call(1), 3);
        scope.keep_recent(call(2), 3);
        let root = ScopeId::root();
        // Alike, in the same millisecond.
        let mut entries = [6, 7, 7, 8].map(|at| entry(&root, at));
        scope.fill_in_recent(&mut entries, Timestamp(9));
        let found = entries.map(|entry| entry.data.map(|data| data.to_string()));
        assert_eq!(found, [None, Some("1".into()), Some("2".into()), None]);
        let mut elsewhere = [entry(&ScopeId::new("r.0"), 7)];
        scope.fill_in_recent(&mut elsewhere, Timestamp(9));
        assert_eq!(elsewhere[0].data, None);
        scope.recent[1].data_until = Some(Timestamp(9));
        let mut late = [entry(&root, 7)];
        scope.fill_in_recent(&mut late, Timestamp(9));
        assert_eq!(late[0].data, None, "its time is over");
    }
}
