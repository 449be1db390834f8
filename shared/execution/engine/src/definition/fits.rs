//! Checks that a stored scope fits its definition. Records refer to states, lists, events and paths by number, and a
//! damaged record may refer to something that doesn't exist.

use swirl_model::event::{Input, Subscription};
use swirl_model::scope::{
    ActionStep, BranchResult, Cursor, Exit, FramePart, ListRun, Merge, Position, Role, Scope,
    TaskRun, Work,
};
use swirl_model::workflow::{ExprId, ListId, PathId, State, StateId, StateKind};

use crate::Definition;

impl Definition {
    /// Whether the definition has everything that a scope refers to. Each scope that was read is checked before it gets
    /// an input.
    pub fn fits(&self, scope: &Scope) -> bool {
        let role = match scope.role {
            Role::Root => true,
            Role::Branch { state, .. }
            | Role::Iteration { state, .. }
            | Role::Entry { state, .. }
            | Role::Apart { state, .. } => self.has_state(state),
            Role::Action { list, index } | Role::Detached { list, index } => self
                .actions_of(list)
                .is_some_and(|all| (index as usize) < all),
        };
        let position = match &scope.cursor {
            Cursor::At(position) => self.fits_position(position),
            Cursor::Fresh | Cursor::Idle | Cursor::Ended => true,
        };
        let mut frames = scope.frames.iter();
        let frames = frames.all(|frame| {
            let kind = self.state(frame.state).map(|state| &state.kind);
            frame.params as usize <= scope.params.len()
                && self.fits_task(frame.state, &frame.task)
                && match kind {
                    Some(_) if frame.part == FramePart::Extension => frame
                        .extending
                        .as_ref()
                        .is_some_and(|it| it.way.is_none_or(|way| self.fits_way(way))),
                    Some(StateKind::Do(_) | StateKind::Function(_)) => true,
                    Some(StateKind::For(_)) => frame.iteration.is_some(),
                    Some(StateKind::Listen(_)) => frame.listen.is_some(),
                    Some(StateKind::Try(attempt)) => match frame.part {
                        FramePart::Body => frame.attempt.is_some(),
                        FramePart::Handler => attempt.handler.is_some(),
                        FramePart::Extension => false,
                    },
                    _ => false,
                }
        });
        let mut waits = scope.waits();
        let mut states = scope.completed.iter();
        let mut events = scope.start_events.iter();
        let extended = scope.extended.as_ref();
        role && position
            && frames
            && extended.is_none_or(|it| self.has_state(it.state))
            && waits.all(|wait| self.fits_wait(wait))
            && states.all(|state| self.has_state(*state))
            && self.fits_merges(&scope.merges)
            && events.all(|event| self.has_event(event.def))
            && scope.compensation.as_ref().is_none_or(|open| {
                let mut states = open.left.iter().chain(&open.of);
                states.all(|state| self.has_state(*state)) && self.fits_way(open.then)
            })
    }

    /// Whether the definition has all parts that an input refers to and that are used immediately. An unknown event is
    /// treated as one that nothing waits for.
    pub fn fits_input(&self, input: &Input) -> bool {
        let Input::Joined { results, .. } = input else {
            return true;
        };
        results.iter().all(|(_, result)| match result {
            BranchResult::Done { merges, .. } => self.fits_merges(merges),
            BranchResult::Left { way, .. } => self.fits_way(*way),
            BranchResult::Failed(_)
            | BranchResult::Lost { .. }
            | BranchResult::Terminated { .. } => true,
        })
    }

    pub(crate) fn fits_merges(&self, merges: &[Merge]) -> bool {
        merges.iter().all(|merge| {
            let has_path = |path: PathId| (path.0 as usize) < self.workflow.paths.len();
            let has_filter = |id: ExprId| (id.0 as usize) < self.workflow.expressions.len();
            merge.to.is_none_or(has_path) && merge.output.is_none_or(has_filter)
        })
    }

