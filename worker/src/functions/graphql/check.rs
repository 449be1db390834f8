//! Arguments against the types that a definition gives for them.
//!
//! The service's own types are asked for at the first call: no deployment waits for it.

use std::collections::HashMap;

use crate::functions::Known;
use crate::functions::fits::nearest;

/// What the service would refuse. Arguments without a type are left to it.
pub(super) fn arguments(types: &HashMap<String, String>, arguments: &Known) -> Vec<String> {
    let members = match arguments {
        Known::Unknown => return Vec::new(),
        Known::Null => &[][..],
        Known::Object(members) => members,
        other => {
            let kind = other.kind();
            return vec![format!("the arguments must be an object, and are {kind}")];
        }
    };
    let mut found = Vec::new();
    let mut names: Vec<&String> = types.keys().collect();
    names.sort();
    for name in names {
        let given = members.iter().find(|(known, _)| known == name);
        match given {
            Some((_, value)) => {
                let what = format!("the argument `{name}`");
                found.extend(misfit(&types[name], value, &what));
            }
            None if types[name].ends_with('!') => {
                let strays = members.iter().map(|(name, _)| name.as_str());
                let hint = match nearest(name, strays.filter(|stray| !types.contains_key(*stray))) {
                    Some(stray) => format!("; is `{stray}` meant to be it?"),
                    None => String::new(),
                };
                found.push(format!("the argument `{name}` is missing{hint}"));
            }
            None => {}
        }
    }
    found
}

/// Scalars of the language, lists and what must be there; other types are the service's own.
fn misfit(of: &str, value: &Known, what: &str) -> Option<String> {
    let of = of.trim();
    let (inner, needed) = match of.strip_suffix('!') {
        Some(inner) => (inner.trim(), true),
        None => (of, false),
    };
    if matches!(value, Known::Unknown | Known::Null) {
        let is_null = *value == Known::Null && needed;
        return is_null.then(|| format!("{what} must be `{of}`, and is null"));
    }
    if let Some(item) = inner
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        // A single value is a list of one.
        return match value {
            Known::List(items) => items
                .iter()
                .enumerate()
                .find_map(|(index, value)| misfit(item, value, &format!("{what}[{index}]"))),
            value => misfit(item, value, what),
        };
    }
    let fits = match (inner, value) {
        ("Int", Known::Number(Some(number))) => {
            number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        ("Int" | "Float" | "ID", Known::Number(_)) => true,
        ("String" | "ID", Known::Text(_)) => true,
        ("Boolean", Known::Bool(_)) => true,
        ("Int" | "Float" | "String" | "ID" | "Boolean", _) => false,
        _ => true,
    };
    (!fits).then(|| format!("{what} must be `{of}`, and is {}", value.kind()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn arguments_fit_the_types_that_are_given() {
        let types = [
            ("id", "ID!"),
            ("tags", "[String!]"),
            ("size", "Int"),
            ("filter", "Filter"),
        ];
        let types = types
            .map(|(name, of)| (name.to_owned(), of.to_owned()))
            .into();
        let found = |arguments: Value| super::arguments(&types, &Known::from(arguments)).join("; ");
        for (arguments, expected) in [
            (
                json!({"id": 1, "tags": ["a"], "size": 2, "filter": {}, "more": 1}),
                "",
            ),
            (json!({"id": "1", "tags": "a", "size": null}), ""),
            (
                json!({"iD": 1}),
                "the argument `id` is missing; is `iD` meant to be it?",
            ),
            (
                json!({"id": null}),
                "the argument `id` must be `ID!`, and is null",
            ),
            (
                json!({"id": 1, "tags": ["a", 2]}),
                "the argument `tags`[1] must be `String!`, and is a number",
            ),
            (
                json!({"id": 1, "size": 2.5}),
                "the argument `size` must be `Int`, and is a number",
            ),
            (
                json!({"id": 1, "size": "2"}),
                "the argument `size` must be `Int`, and is a text",
            ),
        ] {
            assert_eq!(found(arguments.clone()), expected, "{arguments}");
        }
    }
}
