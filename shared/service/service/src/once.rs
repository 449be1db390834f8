//! Carries out an operator's action exactly once, however often it is tried. Batches need this, because their carrier
//! may die between an action and its record.

use swirl_model::event::Input;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{EndStatus, Instance};
use swirl_ports::{Operated, Suspended};

use crate::operator::because_of;
use crate::{Action, Error, Operator, Service, Unfit};

impl Service {
    /// Carries out the action unless the instance has the mark already. The history entry, the mark and the input are
    /// written in one atomic step; the following effects may be repeated.
    ///
    /// # Errors
    /// The store failed, or the definition cannot be read.
    pub async fn operate_once(
        &self,
        id: &InstanceId,
        mark: &str,
        action: &Action,
        operator: &Operator,
    ) -> Result<Result<(), Unfit>, Error> {
        let Some(instance) = self.store.instance(id).await? else {
            return Ok(Err(Unfit::Unknown));
        };
        match self.fitting(&instance, action).await? {
            Ok(fitting) => {
                let entry = self.operated(&fitting, operator);
                let input = input_of(&fitting);
                if self.store.operate(id, mark, entry, input).await? == Operated::Unknown {
                    return Ok(Err(Unfit::Unknown));
                }
            }
            Err(unfit) => {
                // This very action may have changed it before. The mark is read after the instance, so it would be
                // present.
                if !self.store.is_marked(id, mark).await? {
                    return Ok(Err(unfit));
                }
            }
        }
        self.follow_up(&instance, mark, action, operator).await?;
        Ok(Ok(()))
    }

    async fn follow_up(
        &self,
        instance: &Instance,
        mark: &str,
        action: &Action,
        operator: &Operator,
    ) -> Result<(), Error> {
        let id = &instance.header.id;
        if let Action::Suspend | Action::Resume = action {
            let on = *action == Action::Suspend;
            let done = match instance.state.suspended == on {
                true => None,
                false => self.store.suspend(id, on, None).await?,
            };
            if let Some(Suspended { wake, outbox }) = done {
                self.queue.push(wake).await;
                // The same as for a single action.
                swirl_runtime::flush(&*self.store, self, outbox).await;
            }
            return Ok(());
        }
        self.queue.push(vec![ScopeRef::root(id.clone())]).await;
        for parent in self.continue_with_it(instance, action).await? {
            let parent = &parent.header.id;
            let entry = self.operated(&Action::Retry, &because_of(id, operator));
            // If the parent belongs to the batch too, this is also its turn.
            let input = Some(Input::Retry);
            self.store.operate(parent, mark, entry, input).await?;
            self.queue.push(vec![ScopeRef::root(parent.clone())]).await;
        }
        Ok(())
    }

    /// Continues the instances that failed because this one did, if it continues.
    async fn continue_with_it(
        &self,
        instance: &Instance,
        action: &Action,
    ) -> Result<Vec<Instance>, Error> {
        match action.revives() {
            true => self.failed_with_it(instance).await,
            false => Ok(Vec::new()),
        }
    }
}

fn input_of(action: &Action) -> Option<Input> {
    match action {
        // A patch has become an edit, with the data of the instance.
        Action::Suspend | Action::Resume | Action::Patch { .. } => None,
        Action::Cancel => Some(Input::Cancel {
            status: EndStatus::Cancelled,
        }),
        Action::Retry => Some(Input::Retry),
        Action::Skip(result) => Some(Input::Skip {
            result: result.clone(),
        }),
        Action::Rerun(state) => Some(Input::Rerun {
            state: state.clone(),
        }),
        Action::Edit {
            state,
            data,
            context,
        } => Some(Input::Edit {
            state: state.clone(),
            data: data.clone(),
            context: context.clone(),
        }),
    }
}
