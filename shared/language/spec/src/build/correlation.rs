//! Values that are needed before there is an instance: correlation values of start events, and the times of schedules.
//! There is no data that an expression could see, so its value is computed here once, over `{}` and the constants.

use std::collections::BTreeSet;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_expr::{Env, Program};
use swirl_model::Data;
use swirl_model::workflow::{EventId, ExprId, StateId, StateKind, Template, TextPart, Workflow};

use super::ctx::Ctx;
use super::expression::VisibleVars;
use super::location::Location;

impl Ctx<'_> {
    /// Replaces expressions with values in the events that the starting state waits for.
    pub fn start_event_values(&mut self, start: StateId) {
        let state = self.workflow.states.get(start.0 as usize);
        let Some(StateKind::Event(state)) = state.map(|state| &state.kind) else {
            return;
        };
        let entries = state.entries.iter();
        let events: BTreeSet<EventId> = entries.flat_map(|entry| entry.events.clone()).collect();
        for (event, rule, location) in std::mem::take(&mut self.correlation_values) {
            if events.contains(&event) {
                self.start_event_value(event, rule, &location);
            }
        }
    }

    fn start_event_value(&mut self, event: EventId, rule: usize, location: &Location) {
        let workflow = &self.workflow;
        let rules = workflow.events.get(event.0 as usize);
        let rule_of = |rules: &swirl_model::workflow::EventDef| {
            let rule = rules.correlation.get(rule)?;
            Some((rule.attribute.clone(), rule.value.clone()?))
        };
        let Some((attribute, template)) = rules.and_then(rule_of) else {
            return;
        };
        if matches!(template, Template::Literal(_)) {
            return;
        }
        let Some(value) = constant(workflow, &template) else {
            if !self.lacks_constants() {
                self.needs_data(location, &attribute);
            }
            return;
        };
        let event = &mut self.workflow.events[event.0 as usize];
        event.correlation[rule].value = Some(Template::Literal(value));
    }

    fn needs_data(&mut self, location: &Location, attribute: &str) {
        let message = format!(
            "the value of '{attribute}' is not known before there is an instance, and this event starts the instance"
        );
        let hint = "without 'contextAttributeValue' events with equal values belong together; else use a constant, or '$CONST'";
        self.error_at(
            location,
            codes::CORRELATION_NEEDS_DATA,
            message,
            hint.to_owned(),
        );
    }
}

impl Ctx<'_> {
    /// A text that must be known at deployment: it may be an expression over constants (docs/language.md#decision-105).
    pub fn constant_text(&mut self, node: &Node, what: &str) -> Option<String> {
        let text = self.string(node, what)?;
        if !text.contains(self.dialect.delimiters.open()) {
            return Some(text);
        }
        let template = self.template(node, VisibleVars::PLAIN)?;
        if let Some(value) = constant(&self.workflow, &template) {
            return Some(value.to_text());
        }
        if !self.lacks_constants() {
            let message = format!("the value of {what} is not known at deployment");
            let hint = "write it out, or as an expression over constants: '${ $CONST.name }'";
            self.error(node, codes::BAD_DATE_TIME, message, hint.to_owned());
        }
        None
    }

    /// Whether the constants could not be read, which is reported already. So the values that depend on them are unknown.
    fn lacks_constants(&self) -> bool {
        let mut found = self.diagnostics.iter();
        found.any(|found| found.is_error() && found.pointer.starts_with("/constants"))
    }
}

/// The value of a template, if it is the same for all data and at any time.
fn constant(workflow: &Workflow, template: &Template) -> Option<Data> {
    match template {
        Template::Expression(id) => constant_of(workflow, *id),
        Template::Text(parts) => {
            let part = |part: &TextPart| match part {
                TextPart::Text(text) => Some(text.clone()),
                TextPart::Expression(id) => Some(constant_of(workflow, *id)?.to_text()),
            };
            let parts: Option<Vec<String>> = parts.iter().map(part).collect();
            Some(Data::string(parts?.concat()))
        }
        Template::Literal(_) | Template::Array(_) | Template::Object(_) | Template::Loose(..) => {
            None
        }
    }
}

fn constant_of(workflow: &Workflow, id: ExprId) -> Option<Data> {
    let source = workflow.expressions.get(id.0 as usize)?;
    let vars = ["CONST", "SECRETS", "WORKFLOW"];
    let program = Program::compile(source.language, &source.text, &vars);
    let program = program.ok()?;
    if program.uses_var("SECRETS") || program.uses_var("WORKFLOW") {
        return None;
    }
    let vars = [workflow.constants.clone(), Data::NULL, Data::NULL];
    let value = |input: &Data, now_ms| {
        let env = Env {
            now_ms,
            ..Env::default()
        };
        program.one(input, &vars, &env).ok().flatten()
    };
    let found = value(&Data::object(), 0).filter(|value| !value.is_null())?;
    // Data that has some value under every name that the expression could look for.
    let mut other = Data::object();
    for name in source
        .text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
    {
        other.set(name, Data::string("\u{1}"));
    }
    (value(&other, 1_000_000).as_ref() == Some(&found)).then_some(found)
}

#[cfg(test)]
mod tests {
    use crate::build::parts::testing::{findings, workflow};

    fn body(value: &str) -> String {
        format!(
            "constants: {{unit: U}}\n\
             events: [{{name: e, type: t, correlation: [{{contextAttributeName: a, contextAttributeValue: '{value}'}}]}}]\n\
             states: [{{name: S, type: event, onEvents: [{{eventRefs: [e]}}], end: true}}]\n"
        )
    }

    #[test]
    fn values_that_are_constant() {
        for (value, expected) in [
            ("U", "U"),
            ("${ $CONST.unit }", "U"),
            ("${ $CONST | .unit }", "U"),
            ("${ \"a\" + $CONST.unit | ascii_downcase }", "au"),
            ("x-${ $CONST.unit }", "x-U"),
            ("${ 7 }", "7"),
        ] {
            let body = body(value);
            assert_eq!(findings(&body), "", "{value}");
            let found = &workflow(&body).events[0].correlation[0].value;
            let Some(swirl_model::workflow::Template::Literal(found)) = found else {
                panic!("{value}: {found:?}");
            };
            assert_eq!(found.to_text(), expected, "{value}");
        }
    }

    #[test]
    fn values_that_need_data() {
        let expected =
            "error correlation-needs-data /events/0/correlation/0/contextAttributeValue 5";
        for value in [
            "${ .unit }",
            "${ .unit // \"U\" }",
            "x-${ .unit }",
            "${ \"x-\\(.a.b)\" }",
            "${ $WORKFLOW.instanceId }",
            "${ now }",
        ] {
            assert_eq!(findings(&body(value)), expected, "{value}");
        }
        assert_eq!(
            findings(&body("${ $CONST.none }")),
            format!(
                "warning unknown-constant /events/0/correlation/0/contextAttributeValue 5\n{expected}"
            )
        );
        let later = body("${ .unit }").replace(
            "states: [",
            "states: [{name: B, type: inject, data: {a: 1}, transition: S}, ",
        );
        assert_eq!(findings(&later), "");
    }
}
