//! The request: a document with one field, and its variables.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use swirl_spec::graphql;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationKind {
    Query,
    Mutation,
}

impl OperationKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            OperationKind::Query => "query",
            OperationKind::Mutation => "mutation",
        }
    }
}

/// The body of a request. An argument with a known type becomes a variable, any other becomes a literal.
///
/// # Errors
/// A value that cannot be written as a literal.
pub(super) fn body(
    kind: OperationKind,
    field: &str,
    arguments: Map<String, Value>,
    selection: Option<&str>,
    types: &HashMap<String, String>,
) -> Result<Vec<u8>, String> {
    let (mut declared, mut passed, mut variables) = (Vec::new(), Vec::new(), Map::new());
    for (name, value) in arguments {
        if let Some(of) = types.get(&name) {
            declared.push(format!("${name}: {of}"));
            passed.push(format!("{name}: ${name}"));
            variables.insert(name, value);
        } else {
            let mut text = format!("{name}: ");
            literal(&value, &mut text).map_err(|key| {
                format!(
                    "the argument `{name}`: its key `{key}` cannot be written in a query; give the \
                     argument's type in the function's `metadata.argumentTypes`"
                )
            })?;
            passed.push(text);
        }
    }
    let in_parentheses = |items: Vec<String>| match items.is_empty() {
        true => String::new(),
        false => format!("({})", items.join(", ")),
    };
    let document = format!(
        "{} {}{{ {field}{} {}\n}}",
        kind.as_str(),
        in_parentheses(declared),
        in_parentheses(passed),
        selection.unwrap_or_default(),
    );
    let body = match variables.is_empty() {
        true => json!({"query": document}),
        false => json!({"query": document, "variables": variables}),
    };
    Ok(body.to_string().into_bytes())
}

/// JSON's strings and numbers are valid in GraphQL too. Fails for a key that isn't a name.
fn literal(value: &Value, out: &mut String) -> Result<(), String> {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                literal(item, out)?;
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                if !graphql::is_name(key) {
                    return Err(key.clone());
                }
                out.push_str(if index > 0 { ", " } else { "" });
                out.push_str(key);
                out.push_str(": ");
                literal(member, out)?;
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(arguments: Value, types: &[(&str, &str)]) -> Result<Value, String> {
        let types = types
            .iter()
            .map(|(name, of)| ((*name).to_owned(), (*of).to_owned()))
            .collect();
        let Value::Object(arguments) = arguments else {
            panic!()
        };
        let body = body(
            OperationKind::Query,
            "pet",
            arguments,
            Some("{ id }"),
            &types,
        )?;
        Ok(serde_json::from_slice(&body).unwrap())
    }

    #[test]
    fn arguments_of_known_types_are_variables() {
        assert_eq!(
            query(
                json!({"id": 42, "kind": "DOG"}),
                &[("id", "Int!"), ("kind", "Kind")]
            )
            .unwrap(),
            json!({
                "query": "query ($id: Int!, $kind: Kind){ pet(id: $id, kind: $kind) { id }\n}",
                "variables": {"id": 42, "kind": "DOG"},
            })
        );
    }

    #[test]
    fn other_arguments_are_literals() {
        let value = json!({"a": [1, 2.5, null, true], "b_": "say \"hi\"\n\u{1}", "c": {}});
        assert_eq!(
            query(json!({"of": value}), &[]).unwrap(),
            json!({
                "query": "query { pet(of: {a: [1, 2.5, null, true], b_: \"say \\\"hi\\\"\\n\\u0001\", c: {}}) { id }\n}",
            })
        );
        let error = query(json!({"of": {"a b": 1}}), &[]).unwrap_err();
        assert!(
            error.contains("the argument `of`: its key `a b`"),
            "{error}"
        );
        assert!(query(json!({"of": {"a b": 1}}), &[("of", "JSON")]).is_ok());
    }
}
