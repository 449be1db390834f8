//! The visible parts of a workflow: nodes, edges and texts, without any geometry.

use std::collections::HashMap;

use swirl_model::workflow::{
    ActionId, ActionKind, Body, Count, End, EventId, ExprId, FlowId, IterationMode, ListId, Next,
    OnEvents, Period, Produce, State, StateId, StateKind, Then, When, Workflow,
};

use super::line::{Line, Sign};
use super::{details, handlers, words};

/// A workflow in drawable form.
#[derive(Debug)]
pub struct Chart {
    pub title: String,
    pub captions: Vec<String>,
    pub flow: Flow,
}

/// A flow of states: the workflow's own, or one inside a branch or iteration.
#[derive(Debug, Default)]
pub struct Flow {
    /// The start is first.
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

#[derive(Debug)]
pub enum Node {
    Start,
    /// The workflow timed out.
    Timeout(String),
    State(Box<Card>),
    End {
        terminate: bool,
        notes: Vec<Line>,
    },
}

/// A state.
#[derive(Debug)]
pub struct Card {
    pub name: Line,
    pub kind: &'static str,
    /// Runs only in order to undo another state.
    pub compensating: bool,
    pub lines: Vec<Line>,
    /// Branches, iterations, entries of an event state.
    pub groups: Vec<Group>,
    /// The instance's progress in this state, whether tests have run it, or how many instances are in it.
    pub mark: Option<Mark>,
}

/// An instance's progress in a state, the number of times that tests have run it, or how many instances are in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Past,
    Here,
    Failed,
    Covered(u64),
    Uncovered,
    Occupied {
        running: u64,
        faulted: u64,
        /// How full it is compared with the others, from 1 to 3.
        level: u8,
    },
}

#[derive(Debug)]
pub struct Group {
    /// Empty if the group has no title.
    pub title: Line,
    pub lines: Vec<Line>,
    pub flow: Option<Flow>,
}

#[derive(Debug)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub labels: Vec<Line>,
    pub style: Style,
    pub trace: Trace,
}

/// Whether a way was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// Unknown, or an instance hasn't taken it.
    Plain,
    Taken,
    /// No test has taken it.
    Uncovered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Normal,
    Error,
    Compensation,
    Timeout,
}

impl Chart {
    pub fn new(workflow: &Workflow) -> Chart {
        let version = match &workflow.version {
            swirl_model::workflow::Version::Literal(text) => text.clone(),
            swirl_model::workflow::Version::Expression(id) => workflow[*id].text.clone(),
            swirl_model::workflow::Version::Latest => String::new(),
        };
        let title = workflow.name.clone().unwrap_or_else(|| workflow.id.clone());
        let mut captions = Vec::new();
        captions.push(format!("{} {version}", workflow.id).trim().to_owned());
        if let Some(schedule) = &workflow.schedule {
            let zone = schedule
                .timezone
                .as_ref()
                .map(|zone| format!(" ({zone})"))
                .unwrap_or_default();
            captions.push(match &schedule.when {
                When::Cron { expression, .. } => format!("starts by cron: {expression}{zone}"),
                When::Interval(text) => format!("starts at each interval: {text}{zone}"),
                When::Window(text) => format!("may be started within {text}{zone}"),
            });
        }
        if let Some(timeout) = &workflow.timeout {
            captions.push(format!(
                "runs at most {}",
                words::period(workflow, &timeout.duration)
            ));
        }
        Chart {
            title,
            captions,
            flow: Build::flow(workflow, Workflow::ROOT),
        }
    }
}

struct Build<'w> {
    workflow: &'w Workflow,
    flow: Flow,
    places: HashMap<StateId, usize>,
}

