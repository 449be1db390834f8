//! States: the parts that all kinds share, and their transitions.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{
    Action, ActionKind, End, FunctionKind, ListId, Next, State, Transition,
};

use super::Reader;
use super::filter::{self, Filter};
use super::states::{self, StateReader};
use crate::build::ctx::{Edge, Obj};

const COMMON: [&str; 4] = ["name", "type", "start", "end"];

impl Reader<'_, '_> {
    pub fn state(&mut self, node: &Node) -> Option<State> {
        if node.members().is_none() {
            self.ctx.wrong_type(node, "a state", "an object");
            return None;
        }
        let kind = self.kind(node);
        let obj = match kind {
            Some(kind) => {
                let mut known: Vec<&str> = COMMON.to_vec();
                known.extend(kind.properties);
                known.extend(filter::PROPERTIES);
                if kind.word == "END" {
                    known.retain(|name| *name != "end");
                }
                let what = format!("a state of type '{}'", kind.word);
                self.ctx.object(node, &what, &known)?
            }
            None => {
                let mut known: Vec<&str> = COMMON.to_vec();
                known.extend(states::KINDS.iter().flat_map(|kind| kind.properties));
                known.extend(filter::PROPERTIES);
                self.ctx.object(node, "a state", &known)?
            }
        };
        let name = self.ctx.need_string(obj, "a state", "name");
        if let (Some(name), Some(node)) = (&name, obj.get("name")) {
            self.ctx.check_name(node, "a state's name", name);
        }
        let Some(kind) = kind else {
            let flow = self.ctx.flow();
            self.ctx.of_unknown_kind.push(flow);
            let filter = self.filter(obj, "a state");
            self.selection(filter.input);
            self.selection(filter.output);
            return None;
        };
        if self.draft.end_states == (kind.word != "END") {
            self.other_end(obj, kind);
        }
        let filter = self.filter(obj, "a state");
        let state = (kind.read)(self, obj, filter);
        let input = self.selection(filter.input);
        let output = self.selection(filter.output);
        let read = state?;
        Some(State {
            name: name?.into(),
            kind: read.kind,
            // A state that has used the input path itself doesn't apply it again.
            input: input.filter(|_| !read.takes_input),
            output,
            next: read.next,
            ..State::default()
        })
    }

    /// How the other draft ends a flow.
    fn other_end(&mut self, obj: Obj<'_>, kind: &StateReader) {
        if kind.word == "END" {
            let place = obj.get("type").unwrap_or(obj.node);
            let message = format!("states of type 'END' are of {}", self.draft.other);
            let hint = "set 'end: true' in the state before it".to_owned();
            self.ctx
                .warn(place, codes::OTHER_EDITIONS_NAME, message, hint);
        } else if let Some(node) = obj.get("end") {
            self.other_property(node, "end", "lead to a state of type 'END'");
        }
    }

    fn kind(&mut self, node: &Node) -> Option<&'static StateReader> {
        let obj = Obj { node };
        let Some(place) = obj.get("type") else {
            self.ctx.misspelt(node, "a state", "type");
            self.ctx.missing(obj, "a state", &["type"]);
            return None;
        };
        let words: Vec<&'static str> = states::KINDS.iter().map(|kind| kind.word).collect();
        let word = self.word_of(place, "'type'", &words, &[])?;
        states::KINDS.iter().find(|kind| kind.word == word)
    }

    /// Whether the state has `end: true`.
    pub fn ends(&mut self, obj: Obj<'_>) -> bool {
        self.flag(obj, "end", false)
    }

    /// The way out of a state: `end: true`, or the state in `next-state`.
    pub fn way(&mut self, obj: Obj<'_>, what: &str) -> Option<Next> {
        let next = next_state(obj);
        if self.ends(obj) {
            if let Some(node) = next {
                let why = "the state has 'end: true', so nothing follows it";
                self.ctx.ignored(node, "next-state", why);
            }
            return Some(self.end());
        }
        match next {
            Some(node) => self.transition(node, "'next-state'"),
            None => {
                self.missing_way(obj, what);
                None
            }
        }
    }

    pub fn missing_way(&mut self, obj: Obj<'_>, what: &str) {
        let hint = match self.draft.end_states {
            true => "add 'next-state'; a state of type 'END' ends the workflow",
            false => "add 'next-state', or 'end: true' if nothing follows",
        };
        let message = format!("{what} needs 'next-state'");
        self.ctx
            .error(obj.node, codes::MISSING_PROPERTY, message, hint.to_owned());
    }

    pub fn end(&mut self) -> Next {
        let state = self.ctx.state;
        self.ctx.ends.push(state);
        Next::End(End::default())
    }

    /// A transition to the state that `node` names, in the same flow.
    pub fn transition(&mut self, node: &Node, what: &str) -> Option<Next> {
        let to = self.ctx.state_ref(node, what)?;
        let location = self.ctx.location(node);
        self.ctx.edges.push(Edge {
            from: self.ctx.state,
            to,
            location,
        });
        Some(Next::Transition(Transition {
            to,
            compensate: false,
            produce: Vec::new(),
            guard: None,
        }))
    }

    pub fn no_actions(&mut self) -> ListId {
        self.ctx.action_list(Vec::new(), false)
    }

    /// A state without actions but with a result path puts its input there.
    pub fn move_input(&mut self, filter: Filter<'_>) -> Option<ListId> {
        let to = self.target(filter.result)?;
        let expression = match filter.input {
            Some(place) => self.selection(Some(place))?,
            None => {
                let (obj, name) = filter.result?;
                let location = self.ctx.location(obj.get(name)?);
                let sight = crate::build::expression::VisibleVars::PLAIN;
                self.ctx.compile(&location, "$", sight)?
            }
        };
        let function = self.plain_function("input", FunctionKind::Expression, "$");
        let action = Action {
            kind: ActionKind::Expression {
                function,
                expression,
                arguments: None,
                detached: false,
            },
            results: swirl_model::workflow::ResultRule {
                to: Some(to),
                replace: true,
                ..Default::default()
            },
            ..Action::default()
        };
        let id = self.ctx.add_action(action);
        Some(self.ctx.action_list(vec![id], false))
    }
}

/// `next-state`. An empty one counts as absent.
pub(super) fn next_state<'n>(obj: Obj<'n>) -> Option<&'n Node> {
    let node = obj.get("next-state")?;
    let says_nothing =
        node.as_str() == Some("") || node.kind() == swirl_documents::source::NodeKind::Null;
    Some(node).filter(|_| !says_nothing)
}
