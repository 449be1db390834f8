//! How a scope waits for its workflow's share of the worker: it needs a place to be driven ([`crate::places`]), must be
//! admitted before it is active, and needs a permit for each turn that it computes (both [`crate::shares`]).

use std::pin::{Pin, pin};

use futures::future::{Either, poll_immediate, select};
use swirl_model::time::Timestamp;
use swirl_ports::{Acquired, Held, Lease};

use super::join::must_end;
use super::{Driver, Run};
use crate::Error;
use crate::places::Place;
use crate::shares::Permit;

/// After a wait of this length the lease is renewed, and data may be stale.
const STALE_MS: u64 = 500;
/// The same for scopes with short turns. So many of them may wait that reading them again would prolong the wait.
const STALE_SHORT_MS: u64 = 5_000;

/// The right to compute. If processors aren't shared, every scope has it.
pub(super) struct TurnPermit(Option<Permit>);

impl TurnPermit {
    /// Computes, and counts the cost.
    pub fn counting<T>(&self, compute: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(permit) => permit.compute(swirl_engine::spent, compute),
            None => compute(),
        }
    }

    fn waited(&self) -> bool {
        self.0.as_ref().is_some_and(Permit::waited)
    }

    fn may_take_long(&self) -> bool {
        self.0.as_ref().is_some_and(Permit::may_take_long)
    }
}

/// The result of waiting until a scope may be active.
pub(super) enum Admission {
    In(Box<Held>, Option<Permit>),
    /// Another process continues with the scope.
    Elsewhere,
    Stopped,
}

/// The workflow has its maximum number of places.
pub(super) struct AtCapacity;

impl Driver {
    /// Returns a place, if places are shared. A scope that must end always gets one.
    pub(super) fn place_of(&self, held: &Held) -> Result<Option<Place>, AtCapacity> {
        let Some(places) = &self.places else {
            return Ok(None);
        };
        let place = places.enter(&held.header.definition.workflow, must_end(held));
        place.map(Some).ok_or(AtCapacity)
    }

    /// Waits until the scope may be active. A scope that must end doesn't wait.
    pub(super) async fn wait_until_active(
        &self,
        held: Held,
        stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Admission, Error> {
        let Some(activity) = self.activity.as_ref().filter(|_| !must_end(&held)) else {
            return Ok(Admission::In(Box::new(held), None));
        };
        let workflow = held.header.definition.workflow.clone();
        let mut entering = pin!(activity.enter(&workflow));
        if let Some(active) = poll_immediate(&mut entering).await {
            return Ok(Admission::In(Box::new(held), Some(active)));
        }
        let stale = self.clock.now().plus_ms(STALE_MS);
        let active = {
            let entered = pin!(self.renewing(&held.lease, entering));
            match select(entered, stop).await {
                Either::Left((active, _)) => Some(active),
                Either::Right(_) => None,
            }
        };
        let Some(active) = active else {
            self.give_up(&held.lease).await;
            return Ok(Admission::Stopped);
        };
        if held.lease.is_taken() || self.clock.now() < stale {
            return Ok(Admission::In(Box::new(held), Some(active)));
        }
        let (scope, lease_ms) = (&held.lease.scope, self.settings.lease_ms);
        Ok(match self.store.read_snapshot(scope, lease_ms).await? {
            Acquired::Held(held) => Admission::In(held, Some(active)),
            Acquired::Busy | Acquired::Gone => Admission::Elsewhere,
        })
    }

    /// Waits, and renews the lease meanwhile. If the lease is lost nevertheless, the commit is refused.
    pub(super) async fn renewing<T>(&self, lease: &Lease, waiting: impl Future<Output = T>) -> T {
        let Some(renew_ms) = self.settings.renew_ms.filter(|_| lease.is_taken()) else {
            return waiting.await;
        };
        let mut waiting = pin!(waiting);
        loop {
            let until = Timestamp(self.clock.now().0.saturating_add_unsigned(renew_ms));
            let next = self.clock.sleep_until(until);
            if let Either::Left((done, _)) = select(waiting.as_mut(), next).await {
                return done;
            }
            match self.store.renew(lease, self.settings.lease_ms).await {
                Ok(true) => {}
                Ok(false) => return waiting.await,
                Err(error) => tracing::debug!(%error, "a lease is not renewed"),
            }
        }
    }

    pub(super) async fn permit_of(&self, run: &mut Run) -> TurnPermit {
        let Some(shares) = &self.shares else {
            return TurnPermit(None);
        };
        let workflow = run.header.definition.workflow.clone();
        let mut entering = pin!(shares.enter(&workflow));
        let permit = match poll_immediate(&mut entering).await {
            Some(permit) => permit,
            None => {
                run.active = None;
                self.renewing(&run.lease, entering).await
            }
        };
        TurnPermit(Some(permit))
    }

    /// Waits for a permit. If the data may have become stale meanwhile, reads the scope again; otherwise the commit
    /// could be refused, or begin a call that a newer input forbids. A turn that may take long keeps its permit during
    /// the read. A short one releases it, since others are waiting, and gets a new one afterwards. `None` if another
    /// process continues with the scope.
    pub(super) async fn permit_with_fresh_data(
        &self,
        run: &mut Run,
    ) -> Result<Option<TurnPermit>, Error> {
        let asked = self.clock.now();
        let permit = self.permit_of(run).await;
        if !permit.waited() || self.clock.now() < asked.plus_ms(STALE_MS) {
            return Ok(Some(permit));
        }
        let lease_ms = self.settings.lease_ms;
        if run.lease.is_taken() {
            let renewed =
                self.settings.renew_ms.is_none() || self.store.renew(&run.lease, lease_ms).await?;
            return Ok(renewed.then_some(permit));
        }
        if !permit.may_take_long() && self.clock.now() < asked.plus_ms(STALE_SHORT_MS) {
            return Ok(Some(permit));
        }
        let permit = Some(permit).filter(TurnPermit::may_take_long);
        let scope = run.lease.scope.clone();
        let held = match self.store.read_snapshot(&scope, lease_ms).await? {
            Acquired::Held(held) => *held,
            Acquired::Busy | Acquired::Gone => return Ok(None),
        };
        *run = self.reload(run, held).await?;
        match permit {
            Some(permit) => Ok(Some(permit)),
            None => Ok(Some(self.permit_of(run).await)),
        }
    }
}
