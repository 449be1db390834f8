//! `listen`, filters of events and what is done with each event (DSL 1.0, "Listen", "Event Consumption Strategy", "Event
//! Filter", "Correlation", "Subscription Iterator").

use std::sync::Arc;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::CloudEvent;
use swirl_model::event::is_source_pattern;
use swirl_model::workflow::{
    Consume, Correlate, Correlation, DataTest, EachEvent, EventAttributes, EventDef, EventId,
    EventRead, Listen, StateKind, TaskFilter, Template, Until,
};

use super::Reader;
use super::uri::has_member;
use super::value::{DEFINITION, EXPORT};
use crate::build::ctx::Obj;

/// The signs of a regular expression. A text without any is the value itself.
const PATTERN: [char; 13] = [
    '^', '$', '*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '\\',
];

/// What filters see.
#[derive(Clone, Copy)]
pub(super) struct Sight {
    names: &'static [&'static str],
    /// There is no instance yet, so every value that an event must have is known at the deployment.
    is_start: bool,
}

impl Sight {
    const TASK: Sight = Sight {
        names: DEFINITION,
        is_start: false,
    };
    pub const START: Sight = Sight {
        names: &["runtime"],
        is_start: true,
    };
}

const STRATEGIES: [&str; 3] = ["all", "any", "one"];

impl Reader<'_, '_> {
    pub fn listen(&mut self, node: &Node, task: Obj<'_>) -> Option<StateKind> {
        let obj = self.object(node, "'listen'", &["to", "read"])?;
        let read = self.read_as(obj).unwrap_or_default();
        let first = self.workflow.events.len();
        let to = match obj.get("to") {
            Some(node) => self.strategy(node, "'to'", true, Sight::TASK),
            None => {
                self.missing(obj, "'listen'", &["to"]);
                None
            }
        };
        // Those that its tasks listen to are read below.
        let own = first..self.workflow.events.len();
        let each = match task.get("foreach") {
            Some(node) => self.each_event(node).map(Some),
            None => Some(None),
        };
        let (to, until) = to?;
        let listen = Listen {
            source: None,
            stepwise: None,
            to,
            until,
            read,
            each: each?,
        };
        let offers = listen.until.is_some() || listen.filters().any(TaskFilter::is_tested);
        for event in &mut self.workflow.events[own] {
            if let Some(filter) = &mut event.filter {
                filter.offers = offers;
            }
        }
        Some(StateKind::Listen(Box::new(listen)))
    }

    /// `read`.
    pub fn read_as(&mut self, obj: Obj<'_>) -> Option<EventRead> {
        Some(
            match self.word(obj, "read", &["data", "envelope", "raw"])? {
                "envelope" => EventRead::Envelope,
                "raw" => EventRead::Raw,
                _ => EventRead::Data,
            },
        )
    }

    /// A strategy of consumption. `stops`: it may say when it stops.
    pub fn strategy(
        &mut self,
        node: &Node,
        what: &str,
        stops: bool,
        sight: Sight,
    ) -> Option<(Consume, Option<Until>)> {
        let known = ["all", "any", "one", "until"];
        let obj = self.object(node, what, &known[..3 + usize::from(stops)])?;
        let given: Vec<&str> = STRATEGIES
            .into_iter()
            .filter(|name| obj.has(name))
            .collect();
        let [strategy] = given.as_slice() else {
            match given.as_slice() {
                [] => self.missing(obj, what, &STRATEGIES),
                several => self.exclusive(obj, what, several),
            }
            for strategy in &given {
                self.filters(obj, what, strategy, sight);
            }
            return None;
        };
        let filters = self.filters(obj, what, strategy, sight);
        let until = match obj.get("until").filter(|_| stops) {
            None => None,
            Some(node) if *strategy != "any" => {
                let message = format!("'until' is for 'any', and {what} has '{strategy}'");
                let hint = "remove it, or write 'any'".to_owned();
                self.error(node, codes::EXCLUSIVE_PROPERTIES, message, hint);
                return None;
            }
            Some(node) if node.members().is_some() => {
                let (stops, _) = self.strategy(node, "'until'", false, sight)?;
                Some(Until::Events(stops))
            }
            Some(node) => Some(Until::Condition(self.expr(node, "'until'", sight.names)?)),
        };
        let consume = Consume {
            all: *strategy == "all",
            filters: filters?,
        };
        Some((consume, until))
    }

    /// The filters of one strategy.
    fn filters(
        &mut self,
        obj: Obj<'_>,
        what: &str,
        strategy: &str,
        sight: Sight,
    ) -> Option<Vec<TaskFilter>> {
        let node = obj.get(strategy)?;
        let filters: Vec<Option<TaskFilter>> = match strategy {
            "one" => vec![self.one_filter(node, sight)],
            "any" if node.items().is_some_and(<[Node]>::is_empty) => {
                let message = format!("{what} takes every event there is");
                let hint = "name the events with filters: each event costs a step".to_owned();
                self.warn(node, codes::ANY_EVENT, message, hint);
                vec![Some(self.any_event())]
            }
            _ => {
                let items = self.full_list(node, &format!("'{strategy}'"))?;
                items
                    .iter()
                    .map(|item| self.one_filter(item, sight))
                    .collect()
            }
        };
        filters.into_iter().collect()
    }

