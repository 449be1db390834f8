//! The workflow that `swirl new --openapi` creates: it calls each operation of the document once, one after another, with
//! the parameters that the operation requires.

use std::fmt::Write as _;

use serde_json::{Value, json};
use swirl_documents::source::{Limits, Node, parse};
use swirl_spec::edition::Edition;

use crate::templates::{Error, Files, check_id};

/// An operation of an OpenAPI document, as a function.
#[derive(Debug, PartialEq)]
pub struct Operation {
    pub id: String,
    pub summary: Option<String>,
    /// All parameters, and members of the body.
    pub arguments: Vec<String>,
    /// Those that it requires, with an example of each.
    pub required: Vec<(String, Value)>,
}

const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];

/// The number of references that are followed one after another.
const REFERENCES_MAX: usize = 16;

/// The operations of an OpenAPI document, in document order.
///
/// # Errors
/// It isn't an OpenAPI document, or has no operations.
pub fn operations(document: &[u8]) -> Result<Vec<Operation>, Error> {
    let root = parse(document, &Limits::default())
        .map_err(|finding| Error::Document(finding.to_string()))?;
    let paths = root.get("paths").and_then(Node::members);
    let paths = paths.ok_or_else(|| Error::Document("it has no 'paths'".to_owned()))?;
    let mut found = Vec::new();
    for path in paths {
        for method in path.value().members().unwrap_or_default() {
            let id = method.value().get("operationId").and_then(Node::as_str);
            let (true, Some(id)) = (METHODS.contains(&method.key()), id) else {
                continue;
            };
            let summary = method.value().get("summary").and_then(Node::as_str);
            let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let all = arguments(&root, path.value(), method.value());
            let arguments = all.iter().map(|argument| argument.name.clone()).collect();
            let required = all.into_iter().filter(|argument| argument.required);
            found.push(Operation {
                id: id.to_owned(),
                summary: summary.map(one_line).filter(|text| !text.is_empty()),
                required: required.map(|one| (one.name, one.example)).collect(),
                arguments,
            });
        }
    }
    match found.is_empty() {
        true => Err(Error::NoOperation),
        false => Ok(found),
    }
}

struct Argument {
    name: String,
    required: bool,
    example: Value,
}

fn arguments(root: &Node, path: &Node, operation: &Node) -> Vec<Argument> {
    let mut found: Vec<Argument> = Vec::new();
    let mut add = |name: &str, required, schema| {
        if found.iter().all(|known| known.name != name) {
            found.push(Argument {
                name: name.to_owned(),
                required,
                example: example(root, schema),
            });
        }
    };
    let lists = [operation, path].map(|node| node.get("parameters").and_then(Node::items));
    for parameter in lists.into_iter().flatten().flatten() {
        let parameter = resolved(root, parameter);
        let is_path = parameter.get("in").and_then(Node::as_str) == Some("path");
        if let Some(name) = parameter.get("name").and_then(Node::as_str) {
            let required = is_path || is_true(parameter.get("required"));
            // Without a schema it is one of Swagger 2.
            add(name, required, parameter.get("schema").unwrap_or(parameter));
        }
    }
    let body = operation
        .get("requestBody")
        .map(|body| resolved(root, body));
    let content = body.and_then(|body| body.get("content")?.members()?.first());
    if let Some(schema) = content.and_then(|content| content.value().get("schema")) {
        let schema = resolved(root, schema);
        let required = schema
            .get("required")
            .and_then(Node::items)
            .unwrap_or_default();
        let properties = schema.get("properties").and_then(Node::members);
        for property in properties.unwrap_or_default() {
            if !is_true(resolved(root, property.value()).get("readOnly")) {
                let is_required = |name: &Node| name.as_str() == Some(property.key());
                add(
                    property.key(),
                    required.iter().any(is_required),
                    property.value(),
                );
            }
        }
    }
    found
}

fn is_true(node: Option<&Node>) -> bool {
    node.and_then(Node::as_bool) == Some(true)
}

