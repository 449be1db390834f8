//! The inputs that arrive while a scope is held: the answer of its call, and messages in its inbox.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{Either, select};
use swirl_model::event::Input;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;
use swirl_model::redact::Redactor;
use swirl_model::time::Timestamp;
use swirl_ports::{InboxItem, Released};

use super::begin::fit;
use super::{Driver, Next, Run};
use crate::Error;
use crate::observe::CallOutcome;

impl Driver {
    /// Waits for the call's answer, or for an input.
    pub(super) async fn wait(&self, run: &mut Run) -> Result<Next, Error> {
        let Some(mut running) = run.call.take() else {
            return Ok(Next::Again);
        };
        // The call counts too, but others may compute meanwhile.
        if let Some(attempt) = &mut run.attempt {
            attempt.let_others();
        }
        run.active = None;
        let news = async {
            match self.settings.renew_ms {
                None => self.store.wait_input(&run.lease).await,
                Some(renew_ms) => {
                    let until = Timestamp(self.clock.now().0.saturating_add_unsigned(renew_ms));
                    let input = self.store.wait_input(&run.lease);
                    select(input, self.clock.sleep_until(until)).await;
                }
            }
        };
        let answer = match select(&mut running.future, news.boxed()).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(((), _)) => None,
        };
        self.end_attempt(&run.lease.scope, run.attempt.take()).await;
        match answer {
            Some(result) => {
                // Results and errors are the user's data and are passed on unchanged (docs/language.md#decision-84).
                // The engine hides secrets where it shows them.
                match &result {
                    Ok(_) => self.called(run, &running, CallOutcome::Done),
                    // Traces are for operators, so they show names as the history does.
                    Err(error) => {
                        let name = run.redactor.text(&error.name);
                        self.called(run, &running, CallOutcome::Failed(&name));
                    }
                }
                run.credentials = running.last_exchange.credentials();
                if let Some(sent) = &run.credentials
                    && let Some((_, parameter)) = sent.0.split_once(' ')
                {
                    let secrets = run.redactor.expose().iter().map(String::as_str);
                    run.redactor = Arc::new(Redactor::new(secrets.chain([parameter])));
                }
                let call = running.call;
                let item = InboxItem::new(Input::CallDone { call, result });
                run.inbox.push_back(item);
                run.stored = Some(running.stored);
                run.answered = true;
            }
            None => {
                run.call = Some(running);
                if self.settings.renew_ms.is_some()
                    && !self.store.renew(&run.lease, self.settings.lease_ms).await?
                {
                    return Ok(Next::Done);
                }
                return self.drain(run).await;
            }
        }
        Ok(Next::Again)
    }

    /// Processes inputs that arrived before an answer, then the answer.
    pub(super) async fn process_newer_inputs_first(
        &self,
        run: &mut Run,
        answer: InboxItem,
    ) -> Result<Next, Error> {
        run.inbox.clear();
        if !self.store.is_active(&run.header.id).await? {
            // The instance was suspended or faulted meanwhile. The answer is stored and processed when the instance
            // continues.
            let answer = self.kept(&run.header.id, answer).await?;
            self.store.add_input(&run.lease.scope, answer).await?;
            notify_stored(run).await;
            // If the instance was resumed by now, the scope continues here.
            return self.release(run).await;
        }
        if let Next::Done = self.drain(run).await? {
            return Ok(Next::Done);
        }
        run.inbox.push_back(answer);
        Ok(Next::Again)
    }

    /// Marks a failed call in a faulted instance as one that an operator's retry covers.
    pub(super) async fn kept(
        &self,
        id: &InstanceId,
        answer: InboxItem,
    ) -> Result<InboxItem, Error> {
        let Input::CallDone {
            call,
            result: Err(error),
        } = &answer.input
        else {
            return Ok(answer);
        };
        let (call, error) = (*call, Some(error.clone()));
        let instance = self.store.instance(id).await?;
        if instance.is_some_and(|instance| instance.state.status == Status::Faulted) {
            return Ok(InboxItem::new(Input::CallFailedMeanwhile { call, error }));
        }
        Ok(answer)
    }

    pub(super) async fn drain(&self, run: &mut Run) -> Result<Next, Error> {
        match self.store.drain(&run.lease).await? {
            Some((items, closed)) => {
                fit(&run.def, &run.header, &run.lease.scope, &items)?;
                run.inbox.extend(items);
                run.closed = closed;
                Ok(Next::Again)
            }
            None => Ok(Next::Done),
        }
    }

    pub(super) async fn release(&self, run: &mut Run) -> Result<Next, Error> {
        match self.store.release(&run.lease).await? {
            Released::Free | Released::Lost => Ok(Next::Done),
            Released::More => self.drain(run).await,
        }
    }
}

/// Tells the caller that the answer has been stored, with the scope or in its inbox.
pub(super) async fn notify_stored(run: &mut Run) {
    if let Some(stored) = run.stored.take() {
        stored.notify().await;
    }
}
