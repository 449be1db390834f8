//! The tasks of an instance of DSL 1.0 that have begun and aren't over, as its history tells: so what happens to all of
//! them at once, such as a cancellation, becomes an event of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use swirl_model::WorkflowError;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::EndStatus;
use swirl_model::workflow::StateId;
use swirl_ports::{Extract, HistoryPart, InstanceQueries, Result};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenTask {
    pub state: StateId,
    pub name: Arc<str>,
    /// Its error stopped its scope, and an operator may let it continue.
    is_faulted: bool,
}

/// A change of an open task that has no entry of its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    pub scope: ScopeId,
    pub task: OpenTask,
    pub how: How,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum How {
    Cancelled,
    Faulted(WorkflowError),
    Resumed,
    Retried,
    Suspended,
}

/// The number of instances whose open tasks are remembered. Those of others are read from their histories.
const OPEN_MAX: usize = 4_096;
/// How many entries are read together.
const PAGE: usize = 500;

/// The open tasks of instances whose histories are read in parts.
pub(crate) struct OpenByInstance {
    histories: Arc<dyn InstanceQueries>,
    /// After so many entries.
    known: Mutex<HashMap<InstanceId, (u64, OpenTasks)>>,
}

impl OpenByInstance {
    pub fn new(histories: Arc<dyn InstanceQueries>) -> OpenByInstance {
        OpenByInstance {
            histories,
            known: Mutex::default(),
        }
    }

    /// The tasks that are open before a part; `None`: no entry of the part concerns several of them.
    pub async fn before(&self, part: &Extract<'_>) -> Result<Option<OpenTasks>> {
        let id = &part.header.id;
        let known = self.known().get(id).cloned();
        if let Some((_, open)) = known.filter(|(known, _)| *known == part.before) {
            return Ok(Some(open));
        }
        if part.before > 0 && !part.entries.iter().any(|entry| is_of_many(&entry.event)) {
            return Ok(None);
        }
        let mut open = OpenTasks::default();
        let mut read = 0;
        while read < part.before {
            let limit = PAGE.min((part.before - read) as usize);
            let page = HistoryPart::After { known: read, limit };
            let page = self.histories.history_page(id, page).await?;
            // The oldest may be gone.
            let earlier = part.before.saturating_sub(page.before) as usize;
            for entry in page.entries.iter().take(earlier) {
                open.take(entry);
            }
            let next = page.before + page.entries.len() as u64;
            if next <= read {
                break;
            }
            read = next;
        }
        Ok(Some(open))
    }

    /// Remembers the tasks that are open after a part.
    pub fn keep(&self, part: &Extract<'_>, open: Option<OpenTasks>) {
        let id = &part.header.id;
        let mut all = self.known();
        let is_over = |entry: &HistoryEntry| matches!(entry.event, Event::Ended { .. });
        let Some(open) = open.filter(|_| !part.entries.last().is_some_and(is_over)) else {
            all.remove(id);
            return;
        };
        if all.len() >= OPEN_MAX && !all.contains_key(id) {
            all.clear();
        }
        let after = part.before + part.entries.len() as u64;
        all.insert(id.clone(), (after, open));
    }

