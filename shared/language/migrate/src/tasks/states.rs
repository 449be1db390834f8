//! States as tasks.

use swirl_model::Data;
use swirl_model::workflow::{Next, Produce, State, StateId, StateKind, Switch, Test};

use super::actions::Layout;
use super::event_states::begin;
use super::jq_text::grouped;
use super::merge;
use super::raise::raised;
use super::writer::{Tasks, Writer, append, do_list, list, marked, object};

impl Writer<'_> {
    /// The task of a state, and further ones behind it.
    pub fn state(&mut self, id: StateId) -> Tasks {
        let outside = self.at.replace(id);
        let tracked = self.tracks;
        let state = &self.workflow[id];
        self.tracks = needs_tracking(self, state);
        let name = self.name(id);
        let mut behind = Vec::new();
        let mut task = match &state.kind {
            StateKind::Switch(switch) => self.switch(state, switch, &name, &mut behind),
            StateKind::SwitchEvents(switch) => {
                self.switch_events(state, switch, &name, &mut behind)
            }
            _ => self.worked(id, state, &name, &mut behind),
        };
        self.cannot_if(
            state.compensated_by.is_some() && !state.kind.switch_ways().is_empty(),
            "a switch is compensated",
        );
        if state
            .metadata
            .as_object()
            .is_some_and(|all| !all.is_empty())
        {
            task.set("metadata", state.metadata.clone());
        }
        self.at = outside;
        self.tracks = tracked;
        let mut tasks = vec![(name, task)];
        tasks.append(&mut behind);
        tasks
    }

    fn worked(&mut self, id: StateId, state: &State, name: &str, behind: &mut Tasks) -> Data {
        let mut work = self.work(id, state);
        let is_list = matches!(
            state.kind,
            StateKind::Operation(_) | StateKind::Event(_) | StateKind::Callback(_)
        );
        if self.tracks && !is_list {
            let context = marked("$context + {data: .}");
            work.set("export", object([("as", context)]));
            let tasks = vec![("begin".to_owned(), begin()), ("work".to_owned(), work)];
            work = do_list(tasks);
        }
        let mut around = state.clone();
        if self.starts_by_event(id) {
            // It is a filter of the state data, and the task's input is a list of events.
            around.input = None;
        }
        let mut task = self.filtered(&around, work);
        self.timeout(&mut task, state.timeout, ".");
        let events = in_order(state.next.as_ref());
        if !events.is_empty() {
            let mut tasks = vec![("work".to_owned(), task)];
            tasks.append(&mut self.events_within(events));
            task = do_list(tasks);
        }
        self.cannot_if(
            events.is_empty()
                && !state.on_errors.is_empty()
                && state.next.as_ref().is_some_and(produces),
            "a state that handles errors compensates, and then produces events",
        );
        task = self.record_completed(id, task);
        task = self.with_state_retry(state, task);
        task = self.with_state_handlers(state, name, task, behind);
        if let Some(next) = &state.next {
            let then = match events.is_empty() {
                true => self.way(next, ".", behind),
                false => self.way(&silent(next), ".", behind),
            };
            task.set("then", Data::string(then));
        }
        task
    }

    /// A state that is repeated as a whole.
    fn with_state_retry(&mut self, state: &State, task: Data) -> Data {
        let rule = match state.retries.as_slice() {
            [] => return task,
            [rule] if !rule.results => rule,
            _ => {
                self.cannot("a state is retried by several rules, or by its results");
                return task;
            }
        };
        self.cannot_if(
            self.tracks,
            "a state of several actions is retried: DSL 1.0 begins again with the data that it began with",
        );
        let Some(mut catch) = self.catch_of(&rule.errors) else {
            return task;
        };
        let Some(retry) = self.retry(&rule.policy, ".") else {
            return task;
        };
        catch.set("retry", retry);
        let body = list(vec![("work".to_owned(), task)]);
        object([("try", body), ("catch", catch)])
    }

    /// The work of a state, from the state data to the state data.
    fn work(&mut self, id: StateId, state: &State) -> Data {
        match &state.kind {
            StateKind::Inject(value) => {
                let text = merge::literal(value, self.objects);
                object([("set", marked(&text))])
            }
            StateKind::Operation(list) => {
                let mut tasks = self.list_tasks(*list, Layout::Plain);
                if tasks.is_empty() {
                    return object([("set", marked("."))]);
                }
                if self.tracks {
                    tasks.insert(0, ("begin".to_owned(), begin()));
                }
                do_list(tasks)
            }
            StateKind::Sleep(period) => object([("wait", self.period(*period, "."))]),
            StateKind::Parallel(parallel) => self.parallel(parallel),
            StateKind::Foreach(foreach) => self.foreach(foreach, &state.name),
            StateKind::Event(event) => self.event_state(id, event),
            StateKind::Callback(callback) => self.callback(callback),
            // Switches aren't work, and tasks aren't written.
            StateKind::Switch(_)
            | StateKind::SwitchEvents(_)
            | StateKind::Do(_)
            | StateKind::Emit(_)
            | StateKind::For(_)
            | StateKind::Function(_)
            | StateKind::Listen(_)
            | StateKind::Raise(_)
            | StateKind::Set(_)
            | StateKind::Try(_) => {
                self.cannot("no task does what a state of this type does");
                Data::object()
            }
        }
    }

    fn switch(&mut self, state: &State, switch: &Switch, name: &str, behind: &mut Tasks) -> Data {
        let mut tests = Vec::new();
        for condition in &switch.conditions {
            tests.push(match &condition.test {
                Test::Holds(id) => self.expr(*id, "."),
                _ => {
                    self.cannot("a condition compares a path with a value, and the path can't be written in jq here");
                    "true".to_owned()
                }
            });
        }
        let mut thens = Vec::new();
        for condition in &switch.conditions {
            thens.push(self.way(&condition.next, ".", behind));
        }
        let default = match &switch.default {
            Some(next) => self.way(next, ".", behind),
            None => {
                let none = self.new_name(&format!("{name}-none"));
                let raise = raised("NoMatchingCondition", "no condition holds");
                behind.push((none.clone(), raise));
                none
            }
        };
        if state.on_errors.is_empty() && state.timeout.is_none() {
            let tests = tests.iter().map(|test| marked(test));
            let task = object([("switch", cases(switch, tests, thens, default))]);
            return self.filtered(state, task);
        }
        // The conditions are tested inside, where the handlers take their errors; the way is taken outside.
        let mut task = self.choice(state, switch, &tests);
        let mut nexts = switch
            .conditions
            .iter()
            .map(|one| &one.next)
            .chain(&switch.default);
        self.cannot_if(
            nexts.any(|next| !in_order(Some(next)).is_empty() || produces(next)),
            "a way of a switch that handles errors produces events",
        );
        self.timeout(&mut task, state.timeout, ".");
        let mut task = self.with_state_handlers(state, name, task, behind);
        let ways = self.new_name(&format!("{name}-ways"));
        let numbers = (1..=tests.len()).map(|number| marked(&format!(".way == {number}")));
        let chosen = object([
            ("switch", cases(switch, numbers, thens, default)),
            ("output", object([("as", marked(".data"))])),
        ]);
        task.set("then", Data::string(ways.as_str()));
        behind.insert(0, (ways, chosen));
        task
    }

    /// Finds the condition that holds: the output is the data, and the condition's number as `way`, 0 if there is none.
    fn choice(&mut self, state: &State, switch: &Switch, tests: &[String]) -> Data {
        let mut text = String::new();
        for (place, test) in tests.iter().enumerate() {
            let word = if place == 0 { "if" } else { " elif" };
            let test = grouped(test);
            let checked = format!(
                "({test} | if type == \"boolean\" or . == null then . else error(\"a condition gives neither true nor false\") end)"
            );
            text.push_str(&format!("{word} {checked} then {}", place + 1));
        }
        text.push_str(" else 0 end");
        let found = object([("set", marked(&format!("{{data: ., way: ({text})}}")))]);
        let mut inner = state.clone();
        inner.output = None;
        inner.output_schema = None;
        let mut task = self.filtered(&inner, found);
        if state.output.is_some() || state.output_schema.is_some() {
            let mut filters = state.clone();
            (filters.input, filters.input_schema) = (None, None);
            let all = self.filtered(&filters, object([("set", marked(".data"))]));
            let put = object([
                ("do", list(vec![("filter".to_owned(), all)])),
                (
                    "output",
                    object([("as", marked(". as $data | $input | .data = $data"))]),
                ),
            ]);
            task = do_list(vec![
                ("choose".to_owned(), task),
                ("output".to_owned(), put),
            ]);
        }
        if switch.default.is_none() {
            let mut raise = object([("if", marked(".way == 0"))]);
            append(
                &mut raise,
                &raised("NoMatchingCondition", "no condition holds"),
            );
            task = do_list(vec![
                ("choose".to_owned(), task),
                ("none".to_owned(), raise),
            ]);
        }
        task
    }
}

