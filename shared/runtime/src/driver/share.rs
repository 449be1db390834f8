//! A scope computes when it is its workflow's turn ([`crate::shares`]).

use std::pin::{Pin, pin};

use futures::future::{Either, poll_immediate, select};
use swirl_model::time::Timestamp;
use swirl_ports::{Acquired, Held, Lease};

use super::{Driver, Run};
use crate::Error;
use crate::places::Place;
use crate::shares::Turn;

/// After a wait this long, a lease is renewed, and data may be stale.
const STALE_MS: u64 = 500;
/// The same for scopes whose turns are short: so many may wait that reading them again would keep them waiting.
const STALE_SHORT_MS: u64 = 5_000;

/// The right to compute; without shares every scope has it.
pub(super) struct HaveTurn(Option<Turn>);

impl HaveTurn {
    /// Computes, and counts the cost.
    pub fn counting<T>(&self, compute: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(turn) => turn.compute(swirl_engine::spent, compute),
            None => compute(),
        }
    }

    fn waited(&self) -> bool {
        self.0.as_ref().is_some_and(Turn::waited)
    }

    fn may_take_long(&self) -> bool {
        self.0.as_ref().is_some_and(Turn::may_take_long)
    }
}

/// The end of the wait to be active.
pub(super) enum Admission {
    In(Box<Held>, Option<Turn>),
    /// Another process continues with the scope.
    Elsewhere,
    Stopped,
}

/// The workflow has as many places as it may.
pub(super) struct Crowded;

fn must_end(held: &Held) -> bool {
    held.closed || held.inbox.iter().any(|item| item.input.is_operator())
}

impl Driver {
    /// A place, if places are shared. A scope that must end always gets one.
    pub(super) fn place_of(&self, held: &Held) -> Result<Option<Place>, Crowded> {
        let Some(places) = &self.places else {
            return Ok(None);
        };
        let place = places.enter(&held.header.definition.workflow, must_end(held));
        place.map(Some).ok_or(Crowded)
    }

    /// Waits until fewer scopes are active. A scope that must end is active at once.
    pub(super) async fn admit(
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

    /// Waits without losing the lease meanwhile. A lease that is lost in spite of that shows at the commit.
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

    pub(super) async fn turn_of(&self, run: &mut Run) -> HaveTurn {
        let Some(shares) = &self.shares else {
            return HaveTurn(None);
        };
        let workflow = run.header.definition.workflow.clone();
        let mut entering = pin!(shares.enter(&workflow));
        let turn = match poll_immediate(&mut entering).await {
            Some(turn) => turn,
            None => {
                run.active = None;
                self.renewing(&run.lease, entering).await
            }
        };
        HaveTurn(Some(turn))
    }

    /// Waits for a turn. If data became stale meanwhile, the scope is read again, since a commit would be refused, or
    /// begin a call that an input meanwhile forbids. A turn that may take long is worth holding up for that; a short one
    /// isn't, as others wait for it: it is asked for again. `None`: another process continues with the scope.
    pub(super) async fn have_turn(&self, run: &mut Run) -> Result<Option<HaveTurn>, Error> {
        let asked = self.clock.now();
        let turn = self.turn_of(run).await;
        if !turn.waited() || self.clock.now() < asked.plus_ms(STALE_MS) {
            return Ok(Some(turn));
        }
        let lease_ms = self.settings.lease_ms;
        if run.lease.is_taken() {
            let renewed =
                self.settings.renew_ms.is_none() || self.store.renew(&run.lease, lease_ms).await?;
            return Ok(renewed.then_some(turn));
        }
        if !turn.may_take_long() && self.clock.now() < asked.plus_ms(STALE_SHORT_MS) {
            return Ok(Some(turn));
        }
        let turn = Some(turn).filter(HaveTurn::may_take_long);
        let scope = run.lease.scope.clone();
        let held = match self.store.read_snapshot(&scope, lease_ms).await? {
            Acquired::Held(held) => *held,
            Acquired::Busy | Acquired::Gone => return Ok(None),
        };
        *run = self.begin_again(run, held).await?;
        match turn {
            Some(turn) => Ok(Some(turn)),
            None => Ok(Some(self.turn_of(run).await)),
        }
    }
}
