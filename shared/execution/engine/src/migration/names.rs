//! Maps the parts of one version to those of another one, by name.

use std::collections::HashMap;

use swirl_model::workflow::{
    Action, ActionKind, Body, EventId, ExprId, ExprSource, FlowId, ListId, Listen, OnEvents,
    PathId, StateId, StateKind, Template, TextPart, Workflow,
};

use crate::definition::flow::owners;

/// The new numbers by the numbers in the former version. `None`: the part no longer exists.
pub(super) struct Names {
    flows: Vec<Option<FlowId>>,
    states: Vec<Option<StateId>>,
    lists: Vec<Option<ListId>>,
    /// The state that a list belongs to.
    owners: Vec<Option<StateId>>,
    /// The entries of event states.
    entries: HashMap<(StateId, u16), u16>,
    events: Vec<Option<EventId>>,
    expressions: Vec<Option<ExprId>>,
    paths: Vec<Option<PathId>>,
}

fn at<T: Copy>(all: &[Option<T>], index: u32) -> Option<T> {
    all.get(index as usize).copied().flatten()
}

impl Names {
    pub fn new(from: &Workflow, to: &Workflow) -> Names {
        let events = from.events.iter().map(|event| {
            // Events of tasks have no names of their own: they are found with their tasks.
            if from.tasks.is_some() {
                return None;
            }
            let known = |other: &swirl_model::workflow::EventDef| {
                other.name == event.name && other.produced == event.produced
            };
            let place = to.events.iter().position(known);
            place.map(|place| EventId(place as u32))
        });
        let mut names = Names {
            flows: vec![None; from.flows.len()],
            states: vec![None; from.states.len()],
            lists: vec![None; from.lists.len()],
            owners: owners(from),
            entries: HashMap::new(),
            events: events.collect(),
            expressions: sources(&from.expressions, &to.expressions).map(ExprId),
            paths: sources(&from.paths, &to.paths).map(PathId),
        };
        let mut open = Vec::new();
        if !from.flows.is_empty() && !to.flows.is_empty() {
            open.push((Workflow::ROOT, Workflow::ROOT));
        }
        if let (Some(was), Some(is)) = (&from.tasks, &to.tasks) {
            for extension in &was.extensions {
                let mut others = is.extensions.iter();
                if let Some(other) = others.find(|other| other.name == extension.name) {
                    open.extend(extension.before.zip(other.before));
                    open.extend(extension.after.zip(other.after));
                }
            }
        }
        while let Some((was, is)) = open.pop() {
            if at(&names.flows, was.0).is_some() {
                continue;
            }
            names.flows[was.0 as usize] = Some(is);
            for id in &from[was].states {
                let found = same_state(from, (was, *id), to, is);
                names.states[id.0 as usize] = found;
                if let Some(found) = found {
                    names.pair_kinds(from, to, *id, found, &mut open);
                }
            }
        }
        names
    }

    fn pair_kinds(
        &mut self,
        from: &Workflow,
        to: &Workflow,
        was: StateId,
        is: StateId,
        open: &mut Vec<(FlowId, FlowId)>,
    ) {
        match (&from[was].kind, &to[is].kind) {
            (StateKind::Operation(was), StateKind::Operation(is)) => self.pair_lists(*was, *is),
            (StateKind::Callback(was), StateKind::Callback(is)) => {
                self.pair_lists(was.actions, is.actions);
            }
            (StateKind::Foreach(was), StateKind::Foreach(is)) => {
                self.pair_bodies(was.body, is.body, open);
            }
            (StateKind::Parallel(was), StateKind::Parallel(is)) => {
                for (index, branch) in was.branches.iter().enumerate() {
                    let here = is.branches.get(index);
                    let here = here.filter(|other| other.name == branch.name);
                    let mut others = is.branches.iter();
                    let found = here.or_else(|| others.find(|other| other.name == branch.name));
                    if let Some(other) = found {
                        self.pair_bodies(branch.body, other.body, open);
                    }
                }
            }
            (StateKind::Event(before), StateKind::Event(after)) => {
                let mut taken = vec![false; after.entries.len()];
                let same = |entry: &OnEvents, other: &OnEvents| {
                    names_of(from, entry) == names_of(to, other)
                };
                // First by position, because several entries may wait for the same events.
                for here in [true, false] {
                    for (index, entry) in before.entries.iter().enumerate() {
                        if self.entries.contains_key(&(was, index as u16)) {
                            continue;
                        }
                        let fits = |(place, other): &(usize, &OnEvents)| {
                            !taken[*place] && (!here || *place == index) && same(entry, other)
                        };
                        let found = after.entries.iter().enumerate().find(fits);
                        if let Some((place, other)) = found {
                            taken[place] = true;
                            self.entries.insert((was, index as u16), place as u16);
                            self.pair_lists(entry.actions, other.actions);
                        }
                    }
                }
            }
            (StateKind::Do(was), StateKind::Do(is)) => open.push((*was, *is)),
            (StateKind::For(was), StateKind::For(is)) => open.push((was.body, is.body)),
            (StateKind::Function(was), StateKind::Function(is)) => open.push((was.body, is.body)),
            (StateKind::Try(was), StateKind::Try(is)) => {
                open.push((was.body, is.body));
                open.extend(was.handler.zip(is.handler));
            }
            (StateKind::Listen(was), StateKind::Listen(is)) => {
                let body = |listen: &Listen| listen.each.as_ref().and_then(|each| each.body);
                open.extend(body(was).zip(body(is)));
                if let (Some(was), Some(is)) = (was.source, is.source) {
                    self.pair_lists(was, is);
                }
                for (was, is) in was.filters().zip(is.filters()) {
                    self.events[was.event.0 as usize] = Some(is.event);
                }
            }
            _ => {}
        }
    }

