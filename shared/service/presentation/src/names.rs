//! Names of paths of execution, for people: `PayAndCheck / Payment` for a branch, `Reserve[3]` for an iteration. The
//! ids of scopes consist of numbers that only the record explains.

use std::collections::HashMap;
use std::sync::Arc;

use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::ScopeId;
use swirl_model::scope::{Role, Scope};
use swirl_model::workflow::{ActionId, Body, ListId, StateKind, Workflow};

/// Names the scopes of one instance, as far as their forks are known.
pub struct Names<'w> {
    workflow: &'w Workflow,
    /// The state that made a fork, by the scope and the number of the fork.
    forks: HashMap<(String, u32), Arc<str>>,
}

/// What a part of a path leads to.
struct Within {
    state: Arc<str>,
    list: Option<ListId>,
}

impl<'w> Names<'w> {
    pub fn new(workflow: &'w Workflow) -> Names<'w> {
        Names {
            workflow,
            forks: HashMap::new(),
        }
    }

    /// Learns the forks in a history.
    pub fn learn(&mut self, entries: &[HistoryEntry]) {
        for entry in entries {
            if let Event::Forked {
                fork,
                in_state: Some(state),
                ..
            } = &entry.event
            {
                let key = (entry.scope.as_str().to_owned(), *fork);
                self.forks.insert(key, state.clone());
            }
        }
    }

    /// Learns the fork that a running scope belongs to.
    pub fn learn_scope(&mut self, scope: &Scope) {
        let states = &self.workflow.states;
        let state = match scope.role {
            Role::Branch { state, .. }
            | Role::Iteration { state, .. }
            | Role::Apart { state, .. }
            | Role::Entry { state, .. } => states.get(state.0 as usize),
            Role::Action { list, .. } => {
                let mut states = states.iter();
                states.find(|state| state.kind.action_lists().contains(&list))
            }
            Role::Root | Role::Detached { .. } => None,
        };
        if let (Some(state), Some((outer, fork, _))) = (state, split(scope.id.as_str())) {
            self.forks
                .insert((outer.to_owned(), fork), state.name.clone());
        }
    }

    /// Whether the name of a scope needs a fork that is not known yet.
    pub fn lacks(&self, scope: &ScopeId) -> bool {
        let mut id = scope.as_str();
        while let Some((outer, fork, _)) = split(id) {
            if !self.forks.contains_key(&(outer.to_owned(), fork)) {
                return true;
            }
            id = outer;
        }
        false
    }

    /// The name of a scope; `None` for the main flow, and if it is not known.
    pub fn name_of(&self, scope: &ScopeId) -> Option<String> {
        let mut forks = Vec::new();
        let mut id = scope.as_str();
        while let Some((outer, fork, index)) = split(id) {
            forks.push((outer, fork, index));
            id = outer;
        }
        let mut parts = Vec::new();
        let mut within: Option<Within> = None;
        for (outer, fork, index) in forks.into_iter().rev() {
            let state = self.forks.get(&(outer.to_owned(), fork))?;
            let (text, next) = self.part(state, index, within.as_ref());
            parts.push(text);
            within = Some(next);
        }
        (!parts.is_empty()).then(|| parts.join(" / "))
    }

    fn part(&self, name: &Arc<str>, index: u32, within: Option<&Within>) -> (String, Within) {
        // A branch forks within its own state only for parallel actions.
        let inner = within.filter(|within| within.state == *name);
        let mut states = self.workflow.states.iter();
        let state = states.find(|state| state.name == *name);
        let next = |list| Within {
            state: name.clone(),
            list,
        };
        let list = match (state.map(|state| &state.kind), inner) {
            (_, Some(inner)) => inner.list,
            (Some(StateKind::Parallel(parallel)), None) => {
                if let Some(branch) = parallel.awaited(index) {
                    let text = format!("{name} / {}", branch.name);
                    return (text, next(list_of(&branch.body)));
                }
                None
            }
            (Some(StateKind::Foreach(foreach)), None) => {
                return (format!("{name}[{index}]"), next(list_of(&foreach.body)));
            }
            (Some(StateKind::Operation(list)), None) => Some(*list),
            _ => None,
        };
        let action = list.and_then(|list| self.action(list, index));
        let text = match (action, inner) {
            (Some(action), Some(_)) => action,
            (Some(action), None) => format!("{name} / {action}"),
            (None, Some(_)) => format!("#{index}"),
            (None, None) => format!("{name} / #{index}"),
        };
        (text, next(None))
    }

    fn action(&self, list: ListId, index: u32) -> Option<String> {
        let list = self.workflow.lists.get(list.0 as usize)?;
        let ActionId(id) = list.actions.get(index as usize)?;
        self.workflow
            .action_name(self.workflow.actions.get(*id as usize)?)
    }
}

fn list_of(body: &Body) -> Option<ListId> {
    match body {
        Body::Actions(list) => Some(*list),
        Body::Flow(_) => None,
    }
}

/// The scope around a branch, its fork, and its place in it.
pub(crate) fn split(id: &str) -> Option<(&str, u32, u32)> {
    let mut parts = id.rsplitn(3, '.');
    let index = parts.next()?.parse().ok()?;
    let fork = parts.next()?.parse().ok()?;
    Some((parts.next()?, fork, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn branches_and_iterations_have_names() {
        let samples = sample::all();
        let (_, workflow) = samples.iter().find(|(name, _)| *name == "order").unwrap();
        let mut names = Names::new(workflow);
        let forked = |scope: &str, fork, state: &str| HistoryEntry {
            at: swirl_model::time::Timestamp(0),
            scope: ScopeId::new(scope),
            event: Event::Forked {
                fork,
                branches: 2,
                in_state: Some(state.into()),
            },
            data: None,
            data_until: None,
        };
        let of = |names: &Names<'_>, scope: &str| names.name_of(&ScopeId::new(scope));
        assert!(names.lacks(&ScopeId::new("r.3.1")));
        assert_eq!(of(&names, "r.3.1"), None);
        assert_eq!(of(&names, "r"), None);
        names.learn(&[
            forked("r", 3, "Fork"),
            forked("r.3.1", 2, "Fork"),
            forked("r", 4, "Each"),
            forked("r", 5, "Reserve"),
        ]);
        assert!(!names.lacks(&ScopeId::new("r.3.1")));
        for (scope, name) in [
            ("r.3.1", "Fork / Parcel"),
            ("r.3.1.2.1", "Fork / Parcel / track"),
            ("r.4.7", "Each[7]"),
            ("r.5.1", "Reserve / chargeCard"),
        ] {
            assert_eq!(of(&names, scope).as_deref(), Some(name));
        }
    }
}
