//! Transitions, ends, produced events and `continueAs` (sections "Transition Definition", "End Definition",
//! "ProducedEvent Definition", "Continuing as a new Execution").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{ContinueAs, End, Next, Produce, Template, Transition};

use crate::build::advice;
use crate::build::ctx::{Ctx, Edge, Obj};
use crate::build::expression::VisibleVars;
use crate::build::references::EventUse;

impl Ctx<'_> {
    /// `transition` or `end`. `needed`: it is a finding if both are missing.
    pub fn next(&mut self, obj: Obj<'_>, what: &str, needed: bool) -> Option<Next> {
        let transition = obj.get("transition");
        // `end: false` isn't an end (docs/language.md#decision-69).
        let end = obj.get("end").filter(|node| node.as_bool() != Some(false));
        match (transition, end) {
            (Some(transition), Some(end)) => {
                self.exclusive(obj, what, &["transition", "end"]);
                // Errors inside them are reported too.
                self.transition(transition);
                self.end(end);
                None
            }
            (Some(node), None) => self.transition(node).map(Next::Transition),
            (None, Some(node)) => self.end(node).map(Next::End),
            (None, None) => {
                if needed {
                    self.missing(obj, what, &["transition", "end"]);
                }
                None
            }
        }
    }

    pub fn transition(&mut self, node: &Node) -> Option<Transition> {
        let mut guard = None;
        let (target, what, compensate, produce) = match node.members() {
            None if node.as_str().is_none() => {
                self.wrong_type(node, "'transition'", "a state's name or an object");
                return None;
            }
            None => (node, "a transition", false, Vec::new()),
            Some(_) => {
                let mut known = vec!["nextState", "compensate", "produceEvents"];
                known.extend(self.dialect.parts.guards.then_some("expression"));
                let obj = self.object(node, "a transition", &known)?;
                let compensate = self.compensate(obj);
                let produce = self.produced(obj);
                if self.dialect.parts.guards {
                    guard = self.opt_expression(obj, "expression", VisibleVars::PLAIN);
                }
                match obj.get("nextState") {
                    Some(target) => (target, "'nextState'", compensate, produce),
                    None => {
                        self.missing(obj, "a transition", &["nextState"]);
                        return None;
                    }
                }
            }
        };
        let to = self.state_ref(target, what)?;
        let location = self.location(target);
        self.edges.push(Edge {
            from: self.state,
            to,
            location,
        });
        Some(Transition {
            to,
            compensate,
            produce,
            guard,
        })
    }

    pub fn end(&mut self, node: &Node) -> Option<End> {
        self.ends.push(self.state);
        let has_kind = self.dialect.parts.kinds_of_ends;
        if node.as_bool() == Some(true) {
            return Some(End::default());
        }
        if let Some(text) = node.as_str()
            && advice::flag(text) == Some(true)
        {
            let message = format!("'end' is the string \"{text}\" instead of true");
            self.loose(node, message, "write true without quotes".to_owned());
            return Some(End::default());
        }
        if node.members().is_none() {
            let wanted = match has_kind {
                true => "an object with a 'kind'",
                false => "true or an object",
            };
            self.wrong_type(node, "'end'", wanted);
            return None;
        }
        let mut known = vec!["terminate", "produceEvents", "compensate", "continueAs"];
        known.extend(has_kind.then_some("kind"));
        let obj = self.object(node, "an end", &known)?;
        let terminate = self.boolean(obj, "terminate", false);
        let compensate = self.compensate(obj);
        let produce = self.produced(obj);
        let continue_as = obj.get("continueAs").map(|node| self.continue_as(node));
        let continues = continue_as.is_some();
        if let (true, Some(node)) = (continues, obj.get("terminate"))
            && node.as_bool() == Some(false)
        {
            self.warn(
                    node,
                    codes::CONTINUE_AS_TERMINATE,
                    "'terminate: false' has no effect next to 'continueAs', which always ends the instance",
                    "remove 'terminate'".to_owned(),
                );
        }
        self.terminates |= terminate || continues;
        Some(End {
            terminate: terminate || continues,
            // For a waiting parent, a continuation is still the one call.
            terminate_parents: terminate && !continues && has_kind,
            compensate,
            produce,
            continue_as: match continue_as {
                Some(continue_as) => Some(continue_as?),
                None => None,
            },
            ..End::default()
        })
    }

    /// Compensation isn't recursive: a compensating state triggers none.
    fn compensate(&mut self, obj: Obj<'_>) -> bool {
        let compensate = self.boolean(obj, "compensate", false);
        if let (true, true, Some(node)) = (compensate, self.compensating, obj.get("compensate")) {
            let why = "the state itself runs in a compensation, which cannot trigger another one";
            self.ignored(node, "compensate", why);
        }
        compensate
    }

    fn continue_as(&mut self, node: &Node) -> Option<ContinueAs> {
        if node.as_str().is_some() {
            let workflow = self.reference(node, "'continueAs'")?;
            self.check_known_workflow(node, &workflow);
            return Some(ContinueAs {
                workflow,
                version: None,
                data: None,
                timeout: None,
            });
        }
        if node.members().is_none() {
            self.wrong_type(node, "'continueAs'", "a workflow's id or an object");
            return None;
        }
        let known = &["workflowId", "version", "data", "workflowExecTimeout"];
        let obj = self.object(node, "'continueAs'", known)?;
        let version = obj
            .get("version")
            .and_then(|node| self.version_reference(node));
        let data = obj.get("data").and_then(|node| self.payload(node));
        let timeout = obj
            .get("workflowExecTimeout")
            .and_then(|node| self.timeout_override(node));
        let workflow = self.workflow_reference(obj, "'continueAs'")?;
        self.check_known_workflow(node, &workflow);
        Some(ContinueAs {
            workflow,
            version,
            data,
            timeout,
        })
    }

    /// `data` that is sent: an expression or an object.
    fn payload(&mut self, node: &Node) -> Option<Template> {
        let params = self.params.clone();
        let sight = VisibleVars {
            params: &params,
            ..VisibleVars::PLAIN
        };
        match node.as_str() {
            // It is always an expression (docs/language.md#decision-80).
            Some(text) if !text.contains(self.dialect.delimiters.open()) => {
                self.literal_hint = true;
                let id = self.expression(node, "'data'", sight);
                self.literal_hint = false;
                return id.map(Template::Expression);
            }
            Some(_) => {}
            None if node.members().is_none() => {
                self.wrong_type(node, "'data'", "an expression or an object");
                return None;
            }
            None => self.warn_unmarked(node),
        }
        self.template(node, sight)
    }

    pub fn produced(&mut self, obj: Obj<'_>) -> Vec<Produce> {
        let Some(node) = obj.get("produceEvents") else {
            return Vec::new();
        };
        let Some(items) = self.list(node, "'produceEvents'") else {
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| self.produced_event(item))
            .collect()
    }

    fn produced_event(&mut self, node: &Node) -> Option<Produce> {
        let obj = self.object(
            node,
            "a produced event",
            &["eventRef", "data", "contextAttributes"],
        )?;
        self.produce(obj, "eventRef", "a produced event")
    }

    /// `data` and `contextAttributes`, and the event that the property `name` refers to.
    pub fn produce(&mut self, obj: Obj<'_>, name: &str, what: &str) -> Option<Produce> {
        let data = obj.get("data").map(|node| self.payload(node));
        let attributes = self.context_attributes(obj);
        let Some(node) = obj.get(name) else {
            self.missing(obj, what, &[name]);
            return None;
        };
        let event = self.event(node, &format!("'{name}'"), EventUse::Produce)?;
        let data = match data {
            Some(data) => Some(data?),
            None => None,
        };
        Some(Produce {
            event,
            data,
            attributes,
        })
    }

    /// An object, or a list of objects (docs/language.md#decision-7).
    fn context_attributes(&mut self, obj: Obj<'_>) -> Vec<(String, Template)> {
        let Some(node) = obj.get("contextAttributes") else {
            return Vec::new();
        };
        let objects: Vec<&Node> = match node.items() {
            Some(items) => items.iter().collect(),
            None => vec![node],
        };
        let params = self.params.clone();
        let sight = VisibleVars {
            params: &params,
            ..VisibleVars::PLAIN
        };
        let mut attributes: Vec<(String, Template)> = Vec::new();
        for object in objects {
            let Some(members) = object.members() else {
                self.wrong_type(
                    object,
                    "'contextAttributes'",
                    "an object or a list of objects",
                );
                continue;
            };
            for member in members {
                let name = member.key().to_lowercase();
                self.warn_unmarked(member.value());
                if let Some(advice) = reserved(&name) {
                    let message =
                        format!("'{name}' of an event cannot be set in 'contextAttributes'");
                    let hint = advice.to_owned();
                    self.error(member.value(), codes::BAD_ATTRIBUTE, message, hint);
                } else if !has_attribute_letters(&name) {
                    let message = format!(
                        "'{}' is not a valid name of a CloudEvents attribute",
                        member.key()
                    );
                    let hint = "names have letters, digits, '-' and '_' only".to_owned();
                    self.error(member.value(), codes::BAD_ATTRIBUTE, message, hint);
                } else if attributes.iter().any(|(known, _)| *known == name) {
                    self.duplicate(member.value(), "context attribute", &name);
                }
                if member.value().members().is_some() || member.value().items().is_some() {
                    let what = format!("the context attribute '{}'", member.key());
                    self.wrong_type(member.value(), &what, "a string, a number, true or false");
                } else if let Some(value) = self.template(member.value(), sight) {
                    attributes.push((name, value));
                }
            }
        }
        attributes
    }
}

