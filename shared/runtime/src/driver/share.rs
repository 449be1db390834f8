//! A scope computes when it is its workflow's turn ([`crate::shares`]).

use swirl_ports::{Acquired, Held};

use super::{Driver, Run};
use crate::Error;
use crate::places::Place;
use crate::shares::Turn;

/// The right to compute; without shares every scope has it.
pub(super) struct HaveTurn(Option<Turn>);

impl HaveTurn {
    /// Computes, and counts the cost.
    pub fn counting<T>(&self, compute: impl FnOnce() -> T) -> T {
        let before = swirl_engine::spent();
        let computed = compute();
        if let Some(turn) = &self.0 {
            turn.spend(swirl_engine::spent().saturating_sub(before));
        }
        computed
    }

    fn waited(&self) -> bool {
        self.0.as_ref().is_some_and(Turn::waited)
    }
}

/// The workflow has as many places as it may.
pub(super) struct Crowded;

impl Driver {
    /// A place, if places are shared. A scope that must end always gets one.
    pub(super) fn place_of(&self, held: &Held) -> Result<Option<Place>, Crowded> {
        let Some(places) = &self.places else {
            return Ok(None);
        };
        let ends = held.closed || held.inbox.iter().any(|item| item.input.is_operator());
        let place = places.enter(&held.header.definition.workflow, ends);
        place.map(Some).ok_or(Crowded)
    }

    pub(super) async fn turn_of(&self, run: &mut Run) -> HaveTurn {
        match &self.shares {
            Some(shares) => HaveTurn(Some(shares.enter(&run.header.definition.workflow).await)),
            None => HaveTurn(None),
        }
    }

    /// Waits for a turn. Data that was read before a wait may be stale. `None`: another process continues with the
    /// scope.
    pub(super) async fn have_turn(&self, run: &mut Run) -> Result<Option<HaveTurn>, Error> {
        let turn = self.turn_of(run).await;
        if !turn.waited() {
            return Ok(Some(turn));
        }
        let lease_ms = self.settings.lease_ms;
        if run.lease.is_taken() {
            let renewed =
                self.settings.renew_ms.is_none() || self.store.renew(&run.lease, lease_ms).await?;
            return Ok(renewed.then_some(turn));
        }
        let scope = run.lease.scope.clone();
        let held = match self.store.acquire_lazily(&scope, lease_ms).await? {
            Acquired::Held(held) => *held,
            Acquired::Busy | Acquired::Gone => return Ok(None),
        };
        *run = self.begin_again(run, held).await?;
        Ok(Some(turn))
    }
}
