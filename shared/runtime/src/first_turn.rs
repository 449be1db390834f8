//! The first turn of an instance, taken where the instance is created.

use std::sync::Arc;

use swirl_engine::{Bounds, Definition, Env, Outcome, step};
use swirl_model::Data;
use swirl_model::event::{Command, Event, HistoryEntry, Input};
use swirl_model::instance::{EndStatus, Header, Instance, InstanceState};
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{StateKind, Workflow};
use swirl_ports::FirstTurn;

use crate::observe::Observed;

// Limits of a turn that the creator takes. The caller waits, and this thread can't serve other requests meanwhile, so
// longer work is left to a worker.
/// A state or an action takes two or three steps.
const STEPS: u32 = 300;
/// The limit on the work of all expressions, in steps of their meter: about ten milliseconds. It isn't a time, so that
/// the same instance has the same result on every machine.
const WORK: u64 = 300_000;
/// The maximum number of produced events. The caller carries out these effects too.
pub(crate) const EFFECTS_MAX: usize = 16;

pub(crate) fn bounds() -> Bounds {
    Bounds::new(STEPS, WORK)
}

/// Takes the first turn of a new instance where the instance is created, if the turn needs nothing but data, so that
/// both are one commit. Turns that fail, need anything else or take long are left to workers. `with_events`: an event may
/// have started the instance, and an instance that ends may produce events, which the caller publishes after its
/// creation.
pub fn take_first_turn(
    def: &Arc<Definition>,
    header: &Header,
    root: &Scope,
    now: Timestamp,
    with_events: bool,
) -> Option<FirstTurn> {
    let may_begin = match root.start_events.is_empty() {
        // Without the event that starts it, the instance would wait for that event.
        true => def.is_pure || !starts_by_event(&def.workflow),
        false => with_events,
    };
    let may_end = header.parent.is_none() && (def.is_pure || with_events && def.ends_in_first_turn);
    if !may_begin || !may_end && !def.waits_in_first_turn {
        return None;
    }
    let env = Env {
        now,
        secrets: Data::NULL,
        bounds: Some(bounds()),
        room: None,
    };
    let mut scope = root.clone();
    let Outcome::Accepted { events, commands } = step(def, header, &mut scope, Input::Wake, &env)
    else {
        return None;
    };
    let is_taken = !events.is_empty() || !commands.is_empty();
    let is_allowed = match scope.ended() {
        true => header.parent.is_none() && may_end_with(&commands, with_events),
        false => scope.pending_call().is_none() && commands.iter().all(may_continue_with),
    };
    if !is_taken || !is_allowed {
        return None;
    }
    let mut history = Vec::with_capacity(events.len());
    for event in events {
        // The bounds of this turn may have caused it.
        if matches!(
            event,
            Event::ErrorHandled { .. }
                | Event::ActionFailed { .. }
                | Event::AttributeLeftOut { .. }
        ) {
            return None;
        }
        if let Event::ValidationFailed { of, message } = &event {
            tracing::warn!(instance = %header.id, "the {of} fails its schema: {message}");
        }
        if event.is_history() {
            history.push(HistoryEntry {
                data: None,
                at: now,
                scope: scope.id.clone(),
                event,
                data_until: None,
            });
        }
    }
    Some(FirstTurn {
        scope,
        history,
        commands,
        at: now,
    })
}

/// Whether an instance that ends may leave these commands. Only the caller waits for it.
fn may_end_with(commands: &[Command], with_events: bool) -> bool {
    let (mut ends, mut effects) = (0, 0);
    let is_data = |command: &Command| match command {
        Command::Publish(_) => {
            effects += 1;
            with_events && effects <= EFFECTS_MAX
        }
        Command::End { status, .. } => {
            ends += 1;
            *status != EndStatus::Faulted
        }
        Command::Arm(_) | Command::Disarm(_) | Command::Index => true,
        _ => false,
    };
    commands.iter().all(is_data) && ends == 1
}

/// Whether an instance that continues may leave this command. Effects would have to be carried out first.
fn may_continue_with(command: &Command) -> bool {
    matches!(
        command,
        Command::Arm(_)
            | Command::Disarm(_)
            | Command::Subscribe(_)
            | Command::Unsubscribe(_)
            | Command::Take { .. }
            | Command::Correlate(_)
            | Command::Index
    )
}

fn starts_by_event(workflow: &Workflow) -> bool {
    let start = workflow[Workflow::ROOT].start;
    matches!(workflow[start].kind, StateKind::Event(_))
}

/// The instance in its final state, if the turn ended it.
pub fn ended_instance(header: &Arc<Header>, turn: &FirstTurn) -> Option<Instance> {
    let mut ends = turn.commands.iter().filter_map(|command| match command {
        Command::End {
            status,
            output,
            error,
        } => Some((*status, output, error)),
        _ => None,
    });
    let (status, output, error) = ends.next()?;
    Some(Instance {
        header: header.clone(),
        state: InstanceState {
            status: status.into(),
            output: output.clone(),
            error: error.clone(),
            ended_at: Some(turn.at),
            attributes: turn.scope.attributes.clone(),
            ..InstanceState::default()
        },
    })
}

/// The report about the turn, for an observer.
pub fn observed_of(
    header: &Arc<Header>,
    turn: &FirstTurn,
    has_tasks: bool,
    follows: bool,
) -> Observed {
    Observed {
        has_tasks,
        ended: turn.ends(),
        ..Observed::of(header, (&turn.scope, None), &turn.history, follows, turn.at)
    }
}
