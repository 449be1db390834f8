//! Events: filters, correlation and waits. States that wait: `event_states.rs`; events that start: `event_start.rs`.

use swirl_model::Data;
use swirl_model::event::is_source_pattern;
use swirl_model::workflow::{EventAction, EventId, Produce, StateId, Workflow};

use super::super::ways;
use super::emit::waited_for;
use super::jq_text::grouped;
use super::writer::{Writer, do_list, marked, object};

/// Signs that make a text a regular expression, where events are filtered.
const PATTERN: &str = "^$*+?()[]{}|\\";

/// An attribute with these signs as itself.
pub(super) fn exact(text: &str) -> String {
    if !text.contains(|c| PATTERN.contains(c)) {
        return text.to_owned();
    }
    escaped(text)
}

fn escaped(text: &str) -> String {
    let mut found = String::new();
    for c in text.chars() {
        if PATTERN.contains(c) || c == '.' {
            found.push('\\');
        }
        found.push(c);
    }
    found
}

/// A source in which whole segments stand for others, as a regular expression.
pub(super) fn source_pattern(source: &str) -> String {
    let segments = source.split('/').map(|segment| match segment {
        "+" | "*" => "[^/]+".to_owned(),
        "#" | "**" => ".+".to_owned(),
        segment => escaped(segment),
    });
    segments.collect::<Vec<_>>().join("/")
}