    fn known(&self) -> MutexGuard<'_, HashMap<InstanceId, (u64, OpenTasks)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By scope, from the outermost to the innermost.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenTasks(BTreeMap<ScopeId, Vec<OpenTask>>);

/// Whether an entry may change open tasks other than by entering or leaving one.
fn is_of_many(event: &Event) -> bool {
    use Event::*;
    matches!(
        event,
        BranchFailed { .. }
            | Ended { .. }
            | GivenUp { .. }
            | Joined { .. }
            | Operated { .. }
            | Retried
            | StateLeft { failed: true, .. }
    )
}

impl OpenTasks {
    /// Takes in the next entry. Returns what it does to open tasks, inner ones first.
    pub fn take(&mut self, entry: &HistoryEntry) -> Vec<Change> {
        let scope = &entry.scope;
        match &entry.event {
            Event::StateEntered { state, name, .. } => {
                let open = self.0.entry(scope.clone()).or_default();
                open.push(OpenTask {
                    state: *state,
                    name: name.clone(),
                    is_faulted: false,
                });
                Vec::new()
            }
            Event::StateLeft { state, name, .. } => {
                // The branches of a fork that is left are over.
                let below = format!("{scope}.");
                let cancelled = self.close(|scope| scope.as_str().starts_with(&below));
                if let Some(open) = self.0.get_mut(scope) {
                    let is_same = |task: &OpenTask| task.state == *state && task.name == *name;
                    open.truncate(open.iter().rposition(is_same).unwrap_or(open.len()));
                }
                cancelled
            }
            Event::Joined { fork, .. } => {
                let below = format!("{scope}.{fork}.");
                self.close(|scope| scope.as_str().starts_with(&below))
            }
            Event::BranchFailed { error } => self.fault(scope, error),
            Event::Ended {
                status: EndStatus::Faulted,
                error: Some(error),
            } => self.fault(scope, error),
            Event::Ended {
                status: EndStatus::Faulted,
                error: None,
            } => Vec::new(),
            Event::Ended { .. } => self.close(|_| true),
            Event::GivenUp { .. } => self.all(&How::Suspended),
            Event::Operated { action, .. } if &**action == "suspend" => self.all(&How::Suspended),
            Event::Operated { action, .. } if &**action == "resume" => self.all(&How::Resumed),
            Event::Retried => self.retry(scope),
            _ => Vec::new(),
        }
    }

    /// Whether an error of this task has been told already.
    pub fn is_faulted(&self, scope: &ScopeId, state: StateId) -> bool {
        let open = self.0.get(scope).into_iter().flatten();
        open.rev()
            .any(|task| task.state == state && task.is_faulted)
    }

    fn close(&mut self, which: impl Fn(&ScopeId) -> bool) -> Vec<Change> {
        let closed: Vec<_> = self.0.extract_if(.., |scope, _| which(scope)).collect();
        let inner_first = closed.into_iter().rev().flat_map(|(scope, open)| {
            let open = open.into_iter().rev();
            open.map(move |task| Change {
                scope: scope.clone(),
                task,
                how: How::Cancelled,
            })
        });
        inner_first
            .filter(|change| !change.task.is_faulted)
            .collect()
    }

    fn all(&self, how: &How) -> Vec<Change> {
        let scopes = self.0.iter().rev();
        let open = scopes.flat_map(|(scope, open)| open.iter().rev().map(move |it| (scope, it)));
        let running = open.filter(|(_, task)| !task.is_faulted);
        running
            .map(|(scope, task)| Change {
                scope: scope.clone(),
                task: task.clone(),
                how: how.clone(),
            })
            .collect()
    }

    fn fault(&mut self, scope: &ScopeId, error: &WorkflowError) -> Vec<Change> {
        let open = self.0.get_mut(scope).into_iter().flatten().rev();
        let running = open.filter(|task| !task.is_faulted);
        running
            .map(|task| {
                task.is_faulted = true;
                Change {
                    scope: scope.clone(),
                    task: task.clone(),
                    how: How::Faulted(error.clone()),
                }
            })
            .collect()
    }