    fn has_state(&self, id: StateId) -> bool {
        self.state(id).is_some()
    }

    fn state(&self, id: StateId) -> Option<&State> {
        self.workflow.states.get(id.0 as usize)
    }

    pub(crate) fn has_event(&self, def: u32) -> bool {
        (def as usize) < self.workflow.events.len()
    }

    fn actions_of(&self, id: ListId) -> Option<usize> {
        let list = self.workflow.lists.get(id.0 as usize);
        list.map(|list| list.actions.len())
    }

    fn fits_wait(&self, wait: &Subscription) -> bool {
        let mut filters = wait.slots.iter().flat_map(|slot| &slot.filters);
        filters.all(|filter| self.has_event(filter.def.0))
    }

    /// Whether the extensions of a task that has begun exist.
    fn fits_task(&self, id: StateId, run: &TaskRun) -> bool {
        let all = self.workflow.tasks.as_ref();
        let all = all.map_or(0, |tasks| tasks.extensions.len());
        let progress = run.extensions.as_ref();
        self.has_state(id)
            && progress.is_none_or(|it| it.after.iter().all(|index| usize::from(*index) < all))
    }

    fn fits_position(&self, position: &Position) -> bool {
        if let (Some(id), Some(run)) = (position.state, &position.task)
            && !self.fits_task(id, run)
        {
            return false;
        }
        let state = match position.state.map(|id| self.state(id)) {
            Some(None) => return false,
            Some(state) => state,
            None => None,
        };
        let events = position.events.as_ref().is_none_or(|run| {
            let entries = match state.map(|state| &state.kind) {
                Some(StateKind::Event(event)) => event.entries.len(),
                _ => 0,
            };
            let forks = run.forks.iter().map(|entry| &entry.entry);
            let timers = run.timers.iter().map(|timer| &timer.entry);
            let over = run.done.iter().chain(&run.running).chain(&run.lapsed);
            let mut named = over.chain(forks).chain(timers);
            named.all(|index| usize::from(*index) < entries)
                && run.arrived.iter().all(|(def, _)| self.has_event(*def))
        });
        events
            && match &position.work {
                Work::List(run) => self.fits_list(run),
                Work::Fork(run) => run.list.is_none_or(|list| self.actions_of(list).is_some()),
                Work::Continue { way, .. } | Work::Finish { way, .. } => self.fits_way(*way),
                Work::Begin | Work::Sleep | Work::Events | Work::Retry => true,
            }
    }

    fn fits_list(&self, run: &ListRun) -> bool {
        let Some(actions) = self.actions_of(run.list) else {
            return false;
        };
        // After the last action, no action can be in progress.
        let is_there = run.index < run.end || run.index == run.end && run.step == ActionStep::Ready;
        is_there && usize::from(run.end) <= actions
    }

    pub(crate) fn fits_way(&self, way: Exit) -> bool {
        if let Exit::Action(id, index) = way {
            let action = self.workflow.actions.get(id.0 as usize);
            return action.is_some_and(|action| usize::from(index) < action.on_errors.len());
        }
        let (id, index) = match way {
            Exit::State(id) | Exit::Default(id) => return self.has_state(id),
            Exit::Handler(id, index)
            | Exit::Condition(id, index)
            | Exit::EventCondition(id, index)
            | Exit::Entry(id, index) => (id, usize::from(index)),
            Exit::Action(..) => return false,
        };
        let Some(state) = self.state(id) else {
            return false;
        };
        match (way, &state.kind) {
            (Exit::Handler(..), StateKind::Try(_)) => true,
            (Exit::Handler(..), _) => index < state.on_errors.len(),
            (Exit::Condition(..), StateKind::Switch(switch)) => index < switch.conditions.len(),
            (Exit::EventCondition(..), StateKind::SwitchEvents(switch)) => {
                index < switch.conditions.len()
            }
            (Exit::Entry(..), StateKind::Event(event)) => index < event.entries.len(),
            _ => false,
        }
    }
}
