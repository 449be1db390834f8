//! The creation of instances, and with it their first turn, if it has been taken already. Both are one commit of a scope
//! that nothing is stored about yet (`plan.rs`): the only guard is that there is no such instance.

use futures::future::try_join;
use redis::{Cmd, Value};
use swirl_commit::CommitParts;
use swirl_model::event::{Command, Input};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{EndStatus, Header};
use swirl_model::scope::Scope;
use swirl_ports::{
    Commit, Committed, Created, Error, ExecutionStore, InboxItem, InstanceKey, NewRecords, Result,
};

use crate::Redis;
use crate::connect::damaged;
use crate::creation::Creation;
use crate::events::Begun;
use crate::keys::Span;
use crate::plan_input::Unplanned;
use crate::record::encode;
use crate::reply::json;
use crate::retention;
use crate::script::{Lazy, Script};
use crate::snapshot::Snapshot;
use crate::write::Planned;

static CHILD: Lazy = Lazy::new(|| Script::of_instance(&[include_str!("lua/child.lua")]));

/// How often a creation is tried, if the instance keeps appearing and disappearing.
const ATTEMPTS_MAX: u32 = 8;

/// A new instance without its first turn.
struct New {
    header: Header,
    root: Scope,
    watched: bool,
}

impl Redis {
    pub(crate) async fn create_instance(&self, new: NewRecords) -> Result<Created> {
        let NewRecords {
            header,
            root,
            ends_with_parent,
            watched,
            first_turn,
        } = new;
        let (id, parent) = (header.id.clone(), header.parent.clone());
        let new = New {
            header,
            root,
            watched,
        };
        let (mut created, correlates) = self.create_with_events(&new, first_turn).await?;
        // Even if it exists, since a crash may have occurred before the steps that follow its creation.
        if created == (Created::Exists { conflict: true }) {
            return Ok(created);
        }
        if matches!(created, Created::Exists { .. }) && correlates {
            self.reindex(&id, &mut Vec::new()).await?;
        }
        if ends_with_parent
            && let Some(parent) = parent
            && self.follow(&id, &parent.scope.instance).await?
            && let Created::WithTurn { wake, .. } = &mut created
        {
            wake.push(ScopeRef::root(id));
        }
        Ok(created)
    }

