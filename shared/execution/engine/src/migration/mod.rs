//! Moves an instance to another version of its definition.
//!
//! Records refer to states, actions, events and paths by number, and another version has other numbers. So each part is
//! looked up by name in the new version: a state by its flow and name, a task of DSL 1.0 by the names of the tasks
//! around it and its own (`frames.rs`), an action by its name within its list (or else
//! by its function, event or sub-workflow), a branch by its name, an entry of an event state by its events. If a part
//! was removed, or was changed into something else while the instance is in the middle of it, that is a [`Misfit`]; the
//! mapping never guesses.
//!
//! The position stays the same: completed work is not repeated, even if the new version does it differently. Running
//! timers keep their time, and timers that the new version lacks end. Waits for events follow the new version
//! (`waits.rs`). Search attributes that the new version doesn't declare with the same type are dropped, and new ones
//! get values when the next state ends.

mod frames;
mod lookup;
mod names;
mod position;
mod runs;
mod waits;

use std::fmt;
use std::sync::Arc;

use swirl_model::event::{Command, Event, Input};
use swirl_model::instance::Header;
use swirl_model::scope::{BranchResult, Compensation, Fork, ForkOrigin, Merge, Role, Scope};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{EventId, StateId, Workflow};

use crate::definition::Definition;
use crate::scope::apply::apply;
use crate::scope::instance::version_of;

use self::names::Names;

/// The reason why an instance doesn't fit another version. The text names only parts of the definition and nothing from
/// the instance, so many instances share the same reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{0}")]
pub struct Misfit(pub String);

type Fits<T> = Result<T, Misfit>;

fn misfit<T>(text: fmt::Arguments<'_>) -> Fits<T> {
    Err(Misfit(text.to_string()))
}

/// A mapping from one version of a definition to another.
pub struct Migration<'a> {
    from: &'a Arc<Definition>,
    to: &'a Arc<Definition>,
    names: Names,
    now: Timestamp,
    /// The state at which the instance continues.
    at: Option<StateId>,
}