    fn any_event(&mut self) -> TaskFilter {
        TaskFilter {
            event: self.event_of("*".into(), EventDef::default()),
            ..TaskFilter::default()
        }
    }

    fn event_of(&mut self, name: Arc<str>, event: EventDef) -> EventId {
        let id = EventId(self.workflow.events.len() as u32);
        self.workflow.events.push(EventDef {
            name,
            data_only: true,
            filter: Some(event.filter.unwrap_or_default()),
            ..event
        });
        id
    }

    fn one_filter(&mut self, node: &Node, sight: Sight) -> Option<TaskFilter> {
        let obj = self.object(node, "a filter", &["with", "correlate"])?;
        let Some(with) = obj.get("with") else {
            self.missing(obj, "a filter", &["with"]);
            return None;
        };
        let Some(members) = with.members() else {
            self.wrong_type(with, "'with'", "an object");
            return None;
        };
        let mut filter = TaskFilter::default();
        let mut event = EventDef::default();
        let mut attributes = EventAttributes::default();
        let mut is_whole = true;
        if members.is_empty() {
            let message = "'with' is empty".to_owned();
            let hint = "name an attribute, for example 'type'".to_owned();
            self.error(with, codes::MISSING_PROPERTY, message, hint);
            is_whole = false;
        }
        for member in members {
            let (name, value) = (member.key(), member.value());
            if name == "data" {
                filter.data = self.data_test(value, sight);
                is_whole &= filter.data.is_some();
                continue;
            }
            if !is_attribute(name) {
                let message = format!("an event can't have the attribute '{name}'");
                let hint =
                    "attributes of CloudEvents have lower case letters and digits".to_owned();
                let place = self.place(member.key_place());
                self.error_at(&place, codes::BAD_ATTRIBUTE, message, hint);
                is_whole = false;
                continue;
            }
            match self.attribute_test(name, value, sight) {
                None => is_whole = false,
                Some(Wanted::Value(Template::Literal(text))) if name == "type" => {
                    event.kind = Some(text.to_text());
                }
                Some(Wanted::Value(Template::Literal(text)))
                    if name == "source" && !is_source_pattern(&text.to_text()) =>
                {
                    event.source = Some(text.to_text());
                }
                Some(Wanted::Value(value)) => attributes.equal.push((name.into(), value)),
                Some(Wanted::Pattern(text)) => filter.patterns.push((name.into(), text)),
            }
        }
        if let Some(node) = obj.get("correlate") {
            match self.correlate(node, &mut event.correlation, sight) {
                Some(rules) => filter.correlate = rules,
                None => is_whole = false,
            }
        }
        event.filter = Some(attributes);
        let name = event.kind.clone().or_else(|| event.source.clone());
        let pattern = || {
            let first = filter.patterns.first();
            first.map_or_else(|| "*".to_owned(), |(_, text)| text.clone())
        };
        let name = name.unwrap_or_else(pattern);
        filter.event = self.event_of(name.into(), event);
        is_whole.then_some(filter)
    }

    fn attribute_test(&mut self, name: &str, node: &Node, sight: Sight) -> Option<Wanted> {
        if node.members().is_some() || node.items().is_some() || node.is_null() {
            self.wrong_type(
                node,
                &format!("'{name}'"),
                "a string, a number or a boolean",
            );
            return None;
        }
        if CloudEvent::TEXTS.contains(&name) && node.as_str().is_none() {
            self.wrong_type(node, &format!("'{name}'"), "a string");
            return None;
        }
        let value = self.wanted(node, sight, Self::scalars)?;
        let Template::Literal(literal) = &value else {
            return Some(Wanted::Value(value));
        };
        let text = literal.to_text();
        if !text.contains(PATTERN) {
            return Some(Wanted::Value(value));
        }
        let is_uri = matches!(name, "source" | "dataschema") && has_member(&text);
        match self.check_pattern(node, &format!("^(?:{text})$")) {
            Ok(_) => Some(Wanted::Pattern(text)),
            Err(_) if is_uri && !sight.is_start => {
                let uri = self.uri(node, &format!("'{name}'"), false);
                uri.map(Wanted::Value)
            }
            Err(reason) => {
                let message = format!("'{text}' is not a regular expression: {reason}");
                let hint = "put '\\' before a sign that stands for itself".to_owned();
                self.error(node, codes::BAD_PATTERN, message, hint);
                None
            }
        }
    }

