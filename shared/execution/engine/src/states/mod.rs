//! The kinds of states. Each has a file, and a line in [`kind_of`].

mod at;
mod callback;
mod do_list;
mod emit;
mod event;
mod for_each;
mod foreach;
mod function;
mod inject;
mod listen;
mod operation;
mod parallel;
mod raise;
mod set;
mod sleep;
mod switch;
mod switch_events;
mod try_list;

use swirl_model::CloudEvent;
use swirl_model::scope::{BranchResult, EntryFork, ForkRun, Frame, Merge, Work};
use swirl_model::workflow::{EventId, StateKind};

use crate::scope::{Next, Step};

pub(crate) use at::At;

/// What a state does, by the kind of its definition. Everything that a kind doesn't return as [`Next`], it does with the
/// methods of [`At`].
pub(crate) trait Kind {
    /// The work of the state begins, or is repeated as a whole.
    fn begin(&self, at: &mut At<'_, '_>) -> Step;

    /// All actions of its list are done.
    fn listed(&self, at: &mut At<'_, '_>) -> Step {
        at.done()
    }

    /// Enough branches of its fork are done. Without results, more of them may begin.
    fn joined(&self, _: &mut At<'_, '_>, _: &ForkRun, _results: Vec<(u32, BranchResult)>) -> Step {
        Ok(Next::Block)
    }

    /// The pause before the next branch has ended.
    fn paused(&self, _: &mut At<'_, '_>, _: &ForkRun) -> Step {
        Ok(Next::Block)
    }

    /// An event that it waits for has arrived.
    fn arrived(&self, _: &mut At<'_, '_>, _: EventId, _: CloudEvent) -> Step {
        Ok(Next::Block)
    }

    /// `eventTimeout` has passed.
    fn expired(&self, at: &mut At<'_, '_>) -> Step {
        at.unsubscribe();
        at.done()
    }

    /// The actions of one of its entries, which have a fork of their own, are done.
    fn entry_done(&self, _: &mut At<'_, '_>, _: EntryFork, _: Vec<Merge>) -> Step {
        Ok(Next::Block)
    }

    /// The timeout of one of its entries has passed.
    fn entry_expired(&self, _: &mut At<'_, '_>, _timer: u32) -> Step {
        Ok(Next::Block)
    }

    /// Its list of tasks has ended, with the list's output as the data.
    fn left(&self, at: &mut At<'_, '_>, _: &Frame) -> Step {
        at.pop_frame();
        at.done()
    }

    /// An operator retries the state while it waits for events, since a fault ends all waits.
    fn resume(&self, at: &mut At<'_, '_>) -> Step {
        at.work(Work::Begin);
        Ok(Next::Block)
    }

    /// The same, while an action of it runs.
    fn resume_beside(&self, _: &mut At<'_, '_>) -> Step {
        Ok(Next::Block)
    }
}

pub(crate) fn kind_of(kind: &StateKind) -> &dyn Kind {
    match kind {
        StateKind::Callback(callback) => callback,
        StateKind::Do(list) => list,
        StateKind::Emit(emit) => emit,
        StateKind::Event(event) => event,
        StateKind::For(each) => each,
        StateKind::Foreach(foreach) => foreach,
        StateKind::Function(function) => function,
        StateKind::Inject(data) => data,
        StateKind::Listen(listen) => &**listen,
        StateKind::Operation(list) => list,
        StateKind::Parallel(parallel) => parallel,
        StateKind::Raise(raise) => raise,
        StateKind::Set(value) => value,
        StateKind::Sleep(period) => period,
        StateKind::Switch(switch) => switch,
        StateKind::SwitchEvents(switch) => switch,
        StateKind::Try(attempt) => &**attempt,
    }
}