impl<'w> Build<'w> {
    fn flow(workflow: &'w Workflow, id: FlowId) -> Flow {
        let mut build = Build {
            workflow,
            flow: Flow::default(),
            places: HashMap::new(),
        };
        build.flow.nodes.push(Node::Start);
        let states = &workflow[id].states;
        for &state in states {
            build.places.insert(state, build.flow.nodes.len());
            let card = build.card(&workflow[state]);
            build.flow.nodes.push(Node::State(Box::new(card)));
        }
        build.edge(0, workflow[id].start, vec![], Style::Normal);
        for &state in states {
            build.ways(state);
        }
        if id == Workflow::ROOT
            && let Some(timeout) = &workflow.timeout
            && let Some(state) = timeout.run_before
        {
            build.flow.nodes.push(Node::Timeout(format!(
                "after {}",
                words::period(workflow, &timeout.duration)
            )));
            build.edge(build.flow.nodes.len() - 1, state, vec![], Style::Timeout);
        }
        build.flow
    }

    fn edge(&mut self, from: usize, to: StateId, labels: Vec<Line>, style: Style) {
        if let Some(&to) = self.places.get(&to) {
            self.flow.edges.push(Edge {
                from,
                to,
                labels,
                style,
                trace: Trace::Plain,
            });
        }
    }

    /// All ways out of a state.
    fn ways(&mut self, id: StateId) {
        let state = &self.workflow[id];
        let Some(&from) = self.places.get(&id) else {
            return;
        };
        match &state.kind {
            StateKind::Switch(switch) => {
                for condition in &switch.conditions {
                    let test = words::test(self.workflow, &condition.test);
                    let label = match &condition.name {
                        Some(name) => Line::short(Sign::None, name, format!("{name}: {test}")),
                        None => Line::new(Sign::None, test),
                    };
                    self.way(from, &condition.next, vec![label], Style::Normal);
                }
                if let Some(next) = &switch.default {
                    self.way(
                        from,
                        next,
                        vec![Line::new(Sign::None, "otherwise")],
                        Style::Normal,
                    );
                }
            }
            StateKind::SwitchEvents(switch) => {
                for condition in &switch.conditions {
                    let label = Line::new(Sign::In, &self.workflow[condition.event].name);
                    self.way(from, &condition.next, vec![label], Style::Normal);
                }
                if let Some(next) = &switch.default {
                    let after = switch
                        .timeout
                        .map(|time| format!("after {}", self.period(&time)));
                    let label = Line::new(Sign::Time, after.as_deref().unwrap_or("otherwise"));
                    self.way(from, next, vec![label], Style::Timeout);
                }
            }
            StateKind::Event(event) => {
                for entry in &event.entries {
                    if let Some(next) = &entry.next {
                        let label = Line::new(Sign::In, self.entry_name(entry));
                        self.way(from, next, vec![label], Style::Normal);
                    }
                }
            }
            _ => {}
        }
        if let Some(next) = &state.next {
            self.way(from, next, vec![], Style::Normal);
        }
        for handler in handlers::of_actions(self.workflow, &state.kind) {
            if let Then::Next(next) = &handler.then {
                let label = words::errors(self.workflow, &handler.errors);
                let labels = vec![Line::new(Sign::None, label)];
                self.way(from, next, labels, Style::Error);
            }
        }
        for handler in &state.on_errors {
            let next = match (&handler.then, &state.next) {
                (Then::Next(next), _) => next,
                (Then::Continue, Some(next)) => next,
                (Then::Continue, None) | (Then::Rethrow | Then::Throw(_), _) => continue,
            };
            let errors = words::errors(self.workflow, &handler.errors);
            self.way(
                from,
                next,
                vec![Line::new(Sign::None, errors)],
                Style::Error,
            );
        }
        if let Some(undo) = state.compensated_by {
            self.edge(
                from,
                undo,
                vec![Line::new(Sign::None, "undone by")],
                Style::Compensation,
            );
        }
    }