    fn data_test(&mut self, node: &Node, sight: Sight) -> Option<DataTest> {
        let text = node.as_str().map(str::trim).unwrap_or_default();
        if self.is_bare_expression(text, sight.names)
            && let Template::Loose(test, text) = self.value(node, sight.names, false)?
        {
            return Some(DataTest::Loose(test, text));
        }
        if text.starts_with("${")
            && let Template::Expression(test) = self.value(node, sight.names, false)?
        {
            return Some(DataTest::Holds(test));
        }
        let value = self.wanted(node, sight, Self::value);
        value.map(DataTest::Equals)
    }

    /// A value that something of an event must be equal to.
    fn wanted(&mut self, node: &Node, sight: Sight, read: ReadValue<Self>) -> Option<Template> {
        let value = read(self, node, sight.names, false)?;
        if sight.is_start && !is_constant(&value) {
            let message = "a schedule can't compare with an expression: there is no data yet";
            let hint = "write the value itself".to_owned();
            self.error(node, codes::CORRELATION_NEEDS_DATA, message, hint);
            return None;
        }
        Some(value)
    }

    /// `correlate`. Attributes that events are found by are added to the event's definition.
    fn correlate(
        &mut self,
        node: &Node,
        indexed: &mut Vec<Correlation>,
        sight: Sight,
    ) -> Option<Vec<Correlate>> {
        let Some(members) = node.members() else {
            self.wrong_type(node, "'correlate'", "an object");
            return None;
        };
        let mut rules = Vec::with_capacity(members.len());
        let mut is_whole = true;
        for member in members {
            let key = member.key();
            let what = format!("the correlation '{key}'");
            let Some(obj) = self.object(member.value(), &what, &["from", "expect"]) else {
                is_whole = false;
                continue;
            };
            let Some(from) = obj.get("from") else {
                self.missing(obj, &what, &["from"]);
                is_whole = false;
                continue;
            };
            let expect = match obj.get("expect") {
                None => None,
                Some(node) => {
                    let value = match self.any_text(node, "'expect'") {
                        Some(_) => self.wanted(node, sight, Self::scalars),
                        None => None,
                    };
                    is_whole &= value.is_some();
                    value
                }
            };
            let Some(source) = self.expr(from, "'from'", sight.names) else {
                is_whole = false;
                continue;
            };
            let attribute = attribute_of(&self.workflow[source].text);
            let attribute = attribute.filter(|name| {
                let mut known = indexed.iter();
                known.all(|rule| *rule.attribute != **name)
            });
            let is_indexed = attribute.is_some() && expect.is_some();
            if let Some(attribute) = attribute {
                indexed.push(Correlation {
                    attribute: attribute.into(),
                    value: expect.clone(),
                });
            }
            rules.push(Correlate {
                key: key.into(),
                from: source,
                expect,
                is_indexed,
            });
        }
        is_whole.then_some(rules)
    }

    /// `foreach`.
    pub fn each_event(&mut self, node: &Node) -> Option<EachEvent> {
        let known = ["item", "at", "do", "output", "export"];
        let obj = self.object(node, "'foreach'", &known)?;
        let item = self.variable(self.meant(obj, "item"), "'item'", "item");
        let index = self.variable(self.meant(obj, "at"), "'at'", "index");
        if item == index {
            let message = format!("'item' and 'at' are both '{item}'");
            let hint = "use two names".to_owned();
            self.error(node, codes::BAD_ITERATION_PARAM, message, hint);
        }
        let outside = self.params.len();
        self.params.extend([item.clone(), index.clone()]);
        let body = obj.get("do").map(|node| self.tasks(node, "'do'"));
        let output = obj.get("output").map(|node| self.output(node, DEFINITION));
        let output = output.unwrap_or_default();
        let export = obj.get("export").map(|node| self.export(node, EXPORT));
        let export = export.unwrap_or_default();
        self.params.truncate(outside);
        Some(EachEvent {
            item,
            index,
            body,
            output: output.value,
            output_schema: output.schema,
            export: export.value,
            context_schema: export.schema,
        })
    }
}

type ReadValue<R> = fn(&mut R, &Node, &'static [&'static str], bool) -> Option<Template>;

/// What an attribute must be.
enum Wanted {
    Value(Template),
    Pattern(String),
}

/// Whether events may have an attribute of this name.
pub(super) fn is_attribute(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !name.is_empty() && name.bytes().all(inner) && name != "specversion"
}

/// The attribute that an expression over an event is, and nothing else.
fn attribute_of(expression: &str) -> Option<String> {
    let name = expression.trim().strip_prefix('.')?;
    (is_attribute(name) && name != "data").then(|| name.to_owned())
}

fn is_constant(value: &Template) -> bool {
    match value {
        Template::Literal(_) => true,
        Template::Array(items) => items.iter().all(is_constant),
        Template::Object(members) => members.iter().all(|(_, value)| is_constant(value)),
        Template::Expression(_) | Template::Text(_) | Template::Loose(..) => false,
    }
}
