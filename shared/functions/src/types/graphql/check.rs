//! Checks arguments and selection sets against the types that a definition states, or against the service's schema if
//! it was available at deployment.

use std::collections::HashMap;

use swirl_spec::graphql::Selected;

use super::schema::{Field, Input, Inputs, Schema, Type, inner};
use crate::types::fits::{self, did_you_mean, nearest};
use crate::types::misfit::{below, messages};
use crate::types::{Misfit, StaticValue};

/// The values that the service would reject, according to the types that the definition states. Arguments without a
/// type aren't checked.
pub(super) fn given(types: &HashMap<String, String>, arguments: &StaticValue) -> Vec<Misfit> {
    let inputs = types.iter().map(|(name, of)| {
        let input = Input {
            of: Some(of.clone()),
            has_default: false,
        };
        (name.clone(), input)
    });
    let check = Check {
        schema: None,
        found: Vec::new(),
    };
    check.arguments(&inputs.collect(), arguments)
}

/// The values that the service would reject, according to its schema.
pub(super) fn arguments(schema: &Schema, field: &Field, arguments: &StaticValue) -> Vec<Misfit> {
    let check = Check {
        schema: Some(schema),
        found: Vec::new(),
    };
    check.arguments(&field.arguments, arguments)
}

/// The same for the selection set of a field.
pub(super) fn selection(
    schema: &Schema,
    name: &str,
    field: &Field,
    selected: &[Selected],
) -> Vec<String> {
    let mut check = Check {
        schema: Some(schema),
        found: Vec::new(),
    };
    check.set(name, field, selected);
    let found = messages(check.found).into_iter();
    found
        .map(|found| format!("the selection set: {found}"))
        .collect()
}

struct Check<'a> {
    /// `None`: unknown members are allowed.
    schema: Option<&'a Schema>,
    found: Vec<Misfit>,
}

