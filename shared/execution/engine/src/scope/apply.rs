//! Applies an event to a scope. The function is total: no event can make it fail.

use swirl_model::event::Event;
use swirl_model::scope::Scope;

/// Changes the scope according to the event. Nothing else changes a scope.
pub fn apply(scope: &mut Scope, event: &Event) {
    match event {
        Event::Moved(cursor) => scope.cursor = cursor.clone(),
        Event::Data(data) => scope.data = data.clone(),
        Event::Context(context) => scope.context = context.clone(),
        Event::Frames(frames) => scope.frames.clone_from(frames),
        Event::Params(params) => scope.params.clone_from(params),
        Event::Seq(seq) => scope.seq = *seq,
        Event::Armed(timer) => scope.timers.push(*timer),
        Event::Disarmed(seq) => scope.timers.retain(|timer| timer.seq != *seq),
        Event::Waiting(wait) => scope.wait = wait.clone(),
        Event::Answering(wait) => scope.answer = wait.clone(),
        Event::Merged(merge) => scope.merges.push(merge.clone()),
        Event::Result(result) => scope.result = result.clone(),
        Event::Completed(state) => scope.completed.push(*state),
        Event::Apart(forks) => scope.apart = forks.clone(),
        Event::Compensation(compensation) => {
            if compensation.is_some() && scope.compensation.is_none() {
                scope.completed.clear();
            }
            scope.compensation = compensation.clone();
        }
        Event::StartEvents(events) => scope.start_events = events.clone(),
        Event::LastError(error) => scope.last_error = error.clone(),
        Event::Fault(error) => scope.fault = error.clone(),
        Event::SoftTimeout => scope.timed_out = true,
        Event::Told(told) => scope.told = *told,
        Event::Rescheduled => scope.rescheduled = true,
        Event::Steps(steps) => scope.steps = *steps,
        Event::Waited => scope.waited = true,
        Event::Brief(seq) => scope.brief = *seq,
        Event::Indexed { values, left_out } => {
            scope.attributes = values.clone();
            scope.left_out.clone_from(left_out);
        }
        Event::InstanceStarted { .. }
        | Event::StateEntered { .. }
        | Event::StateLeft { .. }
        | Event::StateSkipped { .. }
        | Event::TaskRetried { .. }
        | Event::ActionStarted { .. }
        | Event::ActionCompleted { .. }
        | Event::ActionFailed { .. }
        | Event::ActionSkipped { .. }
        | Event::EventConsumed { .. }
        | Event::EventProduced { .. }
        | Event::Forked { .. }
        | Event::Joined { .. }
        | Event::TimedOut { .. }
        | Event::ErrorHandled { .. }
        | Event::ValidationFailed { .. }
        | Event::AttributeLeftOut { .. }
        | Event::Compensating { .. }
        | Event::Compensated
        | Event::BranchFailed { .. }
        | Event::Retried
        | Event::CallRepeated { .. }
        | Event::Operated { .. }
        | Event::StartRefused { .. }
        | Event::GivenUp { .. }
        | Event::Idle
        | Event::Ended { .. } => {}
    }
}
