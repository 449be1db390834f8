//! The templates of `swirl new`: workflows to start with, each with a passing scenario.

use swirl_spec::source::{Limits, Node, parse};

/// A template.
#[derive(Debug)]
pub struct Template {
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    definition: &'static str,
    scenario: &'static str,
}

macro_rules! templates {
    ($($name:literal: $summary:literal;)*) => {
        /// In the order in which they are listed.
        pub static TEMPLATES: &[Template] = &[$(Template {
            name: $name,
            summary: $summary,
            definition: include_str!(concat!("../templates/", $name, ".sw.yaml")),
            scenario: include_str!(concat!("../templates/", $name, ".scenario.yaml")),
        }),*];
    };
}

templates! {
    "request-response": "calls a service and returns its answer, with retries and a handled error";
    "saga": "several steps that are undone, last first, when a later one fails";
    "approval": "asks a person and waits for the answer, which is an event";
    "aggregation": "collects the events that belong together";
    "polling": "starts a job and polls until it is done";
    "scheduled": "does something each morning";
}

/// The name in the files is put in place of this.
const PLACEHOLDER: &str = "NAME";

/// The contents of the files.
#[derive(Debug)]
pub struct Files {
    pub definition: String,
    pub scenario: String,
}

/// An operation of an OpenAPI document, as a function.
#[derive(Debug, PartialEq, Eq)]
pub struct Operation {
    pub id: String,
    pub summary: Option<String>,
}

/// The reason why a workflow can't be created from a template.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "'{0}' is not a valid id: use letters, digits, '-', '_' and '.', and begin with a letter or a digit"
    )]
    Name(String),
    #[error("it is not an OpenAPI document: {0}")]
    Document(String),
    #[error("it has no operation with an 'operationId'")]
    NoOperation,
}

impl Template {
    /// The files of a workflow with this id.
    ///
    /// # Errors
    /// The text is not valid as an id and file name.
    pub fn files(&self, id: &str) -> Result<Files, Error> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !id.starts_with(|c: char| c.is_ascii_alphanumeric())
            || !id.chars().all(good)
            || id.len() > 100
        {
            return Err(Error::Name(id.to_owned()));
        }
        Ok(Files {
            definition: self.definition.replace(PLACEHOLDER, id),
            scenario: self.scenario.replace(PLACEHOLDER, id),
        })
    }
}

impl Files {
    /// Adds a function for each operation of the document at `uri`, unless it exists already.
    pub fn add_functions(&mut self, uri: &str, operations: &[Operation]) {
        let mut lines = String::new();
        for operation in operations {
            let name = &operation.id;
            if self.definition.contains(&format!("{{name: {name},")) {
                continue;
            }
            if let Some(summary) = &operation.summary {
                lines.push_str(&format!("  # {summary}\n"));
            }
            let address = quoted(&format!("{uri}#{name}"));
            lines.push_str(&format!(
                "  - {{name: {}, operation: {address}}}\n",
                quoted(name)
            ));
        }
        let head = "functions:\n";
        match self.definition.find(head) {
            Some(at) => self.definition.insert_str(at + head.len(), &lines),
            None => {
                let at = self
                    .definition
                    .find("states:\n")
                    .unwrap_or(self.definition.len());
                self.definition.insert_str(at, &format!("{head}{lines}"));
            }
        }
    }
}

/// A text in the quotes of YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];

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
            found.push(Operation {
                id: id.to_owned(),
                summary: summary.map(one_line).filter(|text| !text.is_empty()),
            });
        }
    }
    match found.is_empty() {
        true => Err(Error::NoOperation),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_spec::resource::MapResources;
    use swirl_spec::{Options, read};

    fn findings(definition: &str) -> Vec<String> {
        let reading = read(
            definition.as_bytes(),
            &MapResources::default(),
            &Options::default(),
        );
        reading
            .diagnostics
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn each_template_is_valid_formatted_and_free_of_findings() {
        for template in TEMPLATES {
            let files = template.files("my-flow").unwrap();
            assert_eq!(findings(&files.definition), [""; 0], "{}", template.name);
            for text in [&files.definition, &files.scenario] {
                assert!(!text.contains(PLACEHOLDER), "{}", template.name);
                assert_eq!(
                    &crate::format::format(text.as_bytes()).unwrap(),
                    text,
                    "{}",
                    template.name
                );
            }
            let root = parse(files.definition.as_bytes(), &Limits::default()).unwrap();
            let reading = read(
                files.definition.as_bytes(),
                &MapResources::default(),
                &Options::default(),
            );
            let findings = crate::lint::lint(&reading.workflow.unwrap(), &root, &[]);
            assert!(findings.is_empty(), "{}: {findings:?}", template.name);
        }
    }

    #[test]
    fn invalid_ids_are_rejected() {
        let template = &TEMPLATES[0];
        for name in ["", "a b", "-a", "../a", "a/b", "é", "a:b"] {
            assert!(
                matches!(template.files(name), Err(Error::Name(_))),
                "{name}"
            );
        }
        assert!(template.files("order.v2_x-1").is_ok());
    }

    #[test]
    fn functions_of_an_openapi_document() {
        let document = b"openapi: 3.0.0\npaths:\n  /a:\n    parameters: []\n    get: {operationId: getA, summary: 'Gets\n      an A'}\n    post: {operationId: lookUp}\n  /b: {put: {}}\n";
        let operations = operations(document).unwrap();
        assert_eq!(operations.len(), 2);
        assert_eq!(operations[0].summary.as_deref(), Some("Gets an A"));
        for template in TEMPLATES {
            let mut files = template.files("w").unwrap();
            files.add_functions("shop.yaml", &operations);
            assert_eq!(findings(&files.definition), [""; 0], "{}", files.definition);
            assert_eq!(files.definition.matches("name: \"getA\"").count(), 1);
            assert!(files.definition.contains("  # Gets an A\n"));
        }
        assert!(matches!(
            super::operations(b"paths: {}"),
            Err(Error::NoOperation)
        ));
        assert!(matches!(
            super::operations(b"a: 1"),
            Err(Error::Document(_))
        ));
        assert!(matches!(
            super::operations(b"a: ["),
            Err(Error::Document(_))
        ));
    }
}
