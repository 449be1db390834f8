//! States.

use swirl_model::Data;
use swirl_model::workflow::{
    Body, Branch, Foreach, IterationMode, ListId, Parallel, Period, State, StateId, StateKind,
    Switch, SwitchEvents, Test, Workflow,
};

use super::ways::root_states;
use super::writer::{SetIf, Writer, is_filled, metadata};

/// Never shown, because `flows` has reported why the states aren't a sub-workflow.
pub(super) const STATES_STAY: &str = "a branch or an iteration has states";

/// Timeouts of a state or branch.
#[derive(Default)]
struct Timeouts {
    state: Option<Period>,
    action: Option<Period>,
    branch: Option<Period>,
    event: Option<Period>,
}

impl Writer<'_> {
    pub fn states(&mut self) -> Vec<Data> {
        let ids = root_states(self.workflow);
        ids.into_iter().map(|id| self.state(id)).collect()
    }

    fn state(&mut self, id: StateId) -> Data {
        self.at = Some(id);
        let state = &self.workflow[id];
        let mut data = Data::object();
        data.set("name", Data::string(&*state.name));
        data.set("type", Data::string(state.kind.as_str()));
        self.cannot_if(
            state.flow != Workflow::ROOT,
            "the state is inside a branch or an iteration",
        );
        self.cannot_if(!state.retries.is_empty(), "a state is retried as a whole");
        self.cannot_if(
            state.input_schema.is_some() || state.output_schema.is_some(),
            "a state's data has a schema",
        );
        let mut filter = Data::object();
        filter.set_if("input", state.input.map(|id| self.expression(id)));
        filter.set_if("output", state.output.map(|id| self.expression(id)));
        if is_filled(&filter) {
            data.set("stateDataFilter", filter);
        }
        self.kind(state, &mut data);
        let handlers = self.handlers(&state.on_errors);
        data.list("onErrors", handlers);
        let compensated_by = state.compensated_by.map(|id| &*self.workflow[id].name);
        data.set_if("compensatedBy", compensated_by.map(Data::string));
        data.flag("usedForCompensation", state.used_for_compensation);
        data.set_if("metadata", metadata(&state.metadata));
        if let Some(next) = &state.next {
            self.next(next, &mut data);
        }
        self.at = None;
        data
    }

    fn kind(&mut self, state: &State, data: &mut Data) {
        let mut timeouts = Timeouts {
            state: state.timeout,
            ..Timeouts::default()
        };
        match &state.kind {
            StateKind::Callback(callback) => {
                timeouts.event = callback.timeout;
                timeouts.action = self.action_timeout(&[callback.actions]);
                let list = &self.workflow[callback.actions];
                if let Some(id) = list.actions.first() {
                    let action = self.action(&self.workflow[*id]);
                    data.set("action", action);
                }
                data.set("eventRef", self.event_name(callback.event));
                data.set_if("eventDataFilter", self.event_filter(&callback.filter));
            }
            StateKind::Event(event) => {
                timeouts.event = event.timeout;
                let lists: Vec<ListId> = event.entries.iter().map(|entry| entry.actions).collect();
                timeouts.action = self.action_timeout(&lists);
                self.event_state(event, data);
            }
            StateKind::Foreach(foreach) => self.foreach(foreach, data, &mut timeouts),
            StateKind::Inject(value) => {
                let value = match value.is_null() {
                    true => Data::object(),
                    false => value.clone(),
                };
                data.set("data", value);
            }
            StateKind::Operation(id) => {
                timeouts.action = self.action_timeout(&[*id]);
                self.actions(*id, data);
            }
            StateKind::Parallel(parallel) => self.parallel(parallel, data),
            StateKind::Sleep(period) => {
                let period = self.period(*period);
                data.set("duration", period);
            }
            StateKind::Switch(switch) => self.switch(switch, data),
            StateKind::SwitchEvents(switch) => {
                timeouts.event = switch.timeout;
                self.switch_events(switch, data);
            }
            // Tasks aren't written.
            StateKind::Do(_)
            | StateKind::Emit(_)
            | StateKind::For(_)
            | StateKind::Function(_)
            | StateKind::Listen(_)
            | StateKind::Raise(_)
            | StateKind::Set(_)
            | StateKind::Try(_) => {}
        }
        let is_timeless = matches!(state.kind, StateKind::Sleep(_) | StateKind::Inject(_));
        self.cannot_if(
            is_timeless && state.timeout.is_some(),
            "a state that sleeps or injects has a timeout",
        );
        self.timeouts(&timeouts, data);
    }

    fn timeouts(&mut self, timeouts: &Timeouts, data: &mut Data) {
        let mut written = Data::object();
        for (name, period) in [
            ("stateExecTimeout", timeouts.state),
            ("actionExecTimeout", timeouts.action),
            ("branchExecTimeout", timeouts.branch),
            ("eventTimeout", timeouts.event),
        ] {
            written.set_if(name, period.map(|period| self.period(period)));
        }
        if is_filled(&written) {
            data.set("timeouts", written);
        }
    }

    fn foreach(&mut self, foreach: &Foreach, data: &mut Data, timeouts: &mut Timeouts) {
        data.set("inputCollection", self.expression(foreach.input));
        data.set_if("outputCollection", foreach.output.map(|id| self.path(id)));
        data.set("iterationParam", Data::string(&*foreach.param));
        match foreach.mode {
            IterationMode::Sequential => data.set("mode", Data::string("sequential")),
            IterationMode::Parallel => data.set("mode", Data::string("parallel")),
            IterationMode::Batches(count) => {
                let count = self.count(count);
                data.set("batchSize", count);
            }
            IterationMode::Window(_) => {
                self.cannot("'max' bounds how many iterations run at once; 0.8 has batches");
            }
        }
        self.cannot_if(
            foreach.pause.is_some(),
            "there is a pause between iterations",
        );
        match foreach.body {
            Body::Actions(id) => {
                timeouts.action = self.action_timeout(&[id]);
                self.actions(id, data);
            }
            Body::Flow(_) => self.cannot(STATES_STAY),
        }
    }

    fn parallel(&mut self, parallel: &Parallel, data: &mut Data) {
        if let Some(count) = parallel.at_least {
            data.set("completionType", Data::string("atLeast"));
            let count = self.count(count);
            data.set("numCompleted", count);
        }
        // Otherwise the branch itself is the obstacle.
        let is_plain = |branch: &Branch| branch.awaited && matches!(branch.body, Body::Actions(_));
        self.cannot_if(
            (parallel.collect || parallel.collect_to.is_some())
                && parallel.branches.iter().all(is_plain),
            "the outputs of the branches become a list; in 0.8 they are merged",
        );
        let branches = parallel.branches.iter();
        let branches = branches.map(|branch| self.branch(branch)).collect();
        data.list("branches", branches);
    }

    fn branch(&mut self, branch: &Branch) -> Data {
        let mut data = Data::object();
        data.set("name", Data::string(&*branch.name));
        self.cannot_if(!branch.awaited, "a branch isn't waited for");
        let mut timeouts = Timeouts {
            branch: branch.timeout,
            ..Timeouts::default()
        };
        match branch.body {
            Body::Actions(id) => {
                timeouts.action = self.action_timeout(&[id]);
                self.actions(id, &mut data);
            }
            Body::Flow(_) => self.cannot(STATES_STAY),
        }
        self.timeouts(&timeouts, &mut data);
        data
    }

    fn switch(&mut self, switch: &Switch, data: &mut Data) {
        let conditions = switch.conditions.iter().map(|condition| {
            let mut data = Data::object();
            data.set_if("name", condition.name.as_deref().map(Data::string));
            match &condition.test {
                Test::Holds(id) => {
                    let test = self.expression(*id);
                    data.set("condition", test);
                }
                Test::Exists(_) => {
                    self.cannot("a condition asks whether a path finds anything; in 0.8 it must be true or false");
                }
                Test::Compare { .. } | Test::All(_) | Test::Any(_) | Test::Not(_) => {
                    self.cannot("a condition compares a path with a value, and the path can't be written in jq here");
                }
            }
            self.next(&condition.next, &mut data);
            data
        });
        let conditions = conditions.collect();
        data.list("dataConditions", conditions);
        if let Some(next) = &switch.default {
            let mut default = Data::object();
            self.next(next, &mut default);
            data.set("defaultCondition", default);
        }
    }

    fn switch_events(&mut self, switch: &SwitchEvents, data: &mut Data) {
        let conditions = switch.conditions.iter().map(|condition| {
            let mut data = Data::object();
            data.set_if("name", condition.name.as_deref().map(Data::string));
            data.set("eventRef", self.event_name(condition.event));
            data.set_if("eventDataFilter", self.event_filter(&condition.filter));
            self.next(&condition.next, &mut data);
            data
        });
        let conditions = conditions.collect();
        data.list("eventConditions", conditions);
        if let Some(next) = &switch.default {
            let mut default = Data::object();
            self.next(next, &mut default);
            data.set("defaultCondition", default);
        }
    }
}