    fn pair_lists(&mut self, was: ListId, is: ListId) {
        self.lists[was.0 as usize] = Some(is);
    }

    fn pair_bodies(&mut self, was: Body, is: Body, open: &mut Vec<(FlowId, FlowId)>) {
        match (was, is) {
            (Body::Actions(was), Body::Actions(is)) => self.pair_lists(was, is),
            (Body::Flow(was), Body::Flow(is)) => open.push((was, is)),
            _ => {}
        }
    }

    pub fn state(&self, id: StateId) -> Option<StateId> {
        at(&self.states, id.0)
    }

    pub fn list(&self, id: ListId) -> Option<ListId> {
        at(&self.lists, id.0)
    }

    pub fn owner(&self, id: ListId) -> Option<StateId> {
        at(&self.owners, id.0)
    }

    pub fn entry(&self, state: StateId, entry: u16) -> Option<u16> {
        self.entries.get(&(state, entry)).copied()
    }

    pub fn event(&self, id: EventId) -> Option<EventId> {
        at(&self.events, id.0)
    }

    pub fn expression(&self, id: ExprId) -> Option<ExprId> {
        at(&self.expressions, id.0)
    }

    pub fn path(&self, id: PathId) -> Option<PathId> {
        at(&self.paths, id.0)
    }
}

/// The state of the same name. Of several tasks with one name, the one at the same place among them.
fn same_state(
    from: &Workflow,
    (was, id): (FlowId, StateId),
    to: &Workflow,
    is: FlowId,
) -> Option<StateId> {
    let name = &from[id].name;
    let own = from[was].states.iter().take_while(|other| **other != id);
    let nth = own.filter(|other| from[**other].name == *name).count();
    let mut others = to[is].states.iter().filter(|id| to[**id].name == *name);
    others.nth(nth).copied()
}

/// Two versions of a workflow.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub from: &'a Workflow,
    pub to: &'a Workflow,
}

impl Pair<'_> {
    /// Whether the awaited event is still the same: its source, its type, and the attributes that it must have.
    pub fn is_same_event(self, was: EventId, is: EventId) -> bool {
        let (was, is) = (&self.from[was], &self.to[is]);
        let mut correlation = was.correlation.iter().zip(&is.correlation);
        was.source == is.source
            && was.kind == is.kind
            && was.correlation.len() == is.correlation.len()
            && correlation.all(|(was, is)| {
                was.attribute == is.attribute
                    && match (&was.value, &is.value) {
                        (None, None) => true,
                        (Some(was), Some(is)) => self.is_same(was, is),
                        _ => false,
                    }
            })
    }

    fn is_same(self, was: &Template, is: &Template) -> bool {
        match (was, is) {
            (Template::Literal(was), Template::Literal(is)) => was == is,
            (Template::Expression(was), Template::Expression(is)) => self.reads_same(*was, *is),
            (Template::Text(was), Template::Text(is)) => {
                let mut parts = was.iter().zip(is);
                was.len() == is.len()
                    && parts.all(|pair| match pair {
                        (TextPart::Text(was), TextPart::Text(is)) => was == is,
                        (TextPart::Expression(was), TextPart::Expression(is)) => {
                            self.reads_same(*was, *is)
                        }
                        _ => false,
                    })
            }
            (Template::Array(was), Template::Array(is)) => {
                let mut parts = was.iter().zip(is);
                was.len() == is.len() && parts.all(|(was, is)| self.is_same(was, is))
            }
            (Template::Object(was), Template::Object(is)) => {
                let mut parts = was.iter().zip(is);
                was.len() == is.len()
                    && parts.all(|(was, is)| was.0 == is.0 && self.is_same(&was.1, &is.1))
            }
            _ => false,
        }
    }

    fn reads_same(self, was: ExprId, is: ExprId) -> bool {
        let (was, is) = (&self.from[was], &self.to[is]);
        (was.language, &was.text) == (is.language, &is.text)
    }
}

struct Sources(Vec<Option<u32>>);

impl Sources {
    fn map<T>(self, id: impl Fn(u32) -> T) -> Vec<Option<T>> {
        self.0.into_iter().map(|place| place.map(&id)).collect()
    }
}

/// The positions of expressions with the same text.
fn sources(from: &[ExprSource], to: &[ExprSource]) -> Sources {
    let mut places = HashMap::new();
    for (place, source) in to.iter().enumerate() {
        let key = (source.language, source.text.as_str(), &source.params);
        places.entry(key).or_insert(place as u32);
    }
    let found = from.iter().map(|source| {
        let key = (source.language, source.text.as_str(), &source.params);
        places.get(&key).copied()
    });
    Sources(found.collect())
}

fn names_of<'a>(workflow: &'a Workflow, entry: &'a OnEvents) -> Vec<&'a str> {
    let events = entry.events.iter();
    events.map(|event| &*workflow[*event].name).collect()
}

/// An action's name, or the name of its function, event or sub-workflow.
pub(crate) fn name_of(workflow: &Workflow, action: &Action) -> String {
    match (&action.name, &action.kind) {
        (Some(name), _) => name.to_string(),
        (None, ActionKind::Call(call)) => workflow[call.function].name.to_string(),
        (None, ActionKind::Expression { function, .. }) => workflow[*function].name.to_string(),
        (None, ActionKind::Event(event)) => {
            let produced = event.produce.as_ref().map(|produce| produce.event);
            let named = produced.or(event.consume).map(|id| &workflow[id]);
            named
                .map(|event| event.name.to_string())
                .unwrap_or_default()
        }
        (None, ActionKind::Subflow(subflow)) => subflow.workflow.clone(),
    }
}
