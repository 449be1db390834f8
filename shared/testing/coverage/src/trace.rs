//! Counts the parts that ran, based on an instance's history.

use std::collections::HashMap;

use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::ScopeId;
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Purpose, TimerKind};
use swirl_model::workflow::{StateId, Workflow};

use super::items::{Item, Key};

/// A state of the main path that a scope is in or has just left.
struct Visited {
    state: StateId,
    /// A handler has taken an error in this state.
    handled: bool,
    /// It has been left, and not by an error.
    done: bool,
}

impl Visited {
    fn at(state: StateId) -> Visited {
        Visited {
            state,
            handled: false,
            done: false,
        }
    }

    /// The way of a handler counts where the handler takes the error.
    fn way(&self, to: Option<StateId>) -> Option<Key> {
        (!self.handled).then_some(Key::Exit(self.state, to))
    }

    fn end(&self) -> Option<Key> {
        self.way(None).filter(|_| self.done)
    }
}

/// The states that a scope is in: each but the first is in a list of tasks of one before it.
type Path = Vec<Visited>;

/// Enters a state. Returns the ways that this shows to have been taken.
fn enter(workflow: &Workflow, path: &mut Path, entered: Visited, items: &[Item]) -> Vec<Key> {
    let to = entered.state;
    let flow = workflow[to].flow;
    let is_listed = |key: &Key| items.iter().any(|item| item.key == *key);
    let kind = |at: &Visited| &workflow[at.state].kind;
    let before = path.iter().rposition(|at| workflow[at.state].flow == flow);
    let around = path
        .iter()
        .rposition(|at| kind(at).inner_flows().any(|inner| inner == flow));
    let mut ways = Vec::new();
    if let Some(before) = before {
        ways = leave(path, before + 1);
        let before = path.pop();
        let way = before.as_ref().and_then(|before| before.way(Some(to)));
        let is_next = way.as_ref().is_some_and(is_listed);
        // The next iteration begins.
        let is_again = !is_next && workflow[flow].states.first() == Some(&to);
        ways.extend(match is_again {
            true => before.and_then(|before| before.end()),
            false => way,
        });
    } else if let Some(around) = around {
        ways = leave(path, around + 1);
    }
    path.push(entered);
    ways
}

/// Leaves the states from `depth` on.
fn leave(path: &mut Path, depth: usize) -> Vec<Key> {
    path.drain(depth..).filter_map(|at| at.end()).collect()
}

pub(super) fn count(workflow: &Workflow, history: &[HistoryEntry], items: &mut [Item]) {
    let hit = |items: &mut [Item], key: &Key| {
        if let Some(item) = items.iter_mut().find(|item| item.key == *key) {
            item.hits += 1;
        }
    };
    let known = |state: StateId| (state.0 as usize) < workflow.states.len();
    let mut scopes: HashMap<ScopeId, Path> = HashMap::new();
    let mut is_completed = false;
    let mut handled = Vec::new();
    for entry in history {
        let keys = match &entry.event {
            Event::StateEntered { state, purpose, .. } if known(*state) => {
                let mut keys = vec![Key::State(*state)];
                if *purpose == Purpose::Main {
                    let path = scopes.entry(entry.scope.clone()).or_default();
                    keys.extend(enter(workflow, path, Visited::at(*state), items));
                }
                keys
            }
            Event::StateSkipped { state, .. } if known(*state) => {
                let path = scopes.entry(entry.scope.clone()).or_default();
                // Its own way isn't taken.
                let skipped = Visited {
                    handled: true,
                    ..Visited::at(*state)
                };
                enter(workflow, path, skipped, items)
            }
            Event::StateLeft { state, failed, .. } => {
                let path = scopes.get_mut(&entry.scope);
                path.map_or_else(Vec::new, |path| {
                    let Some(place) = path.iter().rposition(|at| at.state == *state) else {
                        return Vec::new();
                    };
                    path[place].done = !failed;
                    leave(path, place + 1)
                })
            }
            Event::ErrorHandled { handler, .. } => {
                if let Some(handler) = handler {
                    handled.push(*handler);
                }
                // A task says itself how it is left.
                let at = scopes
                    .get_mut(&entry.scope)
                    .and_then(|path| path.last_mut());
                if let Some(at) = at.filter(|_| workflow.tasks.is_none()) {
                    at.handled = true;
                }
                Vec::new()
            }
            Event::ActionFailed {
                retry_ms: Some(_), ..
            } => {
                let states = around(&scopes, &entry.scope);
                states
                    .first()
                    .copied()
                    .map(Key::Retry)
                    .into_iter()
                    .collect()
            }
            Event::TaskRetried { state, .. } => vec![Key::Retry(*state)],
            Event::TimedOut { timer } => match timer.kind {
                TimerKind::Workflow => vec![Key::Timeout(None)],
                TimerKind::Sleep | TimerKind::RetryDelay | TimerKind::Pause => Vec::new(),
                _ => {
                    let states = around(&scopes, &entry.scope).into_iter();
                    let mut keys = states.map(|state| Key::Timeout(Some(state)));
                    let own = keys.find(|key| items.iter().any(|item| item.key == *key));
                    own.into_iter().collect()
                }
            },
            Event::Ended { status, .. } if entry.scope.is_root() => {
                is_completed = *status == EndStatus::Completed;
                Vec::new()
            }
            _ => Vec::new(),
        };
        keys.iter().for_each(|key| hit(items, key));
    }
    if is_completed {
        for path in scopes.values_mut() {
            leave(path, 0).iter().for_each(|key| hit(items, key));
        }
    }
    for item in items {
        if let Key::ErrorPath { handler, .. } = &item.key {
            item.hits += handled.iter().filter(|one| *one == handler).count() as u64;
        }
    }
}

/// The current state of a scope and those around it, the innermost first.
fn around(scopes: &HashMap<ScopeId, Path>, scope: &ScopeId) -> Vec<StateId> {
    let mut states = Vec::new();
    let mut id = scope.to_string();
    loop {
        let path = scopes.get(&ScopeId::new(id.as_str()));
        let path = path.into_iter().flatten().rev();
        states.extend(path.map(|at| at.state));
        // The id of a child is '<parent>.<fork>.<index>'.
        match id.rfind('.').and_then(|end| id[..end].rfind('.')) {
            Some(parent) => id.truncate(parent),
            None => return states,
        }
    }
}
