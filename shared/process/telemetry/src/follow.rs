//! Turns commits into spans, outside the drivers.
//!
//! A state may be entered in one process and left in another. In that case the scope's history is read from the store:
//! at most once each time that the scope moves to this process, and only if something ends here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::ScopeRef;
use swirl_ports::InstanceQueries;
use swirl_runtime::Observed;

use crate::span::Span;
use crate::tracker::{Owner, Tracker};

/// The number of scopes that are remembered. There may be up to twice as many.
const SCOPES_MAX: usize = 4096;
/// The time limit for reading from the store. After that, the known part has to do.
const HISTORY_MAX: Duration = Duration::from_secs(5);

pub struct Follower {
    queries: Arc<dyn InstanceQueries>,
    /// Scopes that were reported recently, and those before them.
    young: HashMap<ScopeRef, Followed>,
    old: HashMap<ScopeRef, Followed>,
}

struct Followed {
    tracker: Tracker,
    /// The revision that the next commit must be based on.
    rev: u64,
}

impl Follower {
    pub fn new(queries: Arc<dyn InstanceQueries>) -> Follower {
        Follower {
            queries,
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }

    /// The spans that ended with a commit.
    pub async fn follow(&mut self, observed: &Observed) -> Vec<Span> {
        let scope = ScopeRef {
            instance: observed.header.id.clone(),
            scope: observed.scope.clone(),
        };
        let owner = Owner {
            header: &observed.header,
            scope: &observed.scope,
            name: observed.name.as_deref(),
            has_tasks: observed.has_tasks,
        };
        let Some(mut tracker) = self.take(&scope, observed, owner).await else {
            return Vec::new();
        };
        let mut spans = Vec::new();
        for entry in &observed.history {
            tracker.record(owner, entry, &observed.links, &mut spans);
        }
        if observed.ended {
            tracker.finish(owner, observed.at, &mut spans);
        }
        let rev = observed.rev + 1;
        self.keep(scope, Followed { tracker, rev });
        spans
    }

    /// The scope's state before the commit; `None` if it isn't needed yet.
    async fn take(
        &mut self,
        scope: &ScopeRef,
        observed: &Observed,
        owner: Owner<'_>,
    ) -> Option<Tracker> {
        let known = self.young.remove(scope).or_else(|| self.old.remove(scope));
        if let Some(known) = known
            && known.rev == observed.rev
        {
            return Some(known.tracker);
        }
        if observed.rev == 0 {
            return Some(Tracker::default());
        }
        let ends = |entry: &HistoryEntry| Tracker::is_end(&entry.event);
        if !observed.ended && !observed.history.iter().any(ends) {
            return None;
        }
        let history = self.queries.history(&scope.instance);
        let history = match tokio::time::timeout(HISTORY_MAX, history).await {
            Ok(Ok(history)) => history,
            Ok(Err(error)) => {
                tracing::debug!(%scope, %error, "the history cannot be read, so spans begin late");
                Vec::new()
            }
            Err(_) => Vec::new(),
        };
        let own: Vec<HistoryEntry> = history
            .into_iter()
            .filter(|entry| entry.scope == scope.scope)
            .collect();
        let mut tracker = Tracker::default();
        let mut ended_before = Vec::new();
        for entry in before(&own, &observed.history) {
            tracker.record(owner, entry, &[], &mut ended_before);
            // A branch that fails ends with that commit, and its spans were sent then.
            if matches!(entry.event, Event::BranchFailed { .. }) {
                tracker.finish(owner, entry.at, &mut ended_before);
            }
        }
        Some(tracker)
    }

    fn keep(&mut self, scope: ScopeRef, followed: Followed) {
        if self.young.len() >= SCOPES_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(scope, followed);
    }
}

/// The entries before those of the commit, which are the last ones unless others were added meanwhile.
fn before<'h>(history: &'h [HistoryEntry], committed: &[HistoryEntry]) -> &'h [HistoryEntry] {
    if committed.is_empty() {
        return history;
    }
    let mut windows = history.windows(committed.len());
    match windows.rposition(|window| window == committed) {
        Some(at) => &history[..at],
        None => history,
    }
}