/// Follows references within the document.
fn resolved<'n>(root: &'n Node, node: &'n Node) -> &'n Node {
    let mut node = node;
    for _ in 0..REFERENCES_MAX {
        let target = node.get("$ref").and_then(Node::as_str);
        match target.and_then(|target| root.at(target.strip_prefix('#')?)) {
            Some(found) => node = found,
            None => break,
        }
    }
    node
}

/// A value for a schema.
fn example(root: &Node, schema: &Node) -> Value {
    let schema = resolved(root, schema);
    let given = ["example", "default"]
        .into_iter()
        .find_map(|name| schema.get(name));
    let given = given.or_else(|| schema.get("enum")?.items()?.first());
    if let Some(given) = given {
        return serde_json::from_str(&given.to_data().to_string()).unwrap_or_default();
    }
    let kind = schema.get("type");
    let kind = kind.and_then(|kind| kind.as_str().or_else(|| kind.items()?.first()?.as_str()));
    match kind {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    }
}

/// The files of a workflow that calls the operations of the document at `uri`. Editions other than DSL 1.0 have the
/// text of 0.8.
///
/// # Errors
/// The id is not valid.
pub fn files(
    id: &str,
    edition: Edition,
    uri: &str,
    operations: &[Operation],
) -> Result<Files, Error> {
    check_id(id, edition)?;
    let mut input = serde_json::Map::new();
    let mut mocks = String::new();
    let mut calls = Vec::new();
    for operation in operations {
        let name = plain(&operation.id);
        writeln!(mocks, "  {name}: {{return: {{}}}}").ok();
        calls.push(Call::new(operation, name, &mut input));
    }
    let about = format!(
        "# Calls each operation of {uri}, one after another. Keep those that you need, in their order.\n"
    );
    let definition = match edition {
        Edition::V1_0 => tasks(id, uri, &calls),
        _ => states(id, uri, &calls),
    };
    let names = calls.iter().map(|call| call.name.as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    let input = input
        .iter()
        .map(|(name, value)| format!("{}: {value}", plain(name)));
    let input = input.collect::<Vec<_>>().join(", ");
    let scenario = format!(
        "name: each operation is called\nworkflows: [{id}.sw.yaml]\ninput: {{{input}}}\nfunctions:\n{mocks}\
         expect:\n  status: completed\n  calls: [{names}]\n"
    );
    let formatted = |text: String| crate::format::format(text.as_bytes()).unwrap_or(text);
    Ok(Files {
        definition: formatted(about + &definition),
        scenario: formatted(scenario),
        service: None,
    })
}

/// A call in the new workflow, in parts that can be put into its text.
struct Call<'o> {
    operation: &'o Operation,
    name: String,
    /// The members of an object.
    arguments: String,
    /// The key that the result gets in the data.
    result: String,
}

impl Call<'_> {
    /// Adds to the input what the call needs.
    fn new<'o>(
        operation: &'o Operation,
        name: String,
        input: &mut serde_json::Map<String, Value>,
    ) -> Call<'o> {
        let arguments = operation.required.iter().map(|(name, value)| {
            // Operations may use one name for values of several types.
            let known = input.entry(name.clone()).or_insert_with(|| value.clone());
            let member = match *known == *value {
                true => name.clone(),
                false => format!("{}_{name}", word(&operation.id)),
            };
            input.entry(member.clone()).or_insert_with(|| value.clone());
            let path = match word(&member) == member {
                true => format!("${{ .{member} }}"),
                false => format!("${{ .[{}] }}", json!(member)),
            };
            format!("{}: {}", plain(name), json!(path))
        });
        Call {
            arguments: arguments.collect::<Vec<_>>().join(", "),
            result: word(&operation.id),
            operation,
            name,
        }
    }

    /// A comment with the operation's summary.
    fn summary(&self) -> String {
        let summary = self.operation.summary.as_ref();
        summary.map_or_else(String::new, |summary| format!("  # {summary}\n"))
    }
}