    fn way(&mut self, from: usize, next: &Next, mut labels: Vec<Line>, style: Style) {
        match next {
            Next::Transition(transition) => {
                if let Some(guard) = transition.guard {
                    labels.push(Line::new(Sign::None, self.text(guard)));
                }
                if transition.compensate {
                    labels.push(Line::new(Sign::None, "compensate"));
                }
                labels.extend(self.produced(&transition.produce));
                self.edge(from, transition.to, labels, style);
            }
            Next::End(end) => {
                let notes = self.end_notes(end);
                // Ways of one state with equal ends share one end.
                let alike = self
                    .flow
                    .edges
                    .iter()
                    .filter(|edge| edge.from == from)
                    .find_map(|edge| match &self.flow.nodes[edge.to] {
                        Node::End {
                            terminate,
                            notes: other,
                        } if *terminate == end.terminate && *other == notes => Some(edge.to),
                        _ => None,
                    });
                let to = alike.unwrap_or(self.flow.nodes.len());
                if alike.is_none() {
                    self.flow.nodes.push(Node::End {
                        terminate: end.terminate,
                        notes,
                    });
                }
                self.flow.edges.push(Edge {
                    from,
                    to,
                    labels,
                    style,
                    trace: Trace::Plain,
                });
            }
        }
    }

    fn end_notes(&self, end: &End) -> Vec<Line> {
        let mut notes = Vec::new();
        if end.terminate {
            notes.push(Line::new(Sign::None, "terminate"));
        }
        if end.compensate {
            notes.push(Line::new(Sign::None, "compensate"));
        }
        if let Some(status) = &end.fail {
            notes.push(Line::new(Sign::None, status));
        }
        notes.extend(self.produced(&end.produce));
        if let Some(next) = &end.continue_as {
            notes.push(Line::new(
                Sign::None,
                format!("continue as {}", next.workflow),
            ));
        }
        notes
    }

    fn produced(&self, produce: &[Produce]) -> Vec<Line> {
        produce
            .iter()
            .map(|produce| Line::new(Sign::Out, self.event(produce.event)))
            .collect()
    }

    fn card(&self, state: &State) -> Card {
        let mut lines = Vec::new();
        let mut groups = Vec::new();
        match &state.kind {
            StateKind::Callback(callback) => {
                lines.extend(self.actions(callback.actions));
                lines.push(Line::new(Sign::In, self.event(callback.event)));
                lines.extend(callback.timeout.map(|time| {
                    Line::new(Sign::Time, format!("waits at most {}", self.period(&time)))
                }));
            }
            StateKind::Event(event) => {
                match &event.entries[..] {
                    [entry] => lines.extend(self.entry(entry)),
                    entries => {
                        let how = if event.exclusive {
                            "the first of"
                        } else {
                            "all of"
                        };
                        lines.push(Line::new(Sign::None, how));
                        groups.extend(entries.iter().map(|entry| Group {
                            title: Line::new(Sign::None, ""),
                            lines: self.entry(entry),
                            flow: None,
                        }));
                    }
                }
                lines.extend(event.timeout.map(|time| {
                    Line::new(Sign::Time, format!("waits at most {}", self.period(&time)))
                }));
            }
            StateKind::Foreach(foreach) => {
                let mode = match foreach.mode {
                    IterationMode::Sequential => "one after another".to_owned(),
                    IterationMode::Parallel => "all at once".to_owned(),
                    IterationMode::Batches(count) => format!("in batches of {}", self.count(count)),
                    IterationMode::Window(count) => {
                        format!("at most {} at once", self.count(count))
                    }
                };
                lines.push(Line::new(Sign::None, mode));
                lines.extend(
                    foreach.pause.map(|time| {
                        Line::new(Sign::Time, format!("{} between", self.period(&time)))
                    }),
                );
                let title = format!("each {} in {}", foreach.param, self.text(foreach.input));
                groups.push(self.body(title, foreach.body));
            }
            StateKind::Inject(data) => lines.push(Line::new(Sign::None, data.to_string())),
            StateKind::Operation(list) => lines.extend(self.actions(*list)),
            StateKind::Parallel(parallel) => {
                let how = match parallel.at_least {
                    None => "all of".to_owned(),
                    Some(count) => format!("at least {} of", self.count(count)),
                };
                lines.push(Line::new(Sign::None, how));
                for branch in &parallel.branches {
                    let mut group = self.body(branch.name.to_string(), branch.body);
                    group.lines.extend(branch.timeout.map(|time| {
                        Line::new(Sign::Time, format!("at most {}", self.period(&time)))
                    }));
                    groups.push(group);
                }
            }
            StateKind::Sleep(time) => lines.push(Line::new(Sign::Time, self.period(time))),
            StateKind::Switch(_) | StateKind::SwitchEvents(_) => {}
        }
        lines.extend(
            state
                .timeout
                .map(|time| Line::new(Sign::Time, format!("at most {}", self.period(&time)))),
        );
        lines.extend(details::of_state(self.workflow, state));
        Card {
            name: Line::new(Sign::None, &state.name),
            kind: state.kind.as_str(),
            compensating: state.used_for_compensation,
            lines,
            groups,
            mark: None,
        }
    }

