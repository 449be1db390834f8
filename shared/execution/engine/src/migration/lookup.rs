//! Finds the parts of the former version in the new one.

use swirl_model::workflow::{Branch, EventId, ListId, Parallel, StateId, StateKind};

use super::names::name_of;
use super::{Fits, Migration, Misfit, misfit};
use crate::definition::Definition;

impl Migration<'_> {
    /// The new version's name in sentences.
    pub(super) fn version(&self) -> String {
        version(self.to)
    }

    /// Whether a state has the same kind as in the former version.
    fn is_same_kind(&self, was: &StateKind, is: &StateKind) -> bool {
        std::mem::discriminant(was) == std::mem::discriminant(is)
    }

    pub(super) fn event(&self, id: EventId) -> Fits<EventId> {
        self.names.event(id).ok_or_else(|| {
            let events = &self.from.workflow.events;
            let name = events.get(id.0 as usize).map_or("?", |event| &event.name);
            Misfit(format!(
                "event '{name}' does not exist in {}",
                self.version()
            ))
        })
    }

    pub(super) fn named(&self, id: StateId) -> &str {
        self.from
            .workflow
            .states
            .get(id.0 as usize)
            .map_or("?", |state| &state.name)
    }

    /// A task of DSL 1.0 is one of the same lists of tasks: its place is that of the tasks around it, by name.
    pub(super) fn state(&self, id: StateId) -> Fits<StateId> {
        self.names.state(id).ok_or_else(|| {
            let (what, name, version) = (self.word(), self.named(id), self.version());
            Misfit(format!("{what} '{name}' does not exist in {version}"))
        })
    }

    /// The language's word for a state.
    pub(super) fn word(&self) -> &'static str {
        match self.from.workflow.tasks {
            Some(_) => "task",
            None => "state",
        }
    }

    /// Finds the state, which must still have the same kind.
    pub(super) fn state_of_kind(&self, id: StateId) -> Fits<StateId> {
        let found = self.state(id)?;
        let (was, is) = (&self.from.workflow[id].kind, &self.to.workflow[found].kind);
        if self.is_same_kind(was, is) {
            return Ok(found);
        }
        misfit(format_args!(
            "{} '{}' is of type {} there, and of type {} in {}",
            self.word(),
            self.named(id),
            was.as_str(),
            is.as_str(),
            self.version()
        ))
    }

    pub(super) fn place_of_list(&self, list: ListId) -> String {
        let owner = self.names.owner(list);
        owner.map_or_else(String::new, |id| {
            format!("{} '{}'", self.word(), self.named(id))
        })
    }

    pub(super) fn list(&self, id: ListId) -> Fits<ListId> {
        let Some(found) = self.names.list(id) else {
            if let Some(owner) = self.names.owner(id) {
                self.state_of_kind(owner)?;
            }
            return misfit(format_args!(
                "{} has other branches or events in {}: the actions that the instance is at are not among theirs",
                self.place_of_list(id),
                self.version()
            ));
        };
        Ok(found)
    }

    fn names_in(&self, list: ListId) -> Vec<String> {
        let workflow = &self.from.workflow;
        let actions = workflow[list].actions.iter();
        actions
            .map(|id| name_of(workflow, &workflow[*id]))
            .collect()
    }

    fn names_in_new(&self, list: ListId) -> Vec<String> {
        let workflow = &self.to.workflow;
        let actions = workflow[list].actions.iter();
        actions
            .map(|id| name_of(workflow, &workflow[*id]))
            .collect()
    }

    /// Finds an action by name. The second action with a name maps to the second one with that name in the new version.
    pub(super) fn action(&self, list: ListId, index: u16) -> Fits<(ListId, u16)> {
        let found = self.list(list)?;
        let (was, is) = (self.names_in(list), self.names_in_new(found));
        let Some(name) = was.get(usize::from(index)) else {
            return misfit(format_args!(
                "{} has no such action",
                self.place_of_list(list)
            ));
        };
        let before = was[..usize::from(index)].iter();
        let nth = before.filter(|other| *other == name).count();
        let mut places = is.iter().enumerate().filter(|(_, other)| *other == name);
        match places.nth(nth) {
            Some((place, _)) => Ok((found, place as u16)),
            None => misfit(format_args!(
                "{} has no action '{name}' in {}",
                self.place_of_list(list),
                self.version()
            )),
        }
    }

    /// Parallel actions are numbered by position.
    pub(super) fn same_actions(&self, list: ListId) -> Fits<()> {
        let found = self.list(list)?;
        if self.names_in(list) == self.names_in_new(found) {
            return Ok(());
        }
        misfit(format_args!(
            "the parallel actions of {} are others in {}",
            self.place_of_list(list),
            self.version()
        ))
    }

    /// Branches are numbered by position among those that the state waits for.
    pub(super) fn same_branches(&self, id: StateId) -> Fits<()> {
        let found = self.state_of_kind(id)?;
        let (StateKind::Parallel(was), StateKind::Parallel(is)) =
            (&self.from.workflow[id].kind, &self.to.workflow[found].kind)
        else {
            return Ok(());
        };
        let names = |parallel: &Parallel| {
            let awaited = parallel.branches.iter().filter(|branch| branch.awaited);
            awaited
                .map(|branch| branch.name.clone())
                .collect::<Vec<_>>()
        };
        if names(was) == names(is) {
            return Ok(());
        }
        misfit(format_args!(
            "parallel state '{}' has other branches in {}",
            self.named(id),
            self.version()
        ))
    }

    pub(super) fn entry(&self, id: StateId, entry: u16) -> Fits<u16> {
        self.names
            .entry(id, entry)
            .ok_or_else(|| self.other_events(id))
    }

    pub(super) fn other_events(&self, id: StateId) -> Misfit {
        let (name, version) = (self.named(id), self.version());
        Misfit(format!(
            "state '{name}' waits for other events in {version}"
        ))
    }

    /// A branch that its state doesn't wait for.
    pub(super) fn apart(&self, id: StateId, index: u32) -> Fits<u32> {
        let found = self.state_of_kind(id)?;
        let (StateKind::Parallel(was), StateKind::Parallel(is)) =
            (&self.from.workflow[id].kind, &self.to.workflow[found].kind)
        else {
            return Ok(index);
        };
        let branch = was.branches.get(index as usize);
        let same = |other: &Branch| {
            !other.awaited && branch.is_some_and(|branch| branch.name == other.name)
        };
        match is.branches.iter().position(same) {
            Some(place) => Ok(place as u32),
            None => misfit(format_args!(
                "parallel state '{}' has other branches in {}",
                self.named(id),
                self.version()
            )),
        }
    }
}

/// `version 2`, or `the new version` if it has no version.
fn version(def: &Definition) -> String {
    match &*def.id.version {
        "" => "the new version".to_owned(),
        version => format!("version {version}"),
    }
}