fn tasks(id: &str, uri: &str, calls: &[Call<'_>]) -> String {
    let tasks = calls.iter().map(|call| {
        let parameters = match call.arguments.as_str() {
            "" => String::new(),
            arguments => format!("        parameters: {{{arguments}}}\n"),
        };
        let output = json!(format!("${{ $input + {{{}: .}} }}", call.result));
        format!(
            "{}  - {}:\n      call: openapi\n      with:\n        document: {{endpoint: {}}}\n        \
             operationId: {}\n{parameters}      output: {{as: {output}}}\n",
            call.summary(),
            call.name,
            json!(uri),
            call.name,
        )
    });
    let tasks: String = tasks.collect();
    format!(
        "document: {{dsl: 1.0.3, namespace: default, name: {}, version: 1.0.0}}\ndo:\n{tasks}",
        plain(id)
    )
}

fn states(id: &str, uri: &str, calls: &[Call<'_>]) -> String {
    let (mut functions, mut actions) = (String::new(), String::new());
    for call in calls {
        let address = json!(format!("{uri}#{}", call.operation.id));
        functions += &call.summary();
        writeln!(
            functions,
            "  - {{name: {}, operation: {address}}}",
            call.name
        )
        .ok();
        let to = json!(format!("${{ .{} }}", call.result));
        writeln!(
            actions,
            "      - functionRef: {{refName: {}, arguments: {{{}}}}}\n        \
             actionDataFilter: {{toStateData: {to}}}",
            call.name, call.arguments
        )
        .ok();
    }
    format!(
        "id: {id}\nversion: 1.0.0\nspecVersion: \"0.8\"\nfunctions:\n{functions}states:\n  - name: Call\n    \
         type: operation\n    actions:\n{actions}    end: true\n"
    )
}

/// A name, in quotes if YAML needs them.
fn plain(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let means_more = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_word = word(name) == name && !means_more.contains(&lower.as_str());
    match is_word {
        true => name.to_owned(),
        false => json!(name).to_string(),
    }
}

/// A name that a path of the data can consist of.
fn word(name: &str) -> String {
    let mut word = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_");
    if !word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        word.insert(0, '_');
    }
    word
}

#[cfg(test)]
mod tests {
    use swirl_spec::resource::MapResources;
    use swirl_spec::{Options, read};

    use super::*;
    use crate::templates::EDITIONS;

    const DOCUMENT: &str = r##"
openapi: 3.0.0
info: {title: t, version: "1"}
servers: [{url: "http://localhost"}]
paths:
  /a/{id}:
    parameters: [{$ref: "#/components/parameters/Id"}]
    get: {operationId: getA, summary: "Gets\n an A", responses: {"200": {description: d}}}
    post:
      operationId: look-up
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Question"}}}}
      responses: {"200": {description: d}}
  /b: {put: {}}
components:
  parameters: {Id: {name: id, in: path, required: true, schema: {type: integer}}}
  schemas:
    Question:
      type: object
      required: [text, made]
      properties: {text: {type: string}, made: {type: string, readOnly: true}, more: {type: string}}
"##;

    #[test]
    fn each_operation_is_called_with_what_it_requires() {
        let operations = operations(DOCUMENT.as_bytes()).unwrap();
        assert_eq!(operations.len(), 2);
        assert_eq!(operations[0].summary.as_deref(), Some("Gets an A"));
        let names = operations[1].required.iter().map(|(name, _)| name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["id", "text"]);
        assert_eq!(operations[1].arguments, ["id", "text", "more"]);
        for edition in EDITIONS {
            let files = files("order", edition, "shop.yaml", &operations).unwrap();
            let mut resources = MapResources::default();
            resources.insert("shop.yaml", DOCUMENT.as_bytes());
            let text = files.definition.as_bytes();
            let reading = read(text, &resources, &Options::default());
            assert!(
                reading.diagnostics.is_empty(),
                "{:?}\n{}",
                reading.diagnostics,
                files.definition
            );
            assert!(files.definition.contains("  # Gets an A\n"));
        }
    }

    #[test]
    fn other_documents_are_refused() {
        for (document, expected) in [
            ("paths: {}", "it has no operation"),
            ("a: 1", "it has no 'paths'"),
            ("a: [", "it is not an OpenAPI document"),
        ] {
            let error = operations(document.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
