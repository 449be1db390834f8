//! The parts of a document by kind. Each edition has its own names for their lists.

use swirl_documents::source::Node;

/// The part of a document in which a sign is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Root,
    /// `functions`, `events` and `errors` of the document.
    Function,
    Event,
    /// States or tasks, including those inside branches and iterations.
    State,
    Branch,
    /// `choices`, `dataConditions` and `eventConditions` of a switch.
    Choice,
    /// An entry of an event state: `events`, `eventsActions`, `onEvents`.
    Entry,
    Action,
    FunctionRef,
    /// Error handlers.
    Handler,
    /// `stateDataFilter` and similar names, in any part.
    StateFilter,
    ActionFilter,
    EventFilter,
    /// `start` and `end` of states, if they are objects.
    Start,
    End,
    /// A transition that is an object.
    Transition,
    /// `timeouts` of the document, a state or a branch.
    Timeouts,
}

/// The parts found in a document.
#[derive(Debug, Default)]
pub(super) struct Facts<'n> {
    parts: Vec<(Part, &'n Node)>,
    pub texts: Texts,
}

/// The delimiters that occur in the document's texts.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub dollar: bool,
    pub braces: bool,
}

impl<'n> Facts<'n> {
    pub fn of(root: &'n Node) -> Facts<'n> {
        let mut facts = Facts::default();
        facts.parts.push((Part::Root, root));
        facts.add_all(Part::Function, root.get("functions"));
        facts.add_all(Part::Event, root.get("events"));
        facts.add_all(Part::Event, root.get("trigger-defs"));
        facts.add(Part::Timeouts, root.get("timeouts"));
        facts.states(root);
        facts.texts(root);
        facts
    }

    pub fn of_part(&self, part: Part) -> impl Iterator<Item = &'n Node> {
        let parts = self.parts.iter();
        parts
            .filter(move |(of, _)| *of == part)
            .map(|(_, node)| *node)
    }

    fn add(&mut self, part: Part, node: Option<&'n Node>) {
        self.parts.extend(node.map(|node| (part, node)));
    }

    fn add_all(&mut self, part: Part, list: Option<&'n Node>) {
        for item in items(list) {
            self.parts.push((part, item));
        }
    }

    fn states(&mut self, holder: &'n Node) {
        for name in ["states", "tasks"] {
            for state in items(holder.get(name)) {
                self.state(state);
            }
        }
    }

    fn state(&mut self, state: &'n Node) {
        self.parts.push((Part::State, state));
        self.states(state);
        self.add(Part::Timeouts, state.get("timeouts"));
        for branch in items(state.get("branches")) {
            self.parts.push((Part::Branch, branch));
            self.add(Part::Timeouts, branch.get("timeouts"));
            self.states(branch);
            self.actions(branch);
        }
        for name in ["choices", "dataConditions", "eventConditions"] {
            for choice in items(state.get(name)) {
                self.parts.push((Part::Choice, choice));
                self.next(choice);
                self.add(Part::EventFilter, choice.get("eventDataFilter"));
            }
        }
        for name in ["events", "eventsActions", "onEvents"] {
            for entry in items(state.get(name)) {
                self.parts.push((Part::Entry, entry));
                self.actions(entry);
                self.add(Part::EventFilter, entry.get("eventDataFilter"));
            }
        }
        for name in ["onError", "onErrors"] {
            for handler in items(state.get(name)) {
                self.parts.push((Part::Handler, handler));
                self.next(handler);
            }
        }
        for name in ["default", "defaultCondition"] {
            if let Some(default) = state.get(name) {
                self.next(default);
            }
        }
        self.actions(state);
        self.next(state);
        let start = state.get("start").filter(|node| node.members().is_some());
        self.add(Part::Start, start);
        self.add(Part::EventFilter, state.get("eventDataFilter"));
        self.add(Part::StateFilter, state.get("stateDataFilter"));
        self.add(Part::StateFilter, state.get("taskDataFilter"));
    }

    fn next(&mut self, holder: &'n Node) {
        let object = |name| holder.get(name).filter(|node| node.members().is_some());
        self.add(Part::End, object("end"));
        self.add(Part::Transition, object("transition"));
    }

    fn actions(&mut self, holder: &'n Node) {
        let actions = items(holder.get("actions"))
            .iter()
            .chain(holder.get("action"));
        for action in actions {
            self.parts.push((Part::Action, action));
            self.add(Part::FunctionRef, action.get("functionRef"));
            self.add(Part::ActionFilter, action.get("actionDataFilter"));
            for handler in items(action.get("onErrors")) {
                self.parts.push((Part::Handler, handler));
            }
        }
    }

    fn texts(&mut self, node: &Node) {
        if let Some(text) = node.as_str() {
            let text = text.trim_start();
            self.texts.dollar |= text.starts_with("${");
            self.texts.braces |= text.starts_with("{{");
        }
        for item in node.items().unwrap_or_default() {
            self.texts(item);
        }
        for member in node.members().unwrap_or_default() {
            self.texts(member.value());
        }
    }
}

/// Whether a name violates the naming convention of 0.9.
pub(super) fn has_free_names(facts: &Facts<'_>) -> bool {
    use Part::{Action, Branch, Event, Function, Root, State};
    let parts = [Root, State, Branch, Action, Function, Event];
    parts.into_iter().any(|part| {
        let mut names = facts.of_part(part).filter_map(|node| node.get("name"));
        names.any(|name| name.as_str().is_some_and(|name| !is_conventional(name)))
    })
}

/// Whether 0.9 allows the name: `^[a-z0-9](-?[a-z0-9])*$`
pub(crate) fn is_conventional(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut parts = name.split('-');
    parts.all(|part| !part.is_empty() && part.bytes().all(allowed))
}

fn items(list: Option<&Node>) -> &[Node] {
    list.and_then(Node::items).unwrap_or_default()
}