    /// Also returns whether the instance begins with a correlation.
    async fn create_with_events(
        &self,
        new: &New,
        first_turn: Option<Box<Commit>>,
    ) -> Result<(Created, bool)> {
        if let Some(turn) = first_turn {
            let created = match turn.scope.ended() {
                true => self.create_ended(new, *turn).await,
                false => self.create_begun(new, Some(*turn)).await,
            };
            match created {
                Ok(Some(created)) => return Ok(created),
                // The worker that takes the turn instead can report that it is too large.
                Ok(None) | Err(Error::TooLarge { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let created = self.create_begun(new, None).await?;
        created.ok_or_else(|| damaged(new.header.id.to_string(), "it cannot be created"))
    }

    async fn create_ended(&self, new: &New, turn: Commit) -> Result<Option<(Created, bool)>> {
        let (id, events) = (&new.header.id, &new.root.start_events);
        // Nothing of what its events say about it matters any more.
        let begun = Begun::default();
        let created = self.create_once(new, Some(turn), &begun);
        let (created, are_kept) = try_join(created, self.are_kept(events)).await?;
        if created.is_some() && are_kept {
            self.started(id, events, false).await?;
        }
        Ok(created.map(|created| (created, false)))
    }

    async fn create_begun(
        &self,
        new: &New,
        turn: Option<Commit>,
    ) -> Result<Option<(Created, bool)>> {
        let events = &new.root.start_events;
        let begun = self.begun(&new.header, events);
        let (mut begun, are_kept) = try_join(begun, self.are_kept(events)).await?;
        if are_kept {
            self.add_kept(&mut begun, events).await?;
        }
        let correlates = !begun.correlation.is_empty();
        let Some(mut created) = self.create_once(new, turn, &begun).await? else {
            return Ok(None);
        };
        if are_kept {
            let woken = self.started(&new.header.id, events, correlates).await?;
            if let Created::WithTurn { wake, .. } = &mut created {
                wake.extend(woken);
            }
        }
        Ok(Some((created, correlates)))
    }

    /// Returns `None` if the first turn can't take effect.
    async fn create_once(
        &self,
        new: &New,
        turn: Option<Commit>,
        begun: &Begun,
    ) -> Result<Option<Created>> {
        let New { header, root, .. } = new;
        let id = &header.id;
        let has_turn = turn.is_some();
        // Timers that were armed when the instance began.
        let armed = root.timers.iter().cloned().map(Command::Arm);
        let commit = match turn {
            Some(mut turn) => {
                turn.commands.splice(0..0, armed);
                turn.scope.rev = root.rev + 1;
                turn
            }
            None => {
                let (scope, armed) = (root.clone(), armed.collect());
                let begins = Commit::first(id.clone(), scope, vec![], armed, header.started_at);
                // The size is checked by the first turn, which can report it.
                Commit {
                    fits: true,
                    ..begins
                }
            }
        };
        let parts = CommitParts::of(&commit);
        let makes_others = !parts.forks.is_empty() || !parts.detached.is_empty();
        if parts.has_end() && makes_others {
            // The end of its other scopes isn't planned.
            return Ok(None);
        }
        let known = Snapshot::of_new(root, self.creation(new, begun)?);
        for _ in 0..ATTEMPTS_MAX {
            let planned = self.planned(&commit, &parts, &known, root.rev, self.attempt())?;
            let Planned {
                script,
                call,
                plan,
                effects,
            } = match planned {
                Ok(planned) => planned,
                Err(Unplanned::Answer(_)) if has_turn => return Ok(None),
                Err(Unplanned::Damaged(bad)) => return Err(damaged(id.to_string(), bad)),
                Err(Unplanned::Answer(_) | Unplanned::Unknown) => {
                    return Err(damaged(id.to_string(), "its creation cannot be planned"));
                }
            };
            if !plan.released {
                // The turn must be taken by a worker that holds the scope.
                return Ok(None);
            }
            let answer: Value = self.run(script, call).await?;
            let written = self.written(&commit, &parts, plan, effects, answer);
            match written.await? {
                Some(Committed::Done {
                    outbox,
                    mut wake,
                    joins,
                    ..
                }) if has_turn => {
                    wake.extend(joins);
                    return Ok(Some(Created::WithTurn { outbox, wake }));
                }
                Some(_) => return Ok(Some(Created::New)),
                None => {}
            }
            if let Some(conflict) = self.conflicts(header).await? {
                return Ok(Some(Created::Exists { conflict }));
            }
        }
        Err(Error::Unavailable(format!(
            "{id} appeared and disappeared while it was created"
        )))
    }

    fn creation(&self, new: &New, begun: &Begun) -> Result<Creation> {
        let header = &new.header;
        let limit = self.options().record_max;
        let correlation = begun.correlation.iter();
        let correlation = correlation.map(|(name, value)| (format!("c:{name}"), value.clone()));
        let born = begun.born.clone().filter(|_| !begun.correlation.is_empty());
        let born = born.map(|generation| ("B".to_owned(), generation));
        Ok(Creation {
            header: encode(header, || format!("instance {}", header.id), limit)?,
            workflow: header.definition.workflow.clone(),
            version: header.definition.version.clone(),
            key: header.key.clone().filter(|key| !key.is_empty()),
            retention: Some(retention::text(&header.retention)).filter(|text| !text.is_empty()),
            watcher: new.watched.then(|| self.process().to_owned()),
            named: InstanceKey::of(header).map(|key| self.named_key(&key)),
            started_at: header.started_at,
            consumed: begun.consumed.clone(),
            correlation: born
                .into_iter()
                .chain(correlation)
                .map(|(field, value)| ("c", field, value))
                .collect(),
        })
    }

    /// Whether the instance with this id is another one; `None` if there is none.
    async fn conflicts(&self, wanted: &Header) -> Result<Option<bool>> {
        let mut read = Cmd::new();
        read.arg("HGET")
            .arg(self.keys().hash_of(&wanted.id))
            .arg("h");
        let Some(found) = self.query::<Option<Vec<u8>>>(read).await? else {
            return Ok(None);
        };
        let found: Header = json(&found, &format!("instance {}", wanted.id))?;
        Ok(Some(
            found.input != wanted.input || found.definition.workflow != wanted.definition.workflow,
        ))
    }

    /// Records at the parent that the instance ends with it. If the parent has ended meanwhile, that ends the instance
    /// too: returns true.
    async fn follow(&self, child: &InstanceId, parent: &InstanceId) -> Result<bool> {
        let keys = self.keys().of(parent, Span::Ready);
        let mut call = self.call_instance(&CHILD, &keys, parent, None);
        call.arg(child.as_str());
        if self.run::<i64>(&CHILD, call).await? == 1 {
            return Ok(false);
        }
        let cancel = Input::Cancel {
            status: EndStatus::Terminated,
        };
        self.add_input(&ScopeRef::root(child.clone()), InboxItem::new(cancel))
            .await?;
        Ok(true)
    }
}
