//! The visible parts of a workflow: nodes, edges and texts, without any geometry.

use std::collections::HashMap;

use swirl_model::workflow::{
    ActionId, ActionKind, Body, Count, End, EventId, ExprId, FlowId, ListId, Next, OnEvents,
    Period, Produce, State, StateId, StateKind, Then, When, Workflow,
};

mod card;
mod shape;

pub use shape::{Card, Chart, Edge, Flow, Group, Mark, Node, Style, Trace};

use super::extent::Extent;
use super::line::{Line, Sign};
use super::{details, handlers, tasks, words};

/// The number of lines in one place.
const LINES_MAX: usize = 40;

impl Chart {
    /// A simple chart if the workflow is too large.
    pub fn new(workflow: &Workflow) -> Chart {
        match Extent::of(workflow).is_readable() {
            true => Chart::whole(workflow),
            false => Chart::simple(workflow),
        }
    }

    /// However large the workflow is.
    pub fn whole(workflow: &Workflow) -> Chart {
        Chart {
            flow: Build::flow(workflow, Workflow::ROOT),
            ..Chart::headed(workflow)
        }
    }

    /// For a workflow that is too large: only the states of its main flow, by name.
    pub fn simple(workflow: &Workflow) -> Chart {
        let states = &workflow[Workflow::ROOT].states;
        let card = |state: &StateId| {
            let state = &workflow[*state];
            Node::State(Box::new(Card {
                name: Line::new(Sign::None, &state.name),
                kind: tasks::word(state),
                compensating: state.used_for_compensation,
                lines: Vec::new(),
                groups: Vec::new(),
                mark: None,
                order: 0,
            }))
        };
        let extent = Extent::of(workflow);
        let mut chart = Chart::headed(workflow);
        chart.captions.push(format!(
            "too large to be drawn as a whole: {} states with {} ways between them; only the states of the main flow \
             are shown",
            workflow.states.len(),
            extent.ways
        ));
        Chart {
            flow: Flow {
                nodes: states.iter().map(card).collect(),
                edges: Vec::new(),
            },
            is_simple: true,
            ..chart
        }
    }

    /// With everything but its flow.
    fn headed(workflow: &Workflow) -> Chart {
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
                When::After(text) => format!("starts {text} after each end"),
                When::Window(text) => format!("may be started within {text}{zone}"),
            });
        }
        let starts = workflow
            .tasks
            .as_ref()
            .and_then(|tasks| tasks.starts.as_ref());
        if let Some(starts) = starts {
            captions.push(format!(
                "starts by events: {}",
                words::starts(workflow, starts)
            ));
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
            flow: Flow::default(),
            is_simple: false,
        }
    }
}

/// So many lines that they can be read.
fn readable(mut lines: Vec<Line>) -> Vec<Line> {
    if lines.len() > LINES_MAX {
        let left_out = lines.split_off(LINES_MAX - 1).len();
        lines.push(Line::new(Sign::None, format!("… and {left_out} more")));
    }
    lines
}

struct Build<'w> {
    workflow: &'w Workflow,
    flow: Flow,
    places: HashMap<StateId, usize>,
    /// Where the edges of the current state begin.
    own: usize,
}

impl<'w> Build<'w> {
    fn flow(workflow: &'w Workflow, id: FlowId) -> Flow {
        let mut build = Build {
            workflow,
            flow: Flow::default(),
            places: HashMap::new(),
            own: 0,
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
                labels: readable(labels),
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
        self.own = self.flow.edges.len();
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
            Next::Leave | Next::Skip => self.way(from, &Next::End(End::default()), labels, style),
            Next::End(end) => {
                let notes = self.end_notes(end);
                // Ways of one state with equal ends share one end.
                let alike = self.flow.edges[self.own..].iter().find_map(|edge| {
                    match &self.flow.nodes[edge.to] {
                        Node::End {
                            terminate,
                            notes: other,
                        } if *terminate == end.terminate && *other == notes => Some(edge.to),
                        _ => None,
                    }
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
                    labels: readable(labels),
                    style,
                    trace: Trace::Plain,
                });
            }
        }
    }

    fn end_notes(&self, end: &End) -> Vec<Line> {
        let mut notes = Vec::new();
        if end.terminate {
            let note = match tasks::are_in(self.workflow) {
                true => "ends the workflow",
                false => "terminate",
            };
            notes.push(Line::new(Sign::None, note));
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
        readable(notes)
    }

    fn produced(&self, produce: &[Produce]) -> Vec<Line> {
        produce
            .iter()
            .map(|produce| Line::new(Sign::Out, self.event(produce.event)))
            .collect()
    }

    fn body(&self, title: String, body: Body) -> Group {
        let title = Line::new(Sign::None, title);
        match body {
            Body::Actions(list) => Group::new(title, readable(self.actions(list)), None),
            Body::Flow(flow) => {
                let flow = Build::flow(self.workflow, flow);
                Group::new(title, vec![], Some(flow))
            }
        }
    }

    fn entry(&self, entry: &OnEvents) -> Vec<Line> {
        let mut lines = vec![Line::new(Sign::In, self.entry_name(entry))];
        lines.extend(self.actions(entry.actions));
        readable(lines)
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

    /// The functions and workflows that a state calls.
    fn call(&self, state: &State, list: ListId) -> Vec<Line> {
        match tasks::called(state) {
            Some(line) => vec![line],
            None => self.actions(list),
        }
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