    /// An operator lets a scope continue: what failed is tried again, and the tasks around it go on.
    fn retry(&mut self, scope: &ScopeId) -> Vec<Change> {
        let open = self.0.get_mut(scope).into_iter().flatten().rev();
        let faulted = open.filter(|task| task.is_faulted).enumerate();
        faulted
            .map(|(place, task)| {
                task.is_faulted = false;
                Change {
                    scope: scope.clone(),
                    task: task.clone(),
                    how: match place {
                        0 => How::Retried,
                        _ => How::Resumed,
                    },
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::scope::Purpose;
    use swirl_model::time::Timestamp;

    use super::*;

    fn entered(state: u32, name: &str) -> Event {
        Event::StateEntered {
            state: StateId(state),
            name: name.into(),
            purpose: Purpose::Main,
        }
    }

    fn left(state: u32, name: &str, failed: bool) -> Event {
        Event::StateLeft {
            state: StateId(state),
            name: name.into(),
            failed,
        }
    }

    fn operated(action: &str) -> Event {
        Event::Operated {
            action: action.into(),
            by: None,
            reason: None,
            state: None,
            from: None,
            to: None,
            batch: None,
            with: None,
        }
    }

    fn ended(status: EndStatus) -> Event {
        let error = (status == EndStatus::Faulted).then(|| WorkflowError::new("E", "no"));
        Event::Ended { status, error }
    }

    /// What the last of these entries does.
    fn last(entries: Vec<(&str, Event)>) -> String {
        let mut open = OpenTasks::default();
        let mut changes = Vec::new();
        for (scope, event) in entries {
            changes = open.take(&HistoryEntry {
                at: Timestamp(0),
                scope: ScopeId::new(scope),
                event,
                data: None,
                data_until: None,
            });
        }
        let words = changes.iter().map(|change| {
            let how = match change.how {
                How::Cancelled => "cancelled",
                How::Faulted(_) => "faulted",
                How::Resumed => "resumed",
                How::Retried => "retried",
                How::Suspended => "suspended",
            };
            format!("{}/{} {how}", change.scope, change.task.name)
        });
        words.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_happens_to_an_instance_happens_to_its_open_tasks() {
        let nested = |end: Vec<Event>| {
            let begin = [entered(0, "a"), left(0, "a", false), entered(1, "b")];
            let begin = begin.into_iter().chain([entered(2, "c")]);
            last(begin.chain(end).map(|event| ("r", event)).collect())
        };
        assert_eq!(
            nested(vec![operated("suspend")]),
            "r/c suspended, r/b suspended"
        );
        assert_eq!(nested(vec![operated("resume")]), "r/c resumed, r/b resumed");
        assert_eq!(
            nested(vec![ended(EndStatus::Cancelled)]),
            "r/c cancelled, r/b cancelled"
        );
        assert_eq!(
            nested(vec![ended(EndStatus::Faulted)]),
            "r/c faulted, r/b faulted"
        );
        let faulted = || vec![ended(EndStatus::Faulted)];
        let then = |event| nested(faulted().into_iter().chain([event]).collect());
        assert_eq!(then(Event::Retried), "r/c retried, r/b resumed");
        assert_eq!(then(ended(EndStatus::Cancelled)), "", "they are over");
        assert_eq!(then(operated("suspend")), "");
        let end = vec![left(2, "c", false), ended(EndStatus::Completed)];
        assert_eq!(nested(end), "r/b cancelled", "'end' inside of it");
    }

    #[test]
    fn branches_that_nothing_waits_for_are_cancelled() {
        let race = |end: Vec<(&'static str, Event)>| {
            let begin = vec![
                ("r", entered(0, "fork")),
                ("r.1.0", entered(1, "slow")),
                ("r.1.0", entered(2, "inner")),
                ("r.1.1", entered(3, "fast")),
                ("r.1.1", left(3, "fast", false)),
            ];
            last(begin.into_iter().chain(end).collect())
        };
        let joined = Event::Joined {
            fork: 1,
            in_state: None,
        };
        let both = "r.1.0/inner cancelled, r.1.0/slow cancelled";
        assert_eq!(race(vec![("r", joined)]), both);
        assert_eq!(race(vec![("r", left(0, "fork", true))]), both);
        let error = WorkflowError::new("E", "no");
        let failed = || {
            (
                "r.1.0",
                Event::BranchFailed {
                    error: error.clone(),
                },
            )
        };
        let told = "r.1.0/inner faulted, r.1.0/slow faulted";
        assert_eq!(race(vec![failed()]), told);
        assert_eq!(race(vec![failed(), ("r", left(0, "fork", true))]), "");
    }
}