impl<'a> Migration<'a> {
    /// # Errors
    /// They are versions of different workflows.
    pub fn new(
        from: &'a Arc<Definition>,
        to: &'a Arc<Definition>,
        now: Timestamp,
    ) -> Fits<Migration<'a>> {
        let (was, is) = (&from.workflow.id, &to.workflow.id);
        if was != is {
            return misfit(format_args!("'{was}' and '{is}' are different workflows"));
        }
        if from.workflow.tasks.is_some() != to.workflow.tasks.is_some() {
            return misfit(format_args!(
                "only one of the versions is of DSL 1.0: no instance can be moved between them"
            ));
        }
        Ok(Migration {
            from,
            to,
            names: Names::new(&from.workflow, &to.workflow),
            now,
            at: None,
        })
    }

    /// Lets a faulted instance continue at this state of the new version, wherever it failed.
    ///
    /// # Errors
    /// The new version has no such state.
    pub fn continuing_at(mut self, state: &str) -> Fits<Migration<'a>> {
        let found = self.to.workflow.state_by_name(Workflow::ROOT, state);
        if found.is_none() {
            let version = self.version();
            let what = self.word();
            return misfit(format_args!("{what} '{state}' does not exist in {version}"));
        }
        self.at = found;
        Ok(self)
    }

    /// The instance's header with the new version.
    ///
    /// # Errors
    /// The header refers to something that the new version lacks.
    pub fn header(&self, header: &Header) -> Fits<Header> {
        let before = header.timeout.as_ref();
        let before = before.and_then(|timeout| timeout.run_before.as_deref());
        if let Some(state) = before
            && self
                .to
                .workflow
                .state_by_name(Workflow::ROOT, state)
                .is_none()
        {
            return misfit(format_args!(
                "state '{state}', which its timeout runs, does not exist in {}",
                self.version()
            ));
        }
        let mut header = Header {
            definition: self.to.id.clone(),
            ..header.clone()
        };
        match version_of(self.to, &header, self.now) {
            Ok(version) => header.version = version,
            Err(error) => {
                return misfit(format_args!(
                    "the expression for the version fails: {}",
                    error.message
                ));
            }
        }
        Ok(header)
    }

    /// The scope in the new version, and the effects on its timers, waits and search attributes. `header` already has
    /// the new version.
    ///
    /// # Errors
    /// The scope refers to something that the new version lacks.
    pub fn scope(&self, header: &Header, scope: &Scope) -> Fits<(Scope, Vec<Command>)> {
        if scope.ended() {
            return Ok((scope.clone(), Vec::new()));
        }
        if !self.from.fits(scope) {
            return misfit(format_args!("its records don't fit its own version"));
        }
        let compensation = scope.compensation.as_ref();
        let mut new = Scope {
            role: self.role(scope.role)?,
            // Of several tasks that are missing, the outermost is named.
            frames: self.frames(scope)?,
            cursor: self.cursor(scope)?,
            params: match self.continues_elsewhere(scope) {
                true => Vec::new(),
                false => scope.params.clone(),
            },
            extended: scope
                .extended
                .as_deref()
                .map(|task| self.extended(task).map(Box::new))
                .transpose()?,
            start_events: scope
                .start_events
                .iter()
                .map(|start| {
                    let mut start = start.clone();
                    start.def = self.event(EventId(start.def))?.0;
                    Ok(start)
                })
                .collect::<Fits<_>>()?,
            merges: self.merges(&scope.merges)?,
            completed: scope
                .completed
                .iter()
                .map(|id| self.state(*id))
                .collect::<Fits<_>>()?,
            compensation: compensation
                .map(|open| self.compensation(open))
                .transpose()?,
            ..scope.clone()
        };
        let mut commands = Vec::new();
        self.settle_timers(header, &mut new, &mut commands);
        self.settle_waits(header, scope, &mut new, &mut commands)?;
        self.settle_listens(scope, &new, &mut commands);
        if new.id.is_root() {
            self.settle_attributes(&mut new, &mut commands);
        }
        if !self.to.fits(&new) {
            return misfit(format_args!(
                "its records name something that {} lacks",
                self.version()
            ));
        }
        Ok((new, commands))
    }

    /// The fork in the new version, with the results of its branches.
    ///
    /// # Errors
    /// The fork refers to something that the new version lacks.
    pub fn fork(&self, fork: &Fork) -> Fits<Fork> {
        let origin = match fork.origin {
            ForkOrigin::Parallel(id) => {
                self.same_branches(id)?;
                ForkOrigin::Parallel(self.state(id)?)
            }
            ForkOrigin::Foreach(id) => ForkOrigin::Foreach(self.state_of_kind(id)?),
            ForkOrigin::Actions(list) => {
                self.same_actions(list)?;
                ForkOrigin::Actions(self.list(list)?)
            }
            ForkOrigin::Entry(id, entry) => {
                ForkOrigin::Entry(self.state_of_kind(id)?, self.entry(id, entry)?)
            }
            ForkOrigin::Apart(id, index) => {
                ForkOrigin::Apart(self.state_of_kind(id)?, self.apart(id, index)?)
            }
        };
        let results = fork.results.iter();
        let results = results.map(|(index, result)| Ok((*index, self.result(result)?)));
        Ok(Fork {
            origin,
            results: results.collect::<Fits<_>>()?,
            ..fork.clone()
        })
    }

    /// A pending input, in the new version.
    ///
    /// # Errors
    /// The input refers to something that the new version lacks.
    pub fn input(&self, input: &Input) -> Fits<Input> {
        let mut input = input.clone();
        match &mut input {
            Input::Joined { results, .. } => {
                for (_, result) in results {
                    *result = self.result(result)?;
                }
            }
            // An event that nothing waits for any more becomes available to the instance's other waits.
            Input::Event { def, .. } => {
                *def = self.names.event(*def).unwrap_or(EventId(u32::MAX));
            }
            _ => {}
        }
        Ok(input)
    }

    fn role(&self, role: Role) -> Fits<Role> {
        Ok(match role {
            Role::Root => Role::Root,
            Role::Branch { state, index } => {
                self.same_branches(state)?;
                Role::Branch {
                    state: self.state(state)?,
                    index,
                }
            }
            Role::Iteration { state, index } => Role::Iteration {
                state: self.state_of_kind(state)?,
                index,
            },
            Role::Entry { state, entry } => Role::Entry {
                state: self.state_of_kind(state)?,
                entry: self.entry(state, entry)?,
            },
            Role::Apart { state, index } => Role::Apart {
                state: self.state_of_kind(state)?,
                index: self.apart(state, index)?,
            },
            Role::Action { list, index } => {
                self.same_actions(list)?;
                Role::Action {
                    list: self.list(list)?,
                    index,
                }
            }
            Role::Detached { list, index } => {
                let (list, index) = self.action(list, index as u16)?;
                Role::Detached {
                    list,
                    index: u32::from(index),
                }
            }
        })
    }

    fn result(&self, result: &BranchResult) -> Fits<BranchResult> {
        let fits = match result {
            BranchResult::Done { merges, .. } => self.from.fits_merges(merges),
            BranchResult::Left { way, .. } => self.from.fits_way(*way),
            BranchResult::Failed(_)
            | BranchResult::Lost { .. }
            | BranchResult::Terminated { .. } => true,
        };
        if !fits {
            return misfit(format_args!("its records don't fit its own version"));
        }
        let mut result = result.clone();
        match &mut result {
            BranchResult::Done { merges, .. } => *merges = self.merges(merges)?,
            BranchResult::Left { way, .. } => *way = self.way(*way)?,
            BranchResult::Failed(_)
            | BranchResult::Lost { .. }
            | BranchResult::Terminated { .. } => {}
        }
        Ok(result)
    }

    fn merges(&self, merges: &[Merge]) -> Fits<Vec<Merge>> {
        let merges = merges.iter().map(|merge| {
            let lost = |text: &str| {
                Misfit(format!(
                    "a result that is not merged yet goes through '{text}', which {} doesn't have",
                    self.version()
                ))
            };
            let to = merge.to.map(|id| {
                let text = &self.from.workflow[id].text;
                self.names.path(id).ok_or_else(|| lost(text))
            });
            let output = merge.output.map(|id| {
                let text = &self.from.workflow[id].text;
                self.names.expression(id).ok_or_else(|| lost(text))
            });
            Ok(Merge {
                to: to.transpose()?,
                output: output.transpose()?,
                ..merge.clone()
            })
        });
        merges.collect()
    }

    fn compensation(&self, open: &Compensation) -> Fits<Compensation> {
        let left = open.left.iter().map(|id| self.state(*id));
        Ok(Compensation {
            left: left.collect::<Fits<_>>()?,
            then: self.way(open.then)?,
            of: open.of.map(|id| self.state(id)).transpose()?,
            purpose: open.purpose,
        })
    }

    fn settle_attributes(&self, scope: &mut Scope, commands: &mut Vec<Command>) {
        let declared = &self.to.workflow.search;
        let mut values = scope.attributes.clone();
        values.retain(|name, value| {
            let mut declared = declared.iter();
            declared.any(|one| one.name == *name && one.kind == value.kind())
        });
        let mut left_out = scope.left_out.clone();
        left_out.retain(|name| declared.iter().any(|one| one.name == *name));
        if values != scope.attributes {
            commands.push(Command::Index);
        }
        apply(scope, &Event::Indexed { values, left_out });
    }
}
