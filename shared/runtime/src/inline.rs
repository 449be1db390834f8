//! Runs instances completely where they are started.

use std::sync::Arc;

use swirl_engine::{Bounds, Definition, Env, Outcome, step};
use swirl_model::Data;
use swirl_model::event::{Command, Event, HistoryEntry, Input};
use swirl_model::instance::{EndStatus, Header, Instance, InstanceState};
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{StateKind, Workflow};
use swirl_ports::InlineRun;

use crate::observe::Observed;

// Limits of an inline run. The caller waits, and this thread can't serve other requests meanwhile, so longer work is
// left to a worker.
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

/// Runs an instance that needs nothing but data to its end, so that its creation is the only commit. Instances that
/// fail, need anything else or take long are driven as usual instead. `with_events`: an event may have started the
/// instance, and the instance may produce events, which the caller publishes after its creation.
pub fn run_inline(
    def: &Arc<Definition>,
    header: &Header,
    root: &Scope,
    now: Timestamp,
    with_events: bool,
) -> Option<InlineRun> {
    let is_meant = match root.start_events.is_empty() {
        // Without the event that starts it, the instance would wait for that event.
        true => {
            def.is_pure || with_events && def.ends_in_first_turn && !starts_by_event(&def.workflow)
        }
        false => with_events && def.ends_in_first_turn,
    };
    if !is_meant || header.parent.is_some() {
        return None;
    }
    let env = Env {
        now,
        secrets: Data::NULL,
        bounds: Some(bounds()),
        room: None,
    };
    let mut root = root.clone();
    let Outcome::Accepted { events, commands } = step(def, header, &mut root, Input::Wake, &env)
    else {
        return None;
    };
    let (mut end, mut effects) = (None, Vec::new());
    for command in commands {
        match command {
            // Waits and timers end with the instance, and the root scope has the attributes.
            Command::Arm(_) | Command::Disarm(_) | Command::Index => {}
            Command::Publish(_) if with_events && effects.len() < EFFECTS_MAX => {
                effects.push(command)
            }
            Command::End {
                status,
                output,
                error,
            } if status != EndStatus::Faulted && end.is_none() => {
                end = Some((status, output, error))
            }
            _ => return None,
        }
    }
    let (status, output, error) = end.filter(|_| root.ended())?;
    let mut history = Vec::with_capacity(events.len());
    for event in events {
        // The bounds of an inline run may have caused it.
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
                scope: root.id.clone(),
                event,
                data_until: None,
            });
        }
    }
    Some(InlineRun {
        root,
        history,
        status,
        output,
        error,
        at: now,
        effects,
    })
}

fn starts_by_event(workflow: &Workflow) -> bool {
    let start = workflow[Workflow::ROOT].start;
    matches!(workflow[start].kind, StateKind::Event(_))
}

/// The instance in its final state.
pub fn instance_of(header: &Arc<Header>, inline_run: &InlineRun) -> Instance {
    Instance {
        header: header.clone(),
        state: InstanceState {
            status: inline_run.status.into(),
            output: inline_run.output.clone(),
            error: inline_run.error.clone(),
            ended_at: Some(inline_run.at),
            attributes: inline_run.root.attributes.clone(),
            ..InstanceState::default()
        },
    }
}

/// The report about the run, for an observer.
pub fn observed_of(header: &Arc<Header>, inline_run: &InlineRun, follows: bool) -> Observed {
    Observed {
        ended: true,
        ..Observed::of(header, &inline_run.root, &inline_run.history, follows)
    }
}