/// The cases of a switch task, in the order of the conditions, and the default.
fn cases(
    switch: &Switch,
    whens: impl Iterator<Item = Data>,
    thens: Vec<String>,
    default: String,
) -> Data {
    let ways = switch.conditions.iter().zip(whens.zip(thens));
    let mut cases: Tasks = Vec::new();
    for (place, (condition, (when, then))) in ways.enumerate() {
        let named = condition.name.clone().filter(|name| !name.is_empty());
        let case = named.unwrap_or_else(|| format!("case-{}", place + 1));
        cases.push((case, object([("when", when), ("then", Data::string(then))])));
    }
    let then = object([("then", Data::string(default))]);
    cases.push(("default".to_owned(), then));
    list(cases)
}

/// The way without its events.
fn silent(next: &Next) -> Next {
    let mut next = next.clone();
    match &mut next {
        Next::Transition(transition) => transition.produce.clear(),
        Next::End(end) => end.produce.clear(),
        Next::Leave | Next::Skip => {}
    }
    next
}

fn produces(next: &Next) -> bool {
    match next {
        Next::Transition(transition) => !transition.produce.is_empty(),
        Next::End(end) => !end.produce.is_empty(),
        Next::Leave | Next::Skip => false,
    }
}

/// The events of a way that the state itself produces. If the way compensates, that comes before its events.
fn in_order(next: Option<&Next>) -> &[Produce] {
    match next {
        Some(Next::Transition(transition)) if !transition.compensate => &transition.produce,
        Some(Next::End(end)) if !end.compensate => &end.produce,
        _ => &[],
    }
}

/// Whether a handler may continue with data that the state's work has changed.
fn needs_tracking(writer: &Writer<'_>, state: &State) -> bool {
    if state.on_errors.is_empty() && state.retries.is_empty() {
        return false;
    }
    let workflow = writer.workflow;
    let produces = state.next.as_ref().is_some_and(produces);
    let lists = state.kind.action_lists();
    let count: usize = lists.iter().map(|id| workflow[*id].actions.len()).sum();
    let sleeps = || {
        let mut actions = lists.iter().flat_map(|id| &workflow[*id].actions);
        actions.any(|id| workflow[*id].sleep_after.is_some())
    };
    let ends = state.output.is_some()
        || state.output_schema.is_some()
        || produces
        || (state.timeout.is_some() && sleeps());
    match &state.kind {
        StateKind::Operation(list) => {
            (count > 1 && !workflow[*list].parallel) || (count > 0 && ends)
        }
        StateKind::Event(_) | StateKind::Callback(_) => count > 0 || ends,
        StateKind::Switch(_) | StateKind::SwitchEvents(_) | StateKind::Sleep(_) => false,
        _ => ends,
    }
}
