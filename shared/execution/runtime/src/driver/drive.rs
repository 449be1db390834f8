//! Drives a scope, from the task that names it until it waits.

use std::pin::{Pin, pin};

use futures::future::{Either, select};
use swirl_model::ids::ScopeRef;
use swirl_ports::{Acquired, Held};
use tracing::Instrument;

use super::admission::Admission;
use super::join::{can_leave, only_joins};
use super::policy::Policy;
use super::{Driven, Driver, Next, Run, Suspects, log_span};
use crate::Error;
use crate::observe::CallOutcome;
use crate::shares::Permit;

impl Driver {
    /// Drives a scope until it waits, ends, or turns out to be held by another process. After an error the lease is
    /// released, and the reconciler recovers the scope.
    pub async fn drive(&self, task: &ScopeRef) -> Result<(), Error> {
        match self.drive_until(task, std::future::pending()).await? {
            Driven::Continue(next) => self.wake(next).await,
            Driven::AtCapacity(_) => self.wake(vec![task.clone()]).await,
            Driven::Done | Driven::Stopped => {}
        }
        Ok(())
    }

    /// Like [`Driver::drive`], but drops unfinished work and releases the scope when `stop` is done. A call in flight
    /// is made again later, with the same key.
    pub async fn drive_until(
        &self,
        task: &ScopeRef,
        stop: impl Future<Output = ()>,
    ) -> Result<Driven, Error> {
        self.drive_task(task, stop, None, || ()).await
    }

    /// Like [`Driver::drive_until`]. `suspects`: set if another process may have begun the scope and crashed. `entered`
    /// is called once the scope has its place.
    ///
    /// # Errors
    /// [`Error::Attempts`] if the scope must not be tried again.
    pub async fn drive_task(
        &self,
        task: &ScopeRef,
        stop: impl Future<Output = ()>,
        suspects: Option<Suspects>,
        entered: impl FnOnce() + Send,
    ) -> Result<Driven, Error> {
        let held = match self
            .store
            .read_snapshot(task, self.settings.lease_ms)
            .await?
        {
            Acquired::Held(held) => *held,
            Acquired::Busy | Acquired::Gone => return Ok(Driven::Done),
        };
        let lease = held.lease.clone();
        let workflow = held.header.definition.workflow.clone();
        let Ok(_place) = self.place_of(&held) else {
            self.give_up(&lease).await;
            return Ok(Driven::AtCapacity(workflow));
        };
        entered();
        let mut stop = pin!(stop);
        let (held, active) = match self.wait_until_active(held, stop.as_mut()).await? {
            Admission::In(held, active) => (*held, active),
            Admission::Elsewhere => return Ok(Driven::Done),
            Admission::Stopped => return Ok(Driven::Stopped),
        };
        self.drive_held(held, stop, suspects, active, Policy::All)
            .await
    }

    async fn drive_held(
        &self,
        held: Held,
        mut stop: Pin<&mut impl Future<Output = ()>>,
        suspects: Option<Suspects>,
        mut active: Option<Permit>,
        policy: Policy,
    ) -> Result<Driven, Error> {
        let lease = held.lease.clone();
        let (task, workflow) = (&lease.scope, held.header.definition.workflow.clone());
        let begun = self.begin_attempt(task, &workflow, suspects.as_ref(), &mut active);
        let begun = self.renewing(&lease, begun);
        let attempt = match select(pin!(begun), stop.as_mut()).await {
            Either::Left((Ok(attempt), _)) => attempt,
            Either::Left((Err(error), _)) => {
                self.give_up(&lease).await;
                return Err(error);
            }
            Either::Right(_) => {
                self.give_up(&lease).await;
                return Ok(Driven::Stopped);
            }
        };
        let begun = match policy {
            Policy::Join => self.begin(held).await.map(Some),
            _ => self.begin_unless_left(held).await,
        };
        let mut run = match begun {
            Ok(Some(run)) => run,
            Ok(None) => {
                self.end_attempt(task, attempt).await;
                self.give_up(&lease).await;
                return Ok(Driven::Done);
            }
            Err(error) => {
                self.end_attempt(task, attempt).await;
                self.give_up(&lease).await;
                return Err(error);
            }
        };
        run.suspects = suspects.clone();
        run.attempt = attempt;
        run.active = active;
        run.policy = policy;
        let driven = match select(pin!(self.continue_run(&mut run)), stop).await {
            Either::Left((driven, _)) => driven.map(|()| Driven::Done),
            Either::Right(_) => Ok(Driven::Stopped),
        };
        self.end_attempt(task, run.attempt.take()).await;
        let next = std::mem::take(&mut run.next);
        if !matches!(driven, Ok(Driven::Done)) {
            self.wake(next).await;
            if let Some(running) = run.call.take() {
                self.called(&run, &running, CallOutcome::Abandoned);
            }
            // Use the run's lease, since it may have been taken with a commit.
            self.give_up(&run.lease).await;
            return driven;
        }
        Ok(match next.is_empty() {
            true => Driven::Done,
            false => Driven::Continue(next),
        })
    }

    async fn continue_run(&self, run: &mut Run) -> Result<(), Error> {
        loop {
            if run.attempt.is_none() {
                let (scope, workflow) = (&run.lease.scope, &run.header.definition.workflow);
                let suspects = run.suspects.as_ref();
                let begun = self.begin_attempt(scope, workflow, suspects, &mut run.active);
                run.attempt = self.renewing(&run.lease, begun).await?;
            }
            match self.go_on(run).await? {
                Next::Again => {}
                Next::Done => return Ok(()),
            }
        }
    }

    /// Joins the complete fork of a scope, and wakes the scope for a worker. Does nothing if another process was
    /// faster.
    ///
    /// # Errors
    /// The store or the definition cannot be read; [`Error::Attempts`] if the scope must not be tried again.
    pub async fn join(&self, task: &ScopeRef, suspects: Option<Suspects>) -> Result<(), Error> {
        let joined = self.join_held(task, suspects);
        joined.instrument(log_span(task)).await
    }

    async fn join_held(&self, task: &ScopeRef, suspects: Option<Suspects>) -> Result<(), Error> {
        let lease_ms = self.settings.lease_ms;
        let held = match self.store.read_snapshot(task, lease_ms).await? {
            Acquired::Held(held) => *held,
            Acquired::Busy | Acquired::Gone => return Ok(()),
        };
        let ours = match only_joins(&held) {
            false => Ok(false),
            true => {
                let def = self.registry.get(&held.header.definition).await;
                def.map(|def| can_leave(&def))
            }
        };
        if matches!(ours, Ok(true)) {
            let never = pin!(std::future::pending());
            let driven = self.drive_held(held, never, suspects, None, Policy::Join);
            let driven = driven.await?;
            if let Driven::Continue(next) = driven {
                self.wake(next).await;
            }
            return Ok(());
        }
        self.give_up(&held.lease).await;
        ours?;
        if !held.inbox.is_empty() {
            self.wake(vec![task.clone()]).await;
        }
        Ok(())
    }
}
