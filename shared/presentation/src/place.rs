//! Describes a scope's current position, with the names from its definition.

use serde_json::{Value, json};
use swirl_model::scope::{ActionStep, Cursor, ListRun, Position, Purpose, Scope, Work};
use swirl_model::workflow::Workflow;

/// A scope's state, its activity there, the events that it waits for, and its timers.
pub fn place(workflow: &Workflow, scope: &Scope) -> Value {
    let mut place = json!({"scope": scope.id.as_str()});
    match &scope.cursor {
        Cursor::Fresh => place["doing"] = json!("starting"),
        Cursor::Idle => place["doing"] = json!("kept active"),
        Cursor::Ended => place["doing"] = json!("ended"),
        Cursor::At(position) => at(workflow, position, &mut place),
    }
    if let Some(error) = &scope.fault {
        place["doing"] = json!("failed");
        place["error"] = Value::from(&error.to_data());
    }
    let mut waits = scope.waits().peekable();
    if waits.peek().is_some() {
        let slots = waits.flat_map(|wait| &wait.slots);
        let filters = slots.flat_map(|slot| &slot.filters);
        let events: Vec<Value> = filters
            .map(|filter| {
                let def = workflow.events.get(filter.def.0 as usize);
                let pairs = filter.correlation.iter().chain(&filter.attributes);
                let correlation: serde_json::Map<String, Value> = pairs
                    .map(|(name, value)| (name.to_string(), json!(value)))
                    .collect();
                json!({
                    "name": def.map(|def| &*def.name),
                    "source": filter.source,
                    "type": filter.kind,
                    "correlation": correlation,
                })
            })
            .collect();
        place["waitsFor"] = json!(events);
    }
    if !scope.timers.is_empty() {
        let timers: Vec<Value> = scope
            .timers
            .iter()
            .map(|timer| json!({"kind": timer.kind, "due": format!("{:.3}", timer.due)}))
            .collect();
        place["timers"] = json!(timers);
    }
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

fn at(workflow: &Workflow, position: &Position, place: &mut Value) {
    let state = position
        .state
        .and_then(|id| workflow.states.get(id.0 as usize));
    if let Some(state) = state {
        place["state"] = json!(&*state.name);
    }
    if position.purpose == Purpose::Compensation {
        place["compensating"] = json!(true);
    }
    place["doing"] = json!(match &position.work {
        Work::Begin => "beginning",
        Work::Finish { .. } => "ending",
        Work::List(run) => {
            list(workflow, run, place);
            doing(&run.step)
        }
        Work::Fork(run) => {
            place["branches"] = json!(run.total);
            "waiting for branches"
        }
        Work::Sleep => "sleeping",
        Work::Events => "waiting for events",
        Work::Retry => "waiting to retry",
        Work::Continue { .. } => "continuing as another instance",
    });
}

fn list(workflow: &Workflow, run: &ListRun, place: &mut Value) {
    let list = workflow.lists.get(run.list.0 as usize);
    let action = list
        .and_then(|list| list.actions.get(usize::from(run.index)))
        .and_then(|id| workflow.actions.get(id.0 as usize));
    if let Some(action) = action {
        place["action"] = json!(workflow.action_name(action));
    }
    if run.attempt > 0 {
        place["attempt"] = json!(run.attempt);
    }
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
