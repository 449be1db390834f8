//! An instance as it was at an earlier entry of its history. This is derived only from the entries, which contain no
//! state data, timers or correlation values.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use swirl_api::instance::{AwaitedEvent, ScopePosition};
use swirl_model::WorkflowError;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::ScopeId;
use swirl_model::instance::{EndStatus, Status};
use swirl_model::scope::Purpose;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{
    ActionKind, EventDef, EventId, EventState, State, StateId, StateKind, Workflow,
};

use crate::Names;

/// The status of an instance and the positions of its scopes, after some of its entries.
pub struct Rewound<'w> {
    workflow: &'w Workflow,
    pub status: Status,
    pub suspended: bool,
    pub ended_at: Option<Timestamp>,
    pub error: Option<WorkflowError>,
    scopes: BTreeMap<ScopeId, Seen<'w>>,
    names: Names<'w>,
}

/// A scope, as far as its entries describe it.
#[derive(Default)]
struct Seen<'w> {
    /// The name, even if the definition doesn't have this state.
    name: Option<Arc<str>>,
    state: Option<&'w State>,
    compensating: bool,
    doing: &'static str,
    action: Option<String>,
    attempt: u32,
    branches: u32,
    consumed: Vec<Arc<str>>,
    error: Option<WorkflowError>,
}

/// The time after one piece of work has ended and before the next one begins.
const GOING_ON: &str = "continuing";

impl<'w> Rewound<'w> {
    /// Processes the entries up to the requested one. If the first entries are no longer kept, scopes without later
    /// entries are missing.
    pub fn new(workflow: &'w Workflow, entries: &[HistoryEntry]) -> Rewound<'w> {
        let mut rewound = Rewound {
            workflow,
            status: Status::Running,
            suspended: false,
            ended_at: None,
            error: None,
            scopes: BTreeMap::new(),
            names: Names::new(workflow),
        };
        rewound.names.learn(entries);
        for entry in entries {
            rewound.replay(entry);
        }
        rewound
    }

    /// The scopes that had not ended.
    pub fn places(&self) -> Vec<ScopePosition> {
        let scopes = self.scopes.iter();
        scopes
            .map(|(id, seen)| ScopePosition {
                name: self.names.name_of(id),
                ..seen.place(self.workflow, id)
            })
            .collect()
    }

    /// The states in which scopes were, and whether they had failed there.
    pub(crate) fn here(&self) -> impl Iterator<Item = (&Arc<str>, bool)> {
        let scopes = self.scopes.values();
        scopes.filter_map(|seen| Some((seen.name.as_ref()?, seen.error.is_some())))
    }

    pub(crate) fn names(&self) -> &Names<'w> {
        &self.names
    }

    fn replay(&mut self, entry: &HistoryEntry) {
        let id = &entry.scope;
        match &entry.event {
            Event::StateEntered {
                state,
                name,
                purpose,
            } => self.enter(id, *state, name, *purpose),
            // A branch may have ended with it. If it continues, its next entry says so.
            Event::StateLeft { .. } => {
                self.end_branches(id, "");
                self.close(id, "ending");
            }
            Event::ActionStarted {
                action,
                attempt,
                in_state,
                ..
            } => {
                self.known_in(id, in_state.as_ref());
                let doing = self.doing(id, action, in_state.as_ref());
                let seen = self.scope_mut(id);
                (seen.doing, seen.attempt, seen.error) = (doing, *attempt, None);
                seen.action = Some(action.clone());
            }
            Event::ActionCompleted { .. } | Event::ActionSkipped { .. } => {
                match self.scope_mut(id).name.is_some() || id.is_root() {
                    true => self.continue_scope(id, GOING_ON),
                    // A branch of actions may have ended with it.
                    false => drop(self.scopes.remove(id)),
                }
            }
            Event::ActionFailed {
                error, retry_ms, ..
            } => {
                let seen = self.scope_mut(id);
                match retry_ms {
                    Some(_) => seen.doing = "waiting to retry",
                    None => seen.fail(error),
                }
            }
            Event::EventConsumed { name, .. } => {
                self.scope_mut(id).consumed.push(name.clone());
                self.continue_scope(id, GOING_ON);
            }
            Event::Forked {
                branches, in_state, ..
            } => {
                self.known_in(id, in_state.as_ref());
                let seen = self.scope_mut(id);
                seen.branches = seen.branches.max(*branches);
                self.continue_scope(id, GOING_ON);
            }
            Event::Joined { fork, .. } => {
                self.end_branches(id, &format!("{fork}."));
                self.scope_mut(id).branches = 0;
                self.continue_scope(id, GOING_ON);
            }
            Event::TimedOut { .. } | Event::ErrorHandled { .. } | Event::Compensating { .. } => {
                self.scope_mut(id).error = None;
                self.continue_scope(id, GOING_ON);
            }
            Event::BranchFailed { error } => self.scope_mut(id).fail(error),
            Event::Retried => {
                self.scope_mut(id).error = None;
                self.continue_scope(id, GOING_ON);
                if id.is_root() {
                    (self.status, self.ended_at, self.error) = (Status::Running, None, None);
                }
            }
            Event::CallRepeated { .. } => self.scope_mut(id).doing = "calling a function",
            Event::Operated { action, .. } => match &**action {
                "suspend" => self.suspended = true,
                "resume" => self.suspended = false,
                _ => {}
            },
            Event::StartRefused { .. } => {}
            Event::GivenUp { .. } => self.suspended = true,
            Event::Idle => {
                let idle = Seen {
                    doing: "kept active",
                    ..Seen::default()
                };
                self.scopes.insert(id.clone(), idle);
            }
            Event::Ended { status, error } => self.end(id, entry.at, *status, error.as_ref()),
            Event::InstanceStarted { .. } => self.scope_mut(id).doing = "starting",
            // These entries don't affect the position of a scope.
            _ => {}
        }
    }

