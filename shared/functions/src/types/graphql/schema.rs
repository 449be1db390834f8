//! A service's schema from introspection: the fields, their arguments, and the members of objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::introspection::written;
use super::query::OperationKind;

/// The requested depth of types: `[[T!]!]!`. Types that are nested deeper aren't checked.
const WRAPPINGS: usize = 5;

#[derive(Debug)]
pub(super) struct Schema {
    query: Option<String>,
    mutation: Option<String>,
    types: HashMap<String, Type>,
}

#[derive(Debug)]
pub(super) enum Type {
    Enum(BTreeSet<String>),
    Input(Inputs),
    /// Objects and interfaces.
    Fields(BTreeMap<String, Field>),
    Scalar,
    Union,
}

/// By name: the arguments of a field, or the members of an input object.
pub(super) type Inputs = BTreeMap<String, Input>;

#[derive(Debug)]
pub(super) struct Input {
    /// The type as GraphQL writes it. `None`: it is nested deeper than requested.
    pub of: Option<String>,
    pub has_default: bool,
}

#[derive(Debug)]
pub(super) struct Field {
    pub arguments: Inputs,
    pub of: Option<String>,
}

/// The body of the request for a service's schema.
pub(crate) fn question() -> String {
    let mut of = "kind name".to_owned();
    for _ in 0..WRAPPINGS {
        of = format!("kind name ofType {{ {of} }}");
    }
    let input = format!("name defaultValue type {{ {of} }}");
    let query = format!(
        "{{ __schema {{ queryType {{ name }} mutationType {{ name }} types {{ kind name \
         fields(includeDeprecated: true) {{ name args {{ {input} }} type {{ {of} }} }} \
         inputFields {{ {input} }} enumValues(includeDeprecated: true) {{ name }} }} }} }}"
    );
    serde_json::json!({"query": query}).to_string()
}

impl Schema {
    /// # Errors
    /// The reason why the answer contains no schema, as a clause about the service.
    pub fn read(answer: &str) -> Result<Schema, String> {
        let answer: Value =
            serde_json::from_str(answer).map_err(|_| "its answer is not valid JSON".to_owned())?;
        let no_schema = || "it doesn't reveal its schema (introspection)".to_owned();
        let schema = answer.pointer("/data/__schema").ok_or_else(no_schema)?;
        let root = |name: &str| Some(schema.get(name)?.get("name")?.as_str()?.to_owned());
        let all = schema.get("types").and_then(Value::as_array);
        let types = all
            .ok_or_else(no_schema)?
            .iter()
            .filter_map(named)
            .collect();
        Ok(Schema {
            query: root("queryType"),
            mutation: root("mutationType"),
            types,
        })
    }

    pub fn get(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    /// The fields of the queries or mutations.
    pub fn roots(&self, kind: OperationKind) -> Option<&BTreeMap<String, Field>> {
        let root = match kind {
            OperationKind::Query => self.query.as_ref(),
            OperationKind::Mutation => self.mutation.as_ref(),
        };
        match self.types.get(root?)? {
            Type::Fields(fields) => Some(fields),
            _ => None,
        }
    }
}

/// Checks whether an answer contains a schema.
///
/// # Errors
/// As [`Schema::read`].
pub(crate) fn readable(answer: &str) -> Result<(), String> {
    Schema::read(answer).map(|_| ())
}

/// The type itself, without lists and non-null markers.
pub(super) fn inner(of: &str) -> &str {
    of.trim_matches(|c: char| matches!(c, '[' | ']' | '!') || c.is_whitespace())
}

fn named(json: &Value) -> Option<(String, Type)> {
    let name = json.get("name")?.as_str()?.to_owned();
    let of = match json.get("kind")?.as_str()? {
        "ENUM" => {
            let values = json.get("enumValues")?.as_array()?.iter();
            Type::Enum(values.filter_map(|value| text(value, "name")).collect())
        }
        "INPUT_OBJECT" => Type::Input(inputs(json.get("inputFields")?)),
        "OBJECT" | "INTERFACE" => Type::Fields(fields(json.get("fields")?)),
        "UNION" => Type::Union,
        _ => Type::Scalar,
    };
    Some((name, of))
}

fn fields(json: &Value) -> BTreeMap<String, Field> {
    let all = json.as_array().into_iter().flatten();
    let field = |json: &Value| {
        let field = Field {
            arguments: json.get("args").map(inputs).unwrap_or_default(),
            of: json.get("type").and_then(written),
        };
        Some((text(json, "name")?, field))
    };
    all.filter_map(field).collect()
}

fn inputs(json: &Value) -> Inputs {
    let all = json.as_array().into_iter().flatten();
    let input = |json: &Value| {
        let input = Input {
            of: json.get("type").and_then(written),
            has_default: json
                .get("defaultValue")
                .is_some_and(|value| !value.is_null()),
        };
        Some((text(json, "name")?, input))
    };
    all.filter_map(input).collect()
}

fn text(of: &Value, name: &str) -> Option<String> {
    Some(of.get(name)?.as_str()?.to_owned())
}