/// The attributes of an event that its author cannot set as context attributes, and the alternative for each.
fn reserved(name: &str) -> Option<&'static str> {
    Some(match name {
        "id" => "leave it out: each event gets its own id",
        "source" => "write 'source' in the definition of the event",
        "type" => "write 'type' in the definition of the event",
        "data" | "data_base64" => "write 'data' next to 'contextAttributes'",
        "specversion" | "datacontenttype" => {
            "leave it out: events are sent as CloudEvents 1.0 with JSON"
        }
        _ => return None,
    })
}

/// CloudEvents permits lower-case letters and digits. Publishers on NATS use other characters in practice, so `-` and
/// `_` are accepted too. A name that no event can have is rejected in correlations as well.
pub(super) fn has_attribute_letters(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

#[cfg(test)]
mod tests {
    use crate::build::parts::testing::read_with;

    /// The message and the hint of the first finding.
    fn finding(attribute: &str) -> String {
        let body = format!(
            "events: [{{name: p, type: p, kind: produced}}]\nstates: [{{name: A, type: inject, data: {{}}, end: {{produceEvents: \
             [{{eventRef: p, contextAttributes: {{{attribute}: x}}}}]}}}}]\n"
        );
        let reading = read_with(&body, &[], &[]);
        let first = reading.diagnostics.iter().next();
        first.map_or(String::new(), |first| {
            let hint = first.hint.as_deref().unwrap_or_default();
            format!("{}: {hint}", first.message)
        })
    }

    #[test]
    fn attributes_that_cannot_be_set() {
        for (attribute, expected) in [
            ("order", ""),
            ("subject", ""),
            (
                "id",
                "'id' of an event cannot be set in 'contextAttributes': leave it out: each event gets its own id",
            ),
            (
                "Type",
                "'type' of an event cannot be set in 'contextAttributes': write 'type' in the definition of the event",
            ),
            (
                "data",
                "'data' of an event cannot be set in 'contextAttributes': write 'data' next to 'contextAttributes'",
            ),
            (
                "order id",
                "'order id' is not a valid name of a CloudEvents attribute: names have letters, digits, '-' and '_' only",
            ),
        ] {
            assert_eq!(finding(attribute), expected, "{attribute}");
        }
    }
}
