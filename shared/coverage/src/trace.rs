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
    failed: bool,
}

pub(super) fn count(workflow: &Workflow, history: &[HistoryEntry], items: &mut [Item]) {
    let mut hit = |key: Key| {
        if let Some(item) = items.iter_mut().find(|item| item.key == key) {
            item.hits += 1;
        }
    };
    // The way of a handler counts where the handler takes the error.
    let way = |at: &Visited, to: Option<StateId>| (!at.handled).then_some(Key::Exit(at.state, to));
    let known = |state: StateId| (state.0 as usize) < workflow.states.len();
    let mut scopes: HashMap<ScopeId, Visited> = HashMap::new();
    let mut is_completed = false;
    let mut handled = Vec::new();
    for entry in history {
        match &entry.event {
            Event::StateEntered { state, purpose, .. } if known(*state) => {
                hit(Key::State(*state));
                if *purpose != Purpose::Main {
                    continue;
                }
                let at = Visited {
                    state: *state,
                    handled: false,
                    failed: false,
                };
                if let Some(before) = scopes.insert(entry.scope.clone(), at) {
                    way(&before, Some(*state)).into_iter().for_each(&mut hit);
                }
            }
            Event::StateLeft { state, failed, .. } => {
                if let Some(at) = scopes.get_mut(&entry.scope).filter(|at| at.state == *state) {
                    at.failed = *failed;
                }
            }
            Event::ErrorHandled { handler, .. } => {
                if let Some(handler) = handler {
                    handled.push(*handler);
                }
                if let Some(at) = scopes.get_mut(&entry.scope) {
                    at.handled = true;
                }
            }
            Event::ActionFailed {
                retry_ms: Some(_), ..
            } => {
                if let Some(state) = state_of(&scopes, &entry.scope) {
                    hit(Key::Retry(state));
                }
            }
            Event::TimedOut { timer } => match timer.kind {
                TimerKind::Workflow => hit(Key::Timeout(None)),
                TimerKind::Sleep | TimerKind::RetryDelay | TimerKind::Pause => {}
                _ => {
                    if let Some(state) = state_of(&scopes, &entry.scope) {
                        hit(Key::Timeout(Some(state)));
                    }
                }
            },
            Event::Ended { status, .. } if entry.scope.is_root() => {
                is_completed = *status == EndStatus::Completed;
            }
            _ => {}
        }
    }
    if is_completed {
        for at in scopes.values().filter(|at| !at.failed || at.handled) {
            way(at, None).into_iter().for_each(&mut hit);
        }
    }
    for item in items {
        if let Key::ErrorPath { handler, .. } = &item.key {
            item.hits += handled.iter().filter(|one| *one == handler).count() as u64;
        }
    }
}

/// The current state of a scope. For a branch without states of its own, it is the state that forked it.
fn state_of(scopes: &HashMap<ScopeId, Visited>, scope: &ScopeId) -> Option<StateId> {
    let mut id = scope.to_string();
    loop {
        if let Some(at) = scopes.get(&ScopeId::new(id.as_str())) {
            return Some(at.state);
        }
        // The id of a child is '<parent>.<fork>.<index>'.
        let parent = id.rfind('.').and_then(|end| id[..end].rfind('.'))?;
        id.truncate(parent);
    }
}