    fn body(&self, title: String, body: Body) -> Group {
        let title = Line::new(Sign::None, title);
        match body {
            Body::Actions(list) => Group {
                title,
                lines: self.actions(list),
                flow: None,
            },
            Body::Flow(flow) => Group {
                title,
                lines: vec![],
                flow: Some(Build::flow(self.workflow, flow)),
            },
        }
    }

    fn entry(&self, entry: &OnEvents) -> Vec<Line> {
        let mut lines = vec![Line::new(Sign::In, self.entry_name(entry))];
        lines.extend(self.actions(entry.actions));
        lines
    }

    fn entry_name(&self, entry: &OnEvents) -> String {
        let names: Vec<&str> = entry
            .events
            .iter()
            .map(|&event| self.event(event))
            .collect();
        let any = matches!(entry.wait, swirl_model::workflow::Wait::Any(_));
        names.join(if any { " or " } else { " and " })
    }

    fn actions(&self, list: ListId) -> Vec<Line> {
        let list = &self.workflow[list];
        let mut lines = Vec::new();
        if list.parallel && list.actions.len() > 1 {
            lines.push(Line::new(Sign::None, "at once"));
        }
        lines.extend(list.actions.iter().flat_map(|&action| self.action(action)));
        lines
    }

    fn action(&self, id: ActionId) -> Vec<Line> {
        let action = &self.workflow[id];
        let named = |what: &str| match &action.name {
            Some(name) if **name != *what => format!("{name}: {what}"),
            _ => what.to_owned(),
        };
        let mut lines = match &action.kind {
            ActionKind::Call(call) => {
                vec![Line::new(
                    Sign::Action,
                    named(&self.workflow[call.function].name),
                )]
            }
            ActionKind::Expression { function, .. } => {
                vec![Line::new(
                    Sign::Action,
                    named(&self.workflow[*function].name),
                )]
            }
            ActionKind::Subflow(subflow) => {
                vec![Line::new(Sign::Subflow, named(&subflow.workflow))]
            }
            ActionKind::Event(event) => {
                let mut lines = Vec::new();
                lines.extend(
                    event
                        .produce
                        .as_ref()
                        .map(|produce| Line::new(Sign::Out, self.event(produce.event))),
                );
                lines.extend(
                    event
                        .consume
                        .map(|event| Line::new(Sign::In, self.event(event))),
                );
                lines
            }
        };
        lines.extend(details::of_action(self.workflow, action));
        lines
    }

    fn event(&self, id: EventId) -> &str {
        &self.workflow[id].name
    }

    fn text(&self, id: ExprId) -> String {
        self.workflow[id].text.trim().to_owned()
    }

    fn period(&self, period: &Period) -> String {
        words::period(self.workflow, period)
    }

    fn count(&self, count: Count) -> String {
        match count {
            Count::Fixed(number) => number.to_string(),
            Count::Expression(id) => self.text(id),
        }
    }
}
