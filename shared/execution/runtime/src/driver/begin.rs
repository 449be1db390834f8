//! Makes a run of a scope that was read.

use std::sync::Arc;

use swirl_engine::{Definition, branch_scope};
use swirl_model::ids::ScopeRef;
use swirl_model::instance::Header;
use swirl_model::redact::Redactor;
use swirl_ports::execution::Record;
use swirl_ports::{Held, InboxItem};

use super::join::only_joins;
use super::record::Recorder;
use super::{Driver, Run};
use crate::Error;

impl Driver {
    pub(super) async fn begin(&self, mut held: Held) -> Result<Run, Error> {
        let header = held.header.clone();
        self.name_in_log(&header);
        let def = self.registry.get(&header.definition).await?;
        self.read_large_joins(&mut held).await?;
        let scope = match held.record {
            Record::Scope(scope) => scope,
            Record::Branch { fork, index } => branch_scope(&def, &fork, index),
        };
        if !def.fits(&scope) {
            let damaged = swirl_ports::Error::Damaged {
                what: held.lease.scope.to_string(),
                reason: format!(
                    "it names something that its definition {} lacks",
                    header.definition
                ),
            };
            return Err(damaged.into());
        }
        fit(&def, &header, &held.lease.scope, &held.inbox)?;
        let recording = self.recording_of(&def);
        let own = def.workflow.keep_data_ms;
        let own = own.filter(|_| self.settings.own_recording);
        let keep_ms = own.or(self.settings.keep_data_ms);
        let secrets = self.secrets_of(&def).await;
        Ok(Run {
            inbox: held.inbox.into(),
            closed: held.closed,
            redactor: Arc::new(Redactor::of(&secrets)),
            recorder: Recorder {
                recording,
                bytes_max: self.settings.recorded_bytes_max,
                keep_ms,
                recent_max: self.settings.recent_calls_max,
            },
            secrets,
            ..Run::new(def, header, held.lease, scope)
        })
    }

    /// Like `begin`. `None` means that a coordinator takes the next turn; it has been sent a message.
    pub(super) async fn begin_unless_left(&self, held: Held) -> Result<Option<Run>, Error> {
        let may = self.settings.coordinators_join && !held.large_joins.is_empty();
        if may && only_joins(&held) {
            let def = self.registry.get(&held.header.definition).await?;
            if self.leaves_joins(&def) {
                self.leave_joins(vec![held.lease.scope]).await;
                return Ok(None);
            }
        }
        self.begin(held).await.map(Some)
    }
}

/// Checks that the inputs refer only to parts that the definition has.
pub(super) fn fit(
    def: &Definition,
    header: &Header,
    scope: &ScopeRef,
    items: &[InboxItem],
) -> Result<(), Error> {
    match items.iter().find(|item| !def.fits_input(&item.input)) {
        None => Ok(()),
        Some(item) => Err(Error::Store(swirl_ports::Error::Damaged {
            what: format!("{} in the inbox of {scope}", item.id),
            reason: format!(
                "it names something that its definition {} lacks",
                header.definition
            ),
        })),
    }
}