    fn enter(&mut self, id: &ScopeId, state: StateId, name: &Arc<str>, purpose: Purpose) {
        self.end_branches(id, "");
        let own = self.workflow.states.get(state.0 as usize);
        let own = own.filter(|state| state.name == *name);
        let seen = Seen {
            name: Some(name.clone()),
            state: own.or_else(|| self.named(name)),
            compensating: purpose == Purpose::Compensation,
            ..Seen::default()
        };
        self.scopes.insert(id.clone(), seen);
        self.continue_scope(id, "beginning");
    }

    /// The entry with which the main flow entered this state is no longer kept.
    fn known_in(&mut self, id: &ScopeId, name: Option<&Arc<str>>) {
        let state = name.and_then(|name| self.named(name));
        let seen = self.scope_mut(id);
        if id.is_root() && seen.name.is_none() {
            (seen.name, seen.state) = (name.cloned(), state);
        }
    }

    fn named(&self, name: &Arc<str>) -> Option<&'w State> {
        let mut states = self.workflow.states.iter();
        states.find(|state| state.name == *name)
    }

    fn scope_mut(&mut self, id: &ScopeId) -> &mut Seen<'w> {
        self.scopes.entry(id.clone()).or_insert_with(|| Seen {
            doing: GOING_ON,
            ..Seen::default()
        })
    }

    fn end(
        &mut self,
        id: &ScopeId,
        at: Timestamp,
        status: EndStatus,
        error: Option<&WorkflowError>,
    ) {
        (self.status, self.ended_at) = (Status::from(status), Some(at));
        self.error = error.cloned();
        match (status, error) {
            // The instance may continue, so its scopes stay where they are.
            (EndStatus::Faulted, Some(error)) => self.scope_mut(id).fail(error),
            _ => self.scopes.clear(),
        }
    }

    /// Branches end with the state or the fork that began them. `of`: the part of their ids after the parent's id.
    fn end_branches(&mut self, parent: &ScopeId, of: &str) {
        let prefix = format!("{}.{of}", parent.as_str());
        self.scopes
            .retain(|id, _| !id.as_str().starts_with(&prefix));
    }

    fn close(&mut self, id: &ScopeId, doing: &'static str) {
        match id.is_root() {
            true => {
                let seen = self.scope_mut(id);
                (seen.doing, seen.action) = (doing, None);
            }
            false => drop(self.scopes.remove(id)),
        }
    }

    /// The scope continues its work. If its state waits for events next, so does the scope.
    fn continue_scope(&mut self, id: &ScopeId, doing: &'static str) {
        let workflow = self.workflow;
        let seen = self.scope_mut(id);
        seen.action = None;
        seen.doing = match seen.state.map(|state| &state.kind) {
            Some(StateKind::Sleep(_)) if doing == "beginning" => "sleeping",
            // It waits when its action is done.
            Some(StateKind::Callback(_)) if doing == "beginning" => doing,
            Some(kind) if !awaited(workflow, kind, &seen.consumed).is_empty() => {
                "waiting for events"
            }
            _ if seen.branches > 0 => "waiting for branches",
            _ => doing,
        };
    }

    /// Sets a scope's activity in the action with this name.
    fn doing(&self, id: &ScopeId, action: &str, name: Option<&Arc<str>>) -> &'static str {
        // A branch of actions belongs to a state of the scope that forked it.
        let mut around = Some(id.as_str());
        let mut state = name.and_then(|name| self.named(name));
        while let (None, Some(at)) = (state, around) {
            state = self
                .scopes
                .get(&ScopeId::new(at))
                .and_then(|seen| seen.state);
            around = at.rsplitn(3, '.').nth(2);
        }
        let actions = || {
            let all = self.workflow.actions.iter();
            all.filter(|one| self.workflow.action_name(one).as_deref() == Some(action))
        };
        let within = state.map(|state| format!("{}/", state.pointer));
        let own = within.and_then(|within| {
            let mut actions = actions();
            actions.find(|action| action.pointer.starts_with(&within))
        });
        match own.or_else(|| actions().next()).map(|action| &action.kind) {
            Some(ActionKind::Call(call)) if !call.detached => "calling a function",
            Some(ActionKind::Subflow(subflow)) if !subflow.detached => "waiting for a sub-workflow",
            Some(ActionKind::Event(event)) if event.consume.is_some() && !event.detached => {
                "waiting for an answer"
            }
            _ => GOING_ON,
        }
    }
}

