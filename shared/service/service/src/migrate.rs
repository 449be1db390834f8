//! Moves instances to other versions of their definitions.

use std::sync::Arc;

use swirl_engine::{Definition, Misfit};
use swirl_model::event::{Command, Event, HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::{Header, Status};
use swirl_model::scope::{Fork, Scope};
use swirl_model::time::Timestamp;
use swirl_ports::{InboxItem, Migrated, Migration, Whole};

use crate::{Error, Operator, Service, Unfit};

/// The number of attempts to move a busy instance, and the pause before the second attempt. Each further pause is twice
/// as long; together they are three quarters of a second.
const LOOKS: u32 = 5;
const PAUSE_MS: u64 = 50;

/// The version that instances are moved to.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    pub version: &'a str,
    /// The state at which a faulted instance continues ([`Action::Rerun`](crate::Action::Rerun)). The place where it
    /// failed need not exist in the other version.
    pub state: Option<&'a str>,
    /// See [`Service::operate_once`].
    pub mark: Option<&'a str>,
}

/// The versions that an instance was moved from and to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub from: Arc<str>,
    pub to: Arc<str>,
}

impl Service {
    /// Moves an instance to another version of its definition. No scope of it may run at that moment: if one is being
    /// driven, the move is retried for a short time.
    ///
    /// # Errors
    /// The store failed, or one of the definitions cannot be read.
    pub async fn migrate(
        &self,
        id: &InstanceId,
        target: Target<'_>,
        operator: &Operator,
    ) -> Result<Result<Moved, Unfit>, Error> {
        let mut pause = PAUSE_MS;
        let mut busy = Unfit::Busy("it changes faster than it can be moved".to_owned());
        for look in 0..LOOKS {
            if look > 0 {
                let until = self.clock.now().plus_ms(pause);
                self.clock.sleep_until(until).await;
                pause *= 2;
            }
            let Some(whole) = self.store.whole(id).await? else {
                return Ok(Err(Unfit::Unknown));
            };
            let planned = match self.plan(&whole, target.version, target.state).await? {
                Ok(planned) => planned,
                Err(unfit @ Unfit::Busy(_)) => {
                    busy = unfit;
                    continue;
                }
                Err(unfit) => {
                    // This very action may have moved it before. The mark is read after the instance.
                    if let Some(mark) = target.mark
                        && self.store.is_marked(id, mark).await?
                    {
                        let version = whole.header.definition.version.clone();
                        return Ok(Ok(Moved {
                            from: version.clone(),
                            to: version,
                        }));
                    }
                    return Ok(Err(unfit));
                }
            };
            let moved = Moved {
                from: whole.header.definition.version.clone(),
                to: planned.header.definition.version.clone(),
            };
            let migration = Migration {
                header: planned.header,
                scopes: planned.scopes,
                forks: planned.forks,
                inbox: planned.inbox,
                entry: self.migrated(&moved, operator),
                mark: target.mark.map(str::to_owned),
                read: whole.read,
            };
            match self.store.migrate(id, migration).await? {
                Migrated::Done(wake) => {
                    self.queue.push(wake).await;
                    return Ok(Ok(moved));
                }
                Migrated::Known => return Ok(Ok(moved)),
                Migrated::Unknown => return Ok(Err(Unfit::Unknown)),
                Migrated::Changed => {}
            }
        }
        Ok(Err(busy))
    }

    /// Checks whether an instance could be moved as it is now, and changes nothing.
    ///
    /// # Errors
    /// As for [`Service::migrate`].
    pub async fn would_migrate(
        &self,
        id: &InstanceId,
        version: &str,
        state: Option<&str>,
    ) -> Result<Result<Moved, Unfit>, Error> {
        let Some(whole) = self.store.whole(id).await? else {
            return Ok(Err(Unfit::Unknown));
        };
        let planned = self.plan(&whole, version, state).await?;
        Ok(planned.map(|planned| Moved {
            from: whole.header.definition.version.clone(),
            to: planned.header.definition.version,
        }))
    }

