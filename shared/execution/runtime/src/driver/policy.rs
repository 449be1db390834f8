//! Which turns a process takes. A worker takes all of them. Others take those that need nothing but data, and leave
//! the rest to workers: a caller waits for them, and their thread can't serve other requests meanwhile.

use swirl_engine::{Bounds, Definition, Env};
use swirl_model::event::{Command, Event};
use swirl_model::instance::{EndStatus, Header};
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{StateKind, Workflow};

use super::Run;
use super::decide::Decided;

/// A state or an action takes two or three steps.
const STEPS: u32 = 300;
/// The limit on the work of all expressions, in steps of their meter: about ten milliseconds. It isn't a time, so that
/// the same scope has the same result on every machine.
const WORK: u64 = 300_000;
/// The maximum number of produced events. The caller carries out these effects too.
const EFFECTS_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// A worker.
    All,
    /// A coordinator that joins a fork. The turn ends once the results are merged and the state has ended, before the
    /// next state begins.
    Join,
    /// The process that adds an input to the scope.
    Delivery,
    /// The process that creates the instance. `with_events`: an event may have started the instance, and an instance
    /// that ends may produce events, which the caller publishes after the creation.
    Creation { with_events: bool },
}

impl Policy {
    /// The limits of a turn that begins now, on this thread.
    fn bounds(self) -> Option<Bounds> {
        match self {
            Policy::All => None,
            Policy::Join => Some(Bounds::new(0, u64::MAX)),
            Policy::Delivery | Policy::Creation { .. } => Some(Bounds::new(STEPS, WORK)),
        }
    }

    /// Whether an instance of this definition may take its first turn where it is created.
    pub fn may_begin(self, def: &Definition, header: &Header, root: &Scope) -> bool {
        let Policy::Creation { with_events } = self else {
            return true;
        };
        let start = def.workflow[Workflow::ROOT].start;
        let may_begin = match root.start_events.is_empty() {
            // Without the event that starts it, the instance would wait for that event.
            true => def.is_pure || !matches!(def.workflow[start].kind, StateKind::Event(_)),
            false => with_events,
        };
        let may_end =
            header.parent.is_none() && (def.is_pure || with_events && def.ends_in_first_turn);
        may_begin && (may_end || def.waits_in_first_turn)
    }

    /// Whether a process may commit what it decided. If not, nothing of it takes effect, and a worker takes the turn.
    pub fn allows(self, run: &Run, decided: &Decided) -> bool {
        let ends = run.scope.ended();
        let (effects_max, waits) = match self {
            Policy::All | Policy::Join => return true,
            Policy::Delivery => (EFFECTS_MAX, true),
            // Only the caller waits for the effects of an end. A scope that continues has to wait for its effects.
            Policy::Creation { with_events: true } if ends => (EFFECTS_MAX, false),
            Policy::Creation { .. } => (0, !ends),
        };
        // Workers end instances that report to a parent or have a business key.
        let header = &run.header;
        let has_others = header.parent.is_some() || header.instance_key.is_some();
        if ends && has_others && matches!(self, Policy::Creation { .. }) {
            return false;
        }
        let mut effects = 0;
        let is_data = |command: &Command| match command {
            Command::Publish(_) => {
                effects += 1;
                effects <= effects_max
            }
            Command::End { status, .. } => *status != EndStatus::Faulted,
            Command::Arm(_) | Command::Disarm(_) | Command::Index => true,
            Command::Subscribe(_)
            | Command::Unsubscribe(_)
            | Command::Take { .. }
            | Command::Correlate(_) => waits,
            _ => false,
        };
        run.scope.pending_call().is_none()
            && decided.commands.iter().all(is_data)
            && !decided
                .history
                .iter()
                .any(|entry| may_be_ours(&entry.event))
    }
}

/// Whether the bounds of the turn may be the cause of this event.
fn may_be_ours(event: &Event) -> bool {
    matches!(
        event,
        Event::ErrorHandled { .. } | Event::ActionFailed { .. } | Event::AttributeLeftOut { .. }
    )
}

impl Run {
    /// The environment of a turn that begins now, on this thread.
    pub(super) fn env(&mut self, now: Timestamp) -> Env {
        Env {
            now,
            secrets: self.secrets.clone(),
            credentials: self.credentials.as_ref().map(|sent| sent.0.clone()),
            bounds: self.policy.bounds(),
            room: self.room.take(),
        }
    }
}