impl Seen<'_> {
    fn fail(&mut self, error: &WorkflowError) {
        self.doing = "failed";
        self.error = Some(error.clone());
    }

    fn place(&self, workflow: &Workflow, id: &ScopeId) -> ScopePosition {
        let state = self.state.filter(|_| self.doing == "waiting for events");
        let events = state.map(|state| awaited(workflow, &state.kind, &self.consumed));
        ScopePosition {
            scope: id.to_string(),
            doing: self.doing.to_owned(),
            state: self.name.as_ref().map(ToString::to_string),
            compensating: self.compensating,
            action: self.action.clone(),
            attempt: self.action.as_ref().map(|_| self.attempt),
            branches: Some(self.branches).filter(|branches| *branches > 0),
            error: self.error.as_ref().map(Into::into),
            waits_for: events.into_iter().flatten().map(shown).collect(),
            ..ScopePosition::default()
        }
    }
}

/// The values of its correlation attributes aren't known.
fn shown(def: &EventDef) -> AwaitedEvent {
    let attributes = def.correlation.iter();
    let attributes = attributes.map(|one| (one.attribute.to_string(), Value::Null));
    AwaitedEvent {
        name: Some(def.name.to_string()),
        source: def.source.as_ref().map(ToString::to_string),
        kind: def.kind.as_ref().map(ToString::to_string),
        correlation: attributes.collect(),
    }
}

/// The events that a state still waits for after these have arrived.
fn awaited<'w>(
    workflow: &'w Workflow,
    kind: &StateKind,
    consumed: &[Arc<str>],
) -> Vec<&'w EventDef> {
    let ids = match kind {
        StateKind::Event(state) => of_entries(workflow, state, consumed),
        StateKind::SwitchEvents(switch) if consumed.is_empty() => {
            let conditions = switch.conditions.iter();
            conditions.map(|condition| condition.event).collect()
        }
        StateKind::Callback(callback) if consumed.is_empty() => vec![callback.event],
        _ => Vec::new(),
    };
    let mut found: Vec<&EventDef> = Vec::new();
    for id in ids {
        if let Some(def) = workflow.events.get(id.0 as usize)
            && !consumed.contains(&def.name)
            && !found.iter().any(|other| other.name == def.name)
        {
            found.push(def);
        }
    }
    found
}

fn of_entries(workflow: &Workflow, state: &EventState, consumed: &[Arc<str>]) -> Vec<EventId> {
    let came = |id: &EventId| {
        let def = workflow.events.get(id.0 as usize);
        def.is_some_and(|def| consumed.contains(&def.name))
    };
    let mut left = Vec::new();
    for entry in &state.entries {
        let arrived = |index: u16| entry.events.get(usize::from(index)).is_some_and(came);
        match entry.wait.holds(&arrived) {
            true if state.exclusive => return Vec::new(),
            true => {}
            false => left.extend(&entry.events),
        }
    }
    left
}

#[cfg(test)]
mod tests;