    async fn plan(
        &self,
        whole: &Whole,
        version: &str,
        state: Option<&str>,
    ) -> Result<Result<Planned, Unfit>, Error> {
        let header = &whole.header;
        if whole.status.ended() && whole.status != Status::Faulted {
            let word = whole.status.as_str();
            let reason = format!("the instance has ended: it is {word}");
            return Ok(Err(Unfit::Status(reason)));
        }
        let workflow = &header.definition.workflow;
        let to = match self.registry.resolve(workflow, Some(version)).await? {
            Ok(to) => to,
            Err(unknown) => return Ok(Err(Unfit::Version(unknown.to_string()))),
        };
        if to.id == header.definition {
            let reason = format!("the instance runs with {} already", to.id);
            return Ok(Err(Unfit::Status(reason)));
        }
        let from = self.registry.get(&header.definition).await?;
        let planned = match planned(whole, (&from, &to), state, self.clock.now()) {
            Ok(planned) => planned,
            Err(misfit) => return Ok(Err(Unfit::Misfit(misfit.to_string()))),
        };
        Ok(match busy(whole) {
            Some(reason) => Err(Unfit::Busy(reason)),
            None => Ok(planned),
        })
    }

    fn migrated(&self, moved: &Moved, operator: &Operator) -> HistoryEntry {
        HistoryEntry {
            at: self.clock.now(),
            scope: ScopeId::root(),
            event: Event::Operated {
                action: "migrate".into(),
                by: operator.name.clone(),
                reason: operator.reason.clone(),
                state: None,
                from: Some(moved.from.to_string()),
                to: Some(moved.to.to_string()),
                batch: operator.batch.clone(),
                with: None,
            },
            data: None,
            data_until: None,
        }
    }
}

/// An instance converted to the other version.
struct Planned {
    header: Header,
    scopes: Vec<(Scope, Vec<Command>)>,
    forks: Vec<Fork>,
    inbox: Vec<(ScopeId, InboxItem)>,
}

/// Converts all parts of an instance, or fails.
fn planned(
    whole: &Whole,
    (from, to): (&Arc<Definition>, &Arc<Definition>),
    state: Option<&str>,
    now: Timestamp,
) -> Result<Planned, Misfit> {
    let mut migration = swirl_engine::Migration::new(from, to, now)?;
    if let Some(state) = state {
        migration = migration.continuing_at(state)?;
    }
    let header = migration.header(&whole.header)?;
    let scopes = whole.scopes.iter();
    let scopes = scopes.map(|scope| migration.scope(&header, scope));
    let forks = whole.forks.iter().map(|fork| migration.fork(fork));
    let inbox = whole.inbox.iter().map(|(scope, item)| {
        let item = InboxItem {
            id: item.id.clone(),
            input: migration.input(&item.input)?,
        };
        Ok((scope.clone(), item))
    });
    Ok(Planned {
        scopes: scopes.collect::<Result<_, _>>()?,
        forks: forks.collect::<Result<_, _>>()?,
        inbox: inbox.collect::<Result<_, _>>()?,
        header,
    })
}

/// The reason why an instance cannot be moved at this moment.
fn busy(whole: &Whole) -> Option<String> {
    let answered = |scope: &Scope, call: u32| {
        whole.inbox.iter().any(|(to, item)| match item.input {
            Input::CallDone { call: of, .. } | Input::CallFailedMeanwhile { call: of, .. } => {
                *to == scope.id && of == call
            }
            _ => false,
        })
    };
    let mut scopes = whole.scopes.iter();
    let calls = scopes.any(|scope| {
        let call = scope.pending_call();
        call.is_some_and(|call| !answered(scope, call))
    });
    let reason = if calls {
        "a function call is under way in it: suspend it, and move it when the call has been answered"
    } else if !whole.held.is_empty() {
        "a worker is working on it"
    } else if whole.inbox.iter().any(|(_, item)| item.input.is_operator()) {
        "another operator action has to be carried out first"
    } else if whole.forks.iter().any(|fork| fork.closed) {
        "branches of it are being cancelled"
    } else {
        return None;
    };
    Some(reason.to_owned())
}
