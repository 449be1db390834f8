//! Describes a scope's current position, with the names from its definition.

use swirl_api::instance::{AwaitedEvent, ScopePosition, Timer};
use swirl_model::scope::{ActionStep, Cursor, ListRun, Position, Purpose, Scope, Work};
use swirl_model::workflow::Workflow;

/// A scope's state, its activity there, the events that it waits for, and its timers.
pub fn place(workflow: &Workflow, scope: &Scope) -> ScopePosition {
    let mut place = ScopePosition {
        scope: scope.id.to_string(),
        ..ScopePosition::default()
    };
    match &scope.cursor {
        Cursor::Fresh => "starting".clone_into(&mut place.doing),
        Cursor::Idle => "kept active".clone_into(&mut place.doing),
        Cursor::Ended => "ended".clone_into(&mut place.doing),
        Cursor::At(position) => at(workflow, position, &mut place),
    }
    if let Some(error) = &scope.fault {
        "failed".clone_into(&mut place.doing);
        place.error = Some(error.into());
    }
    let slots = scope.waits().flat_map(|wait| &wait.slots);
    let filters = slots.flat_map(|slot| &slot.filters);
    let events = filters.map(|filter| {
        let def = workflow.events.get(filter.def.0 as usize);
        let pairs = filter.correlation.iter().chain(&filter.attributes);
        AwaitedEvent {
            name: def.map(|def| def.name.to_string()),
            source: filter.source.as_ref().map(ToString::to_string),
            kind: filter.kind.as_ref().map(ToString::to_string),
            correlation: pairs
                .map(|(name, value)| (name.to_string(), value.clone().into()))
                .collect(),
        }
    });
    place.waits_for = events.collect();
    let timers = scope.timers.iter().map(|timer| Timer {
        kind: timer.kind.as_str().to_owned(),
        due: timer.due.into(),
    });
    place.timers = timers.collect();
    place
}

/// Whether a scope waits for an event, an answer or a time. Calls and branches don't count.
pub fn is_waiting(scope: &Scope) -> bool {
    if scope.fault.is_some() {
        return false;
    }
    let Cursor::At(position) = &scope.cursor else {
        return scope.cursor == Cursor::Idle;
    };
    match &position.work {
        Work::Sleep | Work::Events | Work::Retry => true,
        Work::List(run) => matches!(
            run.step,
            ActionStep::SleepBefore
                | ActionStep::SleepAfter
                | ActionStep::Event { .. }
                | ActionStep::RetryDelay
                | ActionStep::ReadyDelay
        ),
        Work::Begin | Work::Finish { .. } | Work::Fork(_) | Work::Continue { .. } => false,
    }
}

fn at(workflow: &Workflow, position: &Position, place: &mut ScopePosition) {
    let state = position
        .state
        .and_then(|id| workflow.states.get(id.0 as usize));
    place.state = state.map(|state| state.name.to_string());
    place.compensating = position.purpose == Purpose::Compensation;
    place.doing = match &position.work {
        Work::Begin => "beginning",
        Work::Finish { .. } => "ending",
        Work::List(run) => {
            list(workflow, run, place);
            doing(&run.step)
        }
        Work::Fork(run) => {
            place.branches = Some(run.total);
            "waiting for branches"
        }
        Work::Sleep => "sleeping",
        Work::Events => "waiting for events",
        Work::Retry => "waiting to retry",
        Work::Continue { .. } => "continuing as another instance",
    }
    .to_owned();
}

fn list(workflow: &Workflow, run: &ListRun, place: &mut ScopePosition) {
    let list = workflow.lists.get(run.list.0 as usize);
    let action = list
        .and_then(|list| list.actions.get(usize::from(run.index)))
        .and_then(|id| workflow.actions.get(id.0 as usize));
    place.action = action.and_then(|action| workflow.action_name(action));
    place.attempt = Some(run.attempt).filter(|attempt| *attempt > 0);
}

fn doing(step: &ActionStep) -> &'static str {
    match step {
        ActionStep::Ready | ActionStep::Attempt => "beginning an action",
        ActionStep::Done => "behind an action",
        ActionStep::SleepBefore | ActionStep::SleepAfter => "sleeping",
        ActionStep::Call { .. } => "calling a function",
        ActionStep::Event { .. } => "waiting for an answer",
        ActionStep::Subflow { .. } => "waiting for a sub-workflow",
        ActionStep::RetryDelay | ActionStep::ReadyDelay => "waiting to retry",
    }
}
