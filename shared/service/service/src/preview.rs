//! What an operator's action would do to an instance, without doing it.

use swirl_model::Data;
use swirl_model::ids::InstanceId;
use swirl_ports::InstanceKey;

use crate::{Action, Error, Operation, Refusal, Service, Unfit};

/// An action that would be carried out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preview {
    /// The keys that would be taken again, each with its instance: this one, or one that failed with it. Only one
    /// instance can have a key.
    pub keys: Vec<(InstanceKey, InstanceId)>,
    /// The state data with which the instance would continue in place of what it has.
    pub data: Option<Replaced>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Replaced {
    pub before: Data,
    pub after: Data,
}

impl Service {
    /// Checks whether an operation could be carried out on an instance as it is now, and changes nothing.
    ///
    /// # Errors
    /// The store failed, or the definition cannot be read.
    pub async fn would(
        &self,
        id: &InstanceId,
        operation: &Operation,
    ) -> Result<Result<Preview, Refusal>, Error> {
        match operation {
            Operation::Act(action) => self.would_act(id, action).await,
            Operation::Migrate(version) => {
                let done = self.would_migrate(id, version, None).await?;
                Ok(done.map(|_| Preview::default()).map_err(Refusal::from))
            }
            Operation::Remove => {
                let reason = match self.store.instance(id).await? {
                    Some(instance) => self.not_removable(&instance).await?,
                    // It counts as removed.
                    None => None,
                };
                Ok(match reason {
                    None => Ok(Preview::default()),
                    Some(reason) => Err(reason.refusal(id)),
                })
            }
        }
    }

    /// Whether an operator's action on an instance has not been processed yet.
    ///
    /// # Errors
    /// The store failed.
    pub async fn is_ordered(&self, id: &InstanceId) -> Result<bool, Error> {
        let whole = self.store.whole(id).await?;
        Ok(whole.is_some_and(|whole| {
            let mut inbox = whole.inbox.iter();
            inbox.any(|(_, item)| item.input.is_operator())
        }))
    }

    async fn would_act(
        &self,
        id: &InstanceId,
        action: &Action,
    ) -> Result<Result<Preview, Refusal>, Error> {
        let Some(instance) = self.store.instance(id).await? else {
            return Ok(Err(Unfit::Unknown.into()));
        };
        let fitting = match self.would_fit(&instance, action).await? {
            Ok(fitting) => fitting,
            Err(unfit) => return Ok(Err(unfit.into())),
        };
        let mut preview = Preview::default();
        if action.revives() {
            let all = self.with_its_parents(&instance).await?;
            let keys = all.iter().filter_map(|one| {
                let key = InstanceKey::of(&one.header)?;
                Some((key, one.header.id.clone()))
            });
            preview.keys = keys.collect();
        }
        if let Action::Edit { data, .. } = fitting {
            let root = self.root(&instance).await?;
            preview.data = root.map(|root| Replaced {
                before: root.data,
                after: data,
            });
        }
        Ok(Ok(preview))
    }
}
