//! Transitions with their conditions and events, and ends (sections "Transition Definition", "End Definition",
//! "ProduceEvent Definition", docs/language.md#decision-37 and #decision-45).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{End, Next, Produce, Transition};

use super::Reader;
use crate::build::ctx::{Edge, Obj};
use crate::build::earlier::older::as_there;

impl Reader<'_, '_> {
    /// `transition` or `end` of a state.
    pub fn next(&mut self, obj: Obj<'_>) -> Option<Next> {
        let transition = obj.get("transition").filter(|node| !is_nothing(node));
        let end = obj.get("end").filter(|node| !is_nothing(node));
        match (transition, end) {
            (Some(transition), Some(end)) => {
                let what = format!("a {}", self.variant.state);
                self.exclusive(obj, &what, &["transition", "end"]);
                // Errors inside them are reported too.
                self.transition(transition);
                self.end(end);
                None
            }
            (Some(node), None) => self.transition(node).map(Next::Transition),
            (None, Some(node)) => self.end(node).map(Next::End),
            (None, None) => {
                let what = format!("a {}", self.variant.state);
                self.missing(obj, &what, &["transition", "end"]);
                None
            }
        }
    }

    /// The way of a condition or of an error handler: a transition, or in later editions also an end.
    pub fn way(&mut self, obj: Obj<'_>, what: &str) -> Option<Next> {
        let has_end = obj.get("end").is_some_and(|node| !is_nothing(node));
        if has_end {
            as_there(self, obj.node, &["end"]);
            return self.next(obj);
        }
        match obj.get("transition") {
            Some(node) => self.transition(node).map(Next::Transition),
            None => {
                self.missing(obj, what, &["transition"]);
                None
            }
        }
    }

    pub fn transition(&mut self, node: &Node) -> Option<Transition> {
        if node.as_str().is_some() {
            let (next, _) = self.variant.next;
            let message =
                "a transition is an object; this string is read as the name of the next one";
            let hint = format!("write {{{next}: ...}}");
            self.warn(node, codes::OTHER_EDITIONS_NAME, message, hint);
            return self.to(node);
        }
        let (next, other) = self.variant.next;
        let known = &["expression", "produceEvent", "produceEvents", next, other];
        let obj = self.object(node, "a transition", known)?;
        let guard = obj.get("expression").map(|node| self.condition(node));
        let produce = self.all_produced(obj);
        let Some(target) = self.named(obj, next, &[other]) else {
            self.missing(obj, "a transition", &[next]);
            return None;
        };
        let transition = self.to(target)?;
        Some(Transition {
            guard: match guard {
                Some(guard) => Some(guard?.id),
                None => None,
            },
            produce: produce?,
            ..transition
        })
    }

    fn to(&mut self, target: &Node) -> Option<Transition> {
        let to = self.state_ref(target, "a transition")?;
        let location = self.location(target);
        let from = self.state;
        self.edges.push(Edge { from, to, location });
        Some(Transition {
            to,
            compensate: false,
            produce: Vec::new(),
            guard: None,
        })
    }

    fn end(&mut self, node: &Node) -> Option<End> {
        let state = self.state;
        self.ends.push(state);
        if node.as_bool() == Some(true) {
            let hint = "write {kind: default}".to_owned();
            let message = "'end' is an object; true is read as its default kind";
            self.warn(node, codes::OTHER_EDITIONS_NAME, message, hint);
            return Some(End::default());
        }
        let known = &["kind", "type", "produceEvent", "produceEvents", "terminate"];
        let obj = self.object(node, "'end'", known)?;
        let kinds = &["default", "terminate", "event"];
        let terminates = obj.has("terminate").then(|| {
            as_there(self, node, &["terminate"]);
            self.flag(obj, "terminate", false)
        });
        let has_kind = obj.has("kind") || obj.has("type");
        // Later editions have no kinds of ends.
        let is_later = !has_kind && (terminates.is_some() || obj.has("produceEvents"));
        let kind = match (is_later, terminates) {
            (true, Some(true)) => Some("terminate"),
            (true, _) => Some("event"),
            (false, _) => self.kind(obj, "'end'", kinds),
        };
        let produce = self.all_produced(obj);
        match (kind, obj.get("produceEvent").or(obj.get("produceEvents"))) {
            _ if is_later => {}
            (Some("event"), None) => {
                self.missing(obj, "an end of kind 'event'", &["produceEvent"]);
            }
            (Some("default" | "terminate"), Some(node)) => {
                let why = "only an end of kind 'event' produces one";
                self.ignored(node, "produceEvent", why);
            }
            _ => {}
        }
        let terminate = kind == Some("terminate");
        self.ctx.terminates |= terminate;
        let produce = match kind {
            Some("event") => produce?,
            _ if is_later => produce?,
            _ => Vec::new(),
        };
        kind?;
        Some(End {
            terminate,
            terminate_parents: terminate,
            produce,
            ..End::default()
        })
    }

    /// `kind` of a start or an end. Without it, the default kind applies.
    pub fn kind(
        &mut self,
        obj: Obj<'_>,
        what: &str,
        kinds: &[&'static str],
    ) -> Option<&'static str> {
        if !obj.has("kind") && !obj.has("type") {
            let message = format!("{what} has no 'kind': it is read as the default one");
            let hint = "add 'kind: default'".to_owned();
            self.warn(obj.node, codes::MISSING_PROPERTY, message, hint);
            return Some("default");
        }
        self.named(obj, "kind", &["type"]);
        let name = if obj.has("kind") { "kind" } else { "type" };
        self.word(obj, name, kinds)
    }

    /// `produceEvent`, or the list that later editions have.
    fn all_produced(&mut self, obj: Obj<'_>) -> Option<Vec<Produce>> {
        let Some(node) = self.named(obj, "produceEvent", &["produceEvents"]) else {
            return Some(Vec::new());
        };
        let items = match node.items() {
            Some(items) if !obj.has("produceEvent") => items,
            _ => std::slice::from_ref(node),
        };
        let all: Vec<_> = items.iter().map(|item| self.produced(item)).collect();
        all.into_iter().collect()
    }

    fn produced(&mut self, node: &Node) -> Option<Produce> {
        let (name, other) = self.variant.produced;
        let obj = self.object(node, "'produceEvent'", &[name, other, "data"])?;
        let data = obj.get("data").map(|node| self.event_data(node));
        let Some(event) = self.named(obj, name, &[other]) else {
            self.missing(obj, "'produceEvent'", &[name]);
            return None;
        };
        Some(Produce {
            event: self.event_ref(event, &format!("'{name}'"))?,
            data: match data {
                Some(data) => Some(data?),
                None => None,
            },
            attributes: Vec::new(),
        })
    }
}

/// Whether it counts as absent: null does, and `end: false` isn't an end (docs/language.md#decision-69).
pub(super) fn is_nothing(node: &Node) -> bool {
    node.as_bool() == Some(false) || node.to_data().is_null()
}