impl Check<'_> {
    fn arguments(mut self, inputs: &Inputs, arguments: &StaticValue) -> Vec<Misfit> {
        match arguments {
            StaticValue::Unknown => {}
            StaticValue::Null => self.members(inputs, &[], "the argument ", ""),
            StaticValue::Object(members) => self.members(inputs, members, "the argument ", ""),
            other => {
                let kind = other.kind();
                let message = format!("the arguments must be an object, but are {kind}");
                self.found.push(message.into());
            }
        }
        self.found
    }

    /// `before`: the prefix of a name in messages. `at`: the location of the members.
    fn members(
        &mut self,
        inputs: &Inputs,
        members: &[(String, StaticValue)],
        before: &str,
        at: &str,
    ) {
        let mut meant = Vec::new();
        for (name, input) in inputs {
            let given = members.iter().find(|(known, _)| known == name);
            let needed = input.of.as_ref().is_some_and(|of| of.ends_with('!'));
            match (given, &input.of) {
                (Some((_, value)), Some(of)) => {
                    self.value(of, value, &format!("{before}`{name}`"), &below(at, name));
                }
                (None, _) if needed && !input.has_default => {
                    let strays = members.iter().map(|(name, _)| name.as_str());
                    let strays = strays.filter(|stray| !inputs.contains_key(*stray));
                    let stray = nearest(name, strays);
                    meant.extend(stray);
                    let message = fits::missing(&format!("{before}`{name}`"), name, stray);
                    self.found.push(Misfit::new(at, message));
                }
                _ => {}
            }
        }
        if self.schema.is_none() {
            return;
        }
        for (name, _) in members {
            if !inputs.contains_key(name) && !meant.contains(&name.as_str()) {
                let hint = did_you_mean(name, inputs.keys().map(String::as_str));
                let message = format!("{before}`{name}` is unknown to the service{hint}");
                self.found.push(Misfit::new(&below(at, name), message));
            }
        }
    }

    /// Checks scalars of the language, lists, and types from the schema. The service's own scalars aren't checked.
    fn value(&mut self, of: &str, value: &StaticValue, what: &str, at: &str) {
        let of = of.trim();
        let (bare, needed) = match of.strip_suffix('!') {
            Some(bare) => (bare.trim(), true),
            None => (of, false),
        };
        match value {
            StaticValue::Unknown => return,
            StaticValue::Null => {
                if needed {
                    let message = format!("{what} must be `{of}`, but is null");
                    self.found.push(Misfit::new(at, message));
                }
                return;
            }
            _ => {}
        }
        if let Some(item) = bare
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            // A single value is a list with one element.
            match value {
                StaticValue::List(items) => {
                    for (index, value) in items.iter().enumerate() {
                        let (what, at) = (format!("{what}[{index}]"), format!("{at}/{index}"));
                        self.value(item, value, &what, &at);
                    }
                }
                value => self.value(item, value, what, at),
            }
            return;
        }
        let fits = match (bare, value) {
            ("Int", StaticValue::Number(Some(number))) => {
                number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            ("Int" | "Float" | "ID", StaticValue::Number(_)) => true,
            ("String" | "ID", StaticValue::Text(_)) => true,
            ("Boolean", StaticValue::Bool(_)) => true,
            ("Int" | "Float" | "String" | "ID" | "Boolean", _) => false,
            (bare, value) => match self.schema.and_then(|schema| schema.get(bare)) {
                Some(Type::Enum(values)) => match value {
                    StaticValue::Text(Some(text)) if !values.contains(text) => {
                        let hint = did_you_mean(text, values.iter().map(String::as_str));
                        let message = format!("{what} must be `{of}`, which has no `{text}`{hint}");
                        self.found.push(Misfit::new(at, message));
                        true
                    }
                    StaticValue::Text(_) => true,
                    _ => false,
                },
                Some(Type::Input(inputs)) => match value {
                    StaticValue::Object(members) => {
                        self.members(inputs, members, &format!("{what}: "), at);
                        true
                    }
                    _ => false,
                },
                _ => true,
            },
        };
        if !fits {
            let kind = value.kind();
            let message = format!("{what} must be `{of}`, but is {kind}");
            self.found.push(Misfit::new(at, message));
        }
    }

    fn refuse(&mut self, message: String) {
        self.found.push(message.into());
    }

    fn set(&mut self, name: &str, field: &Field, selected: &[Selected]) {
        let Some(of) = field.of.as_deref().map(inner) else {
            return;
        };
        match self.schema.and_then(|schema| schema.get(of)) {
            Some(Type::Fields(_) | Type::Union) if selected.is_empty() => self.refuse(format!(
                "`{name}` is `{of}`, of which fields must be selected"
            )),
            Some(Type::Fields(_) | Type::Union) => self.selected(of, selected),
            Some(Type::Scalar | Type::Enum(_)) if !selected.is_empty() => {
                self.refuse(format!("`{name}` is `{of}`, which has no fields"))
            }
            _ => {}
        }
    }

    fn selected(&mut self, of: &str, selected: &[Selected]) {
        let Some(schema) = self.schema else { return };
        for one in selected {
            match one {
                Selected::Fragment { of: None, inner } => self.selected(of, inner),
                Selected::Fragment {
                    of: Some(other),
                    inner,
                } => match schema.get(other) {
                    None => self.refuse(format!("there is no type `{other}`")),
                    Some(_) => self.selected(other, inner),
                },
                Selected::Field {
                    name,
                    arguments,
                    inner,
                } => {
                    // Every type has these three fields.
                    if matches!(&name[..], "__typename" | "__schema" | "__type") {
                        continue;
                    }
                    let fields = match schema.get(of) {
                        Some(Type::Fields(fields)) => fields,
                        Some(Type::Union) => {
                            self.refuse(format!(
                                "`{of}` is a union: put `{name}` into a fragment, `... on TYPE {{ {name} }}`"
                            ));
                            continue;
                        }
                        _ => continue,
                    };
                    let Some(field) = fields.get(name) else {
                        let hint = did_you_mean(name, fields.keys().map(String::as_str));
                        self.refuse(format!("`{of}` has no field `{name}`{hint}"));
                        continue;
                    };
                    for argument in arguments {
                        if !field.arguments.contains_key(argument) {
                            let known = field.arguments.keys().map(String::as_str);
                            let hint = did_you_mean(argument, known);
                            self.refuse(format!(
                                "the field `{name}` of `{of}` has no argument `{argument}`{hint}"
                            ));
                        }
                    }
                    self.set(name, field, inner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use swirl_spec::graphql::selected;

    use super::super::query::OperationKind;
    use super::*;

    #[test]
    fn arguments_are_checked_against_stated_types() {
        let types = [
            ("id", "ID!"),
            ("tags", "[String!]"),
            ("size", "Int"),
            ("filter", "Filter"),
        ];
        let types = types
            .map(|(name, of)| (name.to_owned(), of.to_owned()))
            .into();
        let found =
            |arguments: Value| messages(given(&types, &StaticValue::from(arguments))).join("; ");
        for (arguments, expected) in [
            (
                json!({"id": 1, "tags": ["a"], "size": 2, "filter": {}, "more": 1}),
                "",
            ),
            (json!({"id": "1", "tags": "a", "size": null}), ""),
            (
                json!({"iD": 1}),
                "the argument `id` is missing, and `iD` is there; did you mean `id`?",
            ),
            (
                json!({"id": null}),
                "the argument `id` must be `ID!`, but is null",
            ),
            (
                json!({"id": 1, "tags": ["a", 2]}),
                "the argument `tags`[1] must be `String!`, but is a number",
            ),
            (
                json!({"id": 1, "size": 2.5}),
                "the argument `size` must be `Int`, but is a number",
            ),
            (
                json!({"id": 1, "size": "2"}),
                "the argument `size` must be `Int`, but is a string",
            ),
        ] {
            assert_eq!(found(arguments.clone()), expected, "{arguments}");
        }
    }

    fn schema() -> Schema {
        let named = |kind: &str, name: &str| json!({"kind": kind, "name": name, "ofType": null});
        let some = |of: Value| json!({"kind": "NON_NULL", "name": null, "ofType": of});
        let list = |of: Value| json!({"kind": "LIST", "name": null, "ofType": of});
        let input = |name: &str, of: Value| json!({"name": name, "type": of, "defaultValue": null});
        let field =
            |name: &str, args: Value, of: Value| json!({"name": name, "args": args, "type": of});
        let text = || named("SCALAR", "String");
        let limit =
            json!({"name": "limit", "type": some(named("SCALAR", "Int")), "defaultValue": "10"});
        let wanted = input("wanted", named("INPUT_OBJECT", "Wanted"));
        let answer = json!({"data": {"__schema": {
            "queryType": {"name": "Query"},
            "mutationType": null,
            "types": [
                {"kind": "OBJECT", "name": "Query", "fields": [
                    field("pet", json!([input("id", some(named("SCALAR", "ID")))]), named("INTERFACE", "Pet")),
                    field("pets", json!([wanted, limit]), list(some(named("UNION", "Any")))),
                    field("count", json!([]), some(named("SCALAR", "Int"))),
                ]},
                {"kind": "INTERFACE", "name": "Pet", "fields": [
                    field("name", json!([]), text()),
                    field("age", json!([input("useDogYears", named("SCALAR", "Boolean"))]), named("OBJECT", "Age")),
                ]},
                {"kind": "OBJECT", "name": "Dog", "fields": [field("barks", json!([]), text())]},
                {"kind": "OBJECT", "name": "Age", "fields": [field("years", json!([]), named("SCALAR", "Int"))]},
                {"kind": "UNION", "name": "Any"},
                {"kind": "ENUM", "name": "Kind", "enumValues": [{"name": "DOG"}, {"name": "CAT"}]},
                {"kind": "INPUT_OBJECT", "name": "Wanted", "inputFields": [
                    input("kinds", list(some(named("ENUM", "Kind")))),
                    input("near", some(text())),
                    input("and", named("INPUT_OBJECT", "Wanted")),
                ]},
                {"kind": "SCALAR", "name": "Int"}, {"kind": "SCALAR", "name": "String"},
                {"kind": "SCALAR", "name": "ID"}, {"kind": "SCALAR", "name": "Boolean"},
            ],
        }}});
        Schema::read(&answer.to_string()).unwrap()
    }

    #[test]
    fn arguments_are_checked_against_the_schema() {
        let schema = schema();
        let roots = schema.roots(OperationKind::Query).unwrap();
        for (field, given, expected) in [
            ("pet", json!({"id": 1}), ""),
            (
                "pet",
                json!({"idd": 1}),
                "the argument `id` is missing, and `idd` is there; did you mean `id`?",
            ),
            ("pets", json!({}), ""),
            (
                "pets",
                json!({"limit": 3, "wanted": {"near": "here", "kinds": ["DOG"]}}),
                "",
            ),
            (
                "pets",
                json!({"wanted": {"kinds": "BIRD", "and": {"near": 1, "nera": "x"}, "near": "x"}}),
                "the argument `wanted`: `and`: `near` must be `String!`, but is a number; the argument `wanted`: \
                 `and`: `nera` is unknown to the service; did you mean `near`?; the argument `wanted`: `kinds` must \
                 be `Kind!`, which has no `BIRD`",
            ),
            (
                "pets",
                json!({"wanted": "all"}),
                "the argument `wanted` must be `Wanted`, but is a string",
            ),
        ] {
            let found = arguments(&schema, &roots[field], &StaticValue::from(given.clone()));
            assert_eq!(messages(found).join("; "), expected, "{field} {given}");
        }
        assert!(schema.roots(OperationKind::Mutation).is_none());
    }

    #[test]
    fn selection_sets_are_checked_against_the_schema() {
        let schema = schema();
        let roots = schema.roots(OperationKind::Query).unwrap();
        for (field, text, expected) in [
            (
                "pet",
                "{ name, __typename, age(useDogYears: true) { years } }",
                "",
            ),
            ("pet", "{ ... on Dog { barks } ... { name } }", ""),
            (
                "pet",
                "",
                "`pet` is `Pet`, of which fields must be selected",
            ),
            (
                "pet",
                "{ age }",
                "`age` is `Age`, of which fields must be selected",
            ),
            (
                "pet",
                "{ nmae }",
                "`Pet` has no field `nmae`; did you mean `name`?",
            ),
            (
                "pet",
                "{ age(useDogYear: true) { years { x } } }",
                "the field `age` of `Pet` has no argument `useDogYear`; did you mean `useDogYears`?; `years` is \
                 `Int`, which has no fields",
            ),
            (
                "pet",
                "{ ... on Bird { sings } }",
                "there is no type `Bird`",
            ),
            (
                "pets",
                "{ name }",
                "`Any` is a union: put `name` into a fragment, `... on TYPE { name }`",
            ),
            ("pets", "{ ... on Dog { barks } }", ""),
            ("count", "", ""),
            ("count", "{ all }", "`count` is `Int`, which has no fields"),
        ] {
            let found = selection(&schema, field, &roots[field], &selected(text));
            let found: Vec<&str> = found
                .iter()
                .map(|found| found.trim_start_matches("the selection set: "))
                .collect();
            assert_eq!(found.join("; "), expected, "{field} {text}");
        }
    }

    #[test]
    fn an_answer_without_a_schema_is_an_error() {
        for (answer, reason) in [
            ("<html>", "its answer is not valid JSON"),
            (
                r#"{"errors": [{"message": "off"}]}"#,
                "doesn't reveal its schema",
            ),
            (
                r#"{"data": {"__schema": {"queryType": null}}}"#,
                "doesn't reveal its schema",
            ),
        ] {
            let error = Schema::read(answer).unwrap_err();
            assert!(error.contains(reason), "{answer}: {error}");
        }
    }
}