impl Writer<'_> {
    /// A filter of an event.
    pub fn filter_of(&mut self, id: EventId, data: &str, answers: Option<&Produce>) -> Data {
        let event = &self.workflow[id];
        let mut with = Data::object();
        if let Some(kind) = event.kind.as_deref().filter(|kind| !kind.is_empty()) {
            with.set("type", Data::string(exact(kind)));
        }
        if let Some(source) = event.source.as_deref().filter(|source| !source.is_empty()) {
            let source = match is_source_pattern(source) {
                true => source_pattern(source),
                false => exact(source),
            };
            with.set("source", Data::string(source));
        }
        self.cannot_if(
            with.as_object().is_some_and(|all| all.is_empty()),
            "an event has neither a type nor a source",
        );
        let mut filter = object([("with", with)]);
        let mut correlate = Data::object();
        for rule in &event.correlation {
            let attribute = &*rule.attribute;
            let mut part = object([("from", marked(&format!(".{attribute}")))]);
            let expected = match &rule.value {
                Some(value) => {
                    let text = self.value_text(value, data);
                    // Null matches nothing, and no event has an empty attribute.
                    Some(format!(
                        "{} | if . == null then \"\" else tostring end",
                        grouped(&text)
                    ))
                }
                None => self.known_value(attribute, answers),
            };
            if let Some(text) = expected {
                part.set("expect", marked(&text));
            }
            correlate.set(attribute, part);
        }
        if correlate.as_object().is_some_and(|all| !all.is_empty()) {
            filter.set("correlate", correlate);
        }
        filter
    }

    /// The value that an attribute has in the instance already. An attribute without one takes that of the first event.
    pub fn known_value(&mut self, attribute: &str, answers: Option<&Produce>) -> Option<String> {
        let of_start = self.start_events();
        let has = |writer: &Self, id: &EventId| {
            let rules = &writer.workflow[*id].correlation;
            rules.iter().any(|rule| &*rule.attribute == attribute)
        };
        let kept = || format!("$context.correlation[{}]", Data::string(attribute));
        if of_start.iter().any(|id| has(self, id)) {
            return Some(kept());
        }
        let of_produced =
            |produce: &Produce| produce.attributes.iter().any(|(name, _)| name == attribute);
        if answers.is_some_and(of_produced) {
            return Some(kept());
        }
        let workflow = self.workflow;
        let mut sites = 0;
        for state in &workflow.states {
            let waited = waited_for(workflow, state);
            sites += usize::from(waited.iter().any(|id| has(self, id)));
            let mut produced = ways::produced(workflow, state).into_iter();
            if produced.any(of_produced) {
                sites = usize::MAX / 2;
            }
        }
        if sites > 1 || self.at.is_some_and(|id| is_in_loop(workflow, id)) {
            self.cannot(format!(
                "whether the correlation '{attribute}' has a value already is only known when it runs"
            ));
        }
        None
    }

    /// A task that waits for events. Its output is the list of them.
    pub fn listen(
        &mut self,
        events: &[EventId],
        all: bool,
        data: &str,
        answers: Option<&Produce>,
    ) -> Data {
        let mut filters = Vec::new();
        for id in events {
            let filter = self.filter_of(*id, data, answers);
            if !filters.contains(&filter) {
                filters.push(filter);
            }
        }
        let strategy = match (filters.len(), all) {
            (1, _) => "one",
            (_, true) => "all",
            (_, false) => "any",
        };
        let filters = match filters.len() {
            1 => filters.remove(0),
            _ => Data::array(filters),
        };
        let to = object([(strategy, filters)]);
        object([(
            "listen",
            object([("to", to), ("read", Data::string("envelope"))]),
        )])
    }

    /// Whether an event, which is `.`, is one of this definition.
    pub fn is_event(&self, id: EventId) -> String {
        let event = &self.workflow[id];
        let mut tests = Vec::new();
        if let Some(kind) = event.kind.as_deref().filter(|kind| !kind.is_empty()) {
            tests.push(format!(".type == {}", Data::string(kind)));
        }
        if let Some(source) = event.source.as_deref().filter(|source| !source.is_empty()) {
            tests.push(match is_source_pattern(source) {
                true => {
                    let pattern = format!("^{}$", source_pattern(source));
                    format!("(.source | test({}))", Data::string(pattern))
                }
                false => format!(".source == {}", Data::string(source)),
            });
        }
        match tests.is_empty() {
            true => "true".to_owned(),
            false => tests.join(" and "),
        }
    }

    /// The payload of an event, which is `$event`.
    pub fn payload(&self, id: EventId) -> &'static str {
        match self.workflow[id].data_only {
            true => "$event.data",
            false => "$event",
        }
    }

    /// An event that is produced, and one that is waited for. The output is the result.
    pub fn event_action(&mut self, event: &EventAction, data: &str) -> Data {
        let emit = event
            .produce
            .as_ref()
            .map(|produce| self.emit(produce, data));
        let Some(consume) = event.consume else {
            return emit.unwrap_or_else(|| object([("set", marked("."))]));
        };
        self.cannot_if(
            event.detached,
            "nothing waits for an action that waits for an event",
        );
        let kind = |id: EventId| {
            let event = &self.workflow[id];
            event.kind.clone().unwrap_or_else(|| event.name.to_string())
        };
        let produced = event.produce.as_ref().map(|produce| kind(produce.event));
        let is_own = produced.is_some_and(|produced| produced == kind(consume));
        self.cannot_if(
            is_own,
            "an action waits for an event of the type that it produces; in DSL 1.0 its own event would be the answer",
        );
        let mut listen = self.listen(&[consume], false, data, event.produce.as_ref());
        let payload = self.payload(consume);
        let text = format!(".[0] as $event | {payload}");
        listen.set("output", object([("as", marked(&text))]));
        self.timeout(&mut listen, event.timeout, data);
        match emit {
            None => do_list(vec![("answer".to_owned(), listen)]),
            Some(emit) => do_list(vec![
                ("emit".to_owned(), emit),
                ("answer".to_owned(), listen),
            ]),
        }
    }
}

/// Whether a way leads from the state back to it.
pub(super) fn is_in_loop(workflow: &Workflow, id: StateId) -> bool {
    let mut seen = vec![false; workflow.states.len()];
    let mut open = vec![id];
    while let Some(at) = open.pop() {
        for next in ways::of_state(&workflow[at]) {
            if let swirl_model::workflow::Next::Transition(to) = next {
                if to.to == id {
                    return true;
                }
                if !std::mem::replace(&mut seen[to.to.0 as usize], true) {
                    open.push(to.to);
                }
            }
        }
    }
    false
}
