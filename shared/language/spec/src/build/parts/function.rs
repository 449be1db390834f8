//! Function definitions (section "Function Definition", docs/language.md#decision-17 and #decision-30).

use std::collections::HashMap;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_documents::suggest;
use swirl_model::workflow::{AuthId, Function, FunctionId, FunctionKind};

use crate::build::ctx::{Ctx, Obj, words};
use crate::build::expression::VisibleVars;
use crate::build::location::Location;
use crate::build::names::FunctionEntry;

const PROPERTIES: &[&str] = &["name", "operation", "type", "authRef", "metadata"];

/// The language's own word for a function type that the runtime defines.
const CUSTOM: &str = "custom";

const TYPES: [&str; 7] = [
    "rest",
    "asyncapi",
    "rpc",
    "graphql",
    "odata",
    "expression",
    CUSTOM,
];

impl Ctx<'_> {
    pub fn functions(&mut self, node: &Node) {
        let read = self.each(node, "functions", |ctx, item| ctx.function_definition(item));
        self.functions.unread |= !read;
        self.share_resource_auth();
        // Expressions that refer to others can be resolved only now.
        let referring: Vec<(Location, String)> = self
            .functions
            .values()
            .filter(|entry| entry.kind == FunctionKind::Expression)
            .filter(|entry| entry.operation.starts_with("fn:"))
            .map(|entry| (entry.operation_location.clone(), entry.operation.clone()))
            .collect();
        for (location, operation) in referring {
            self.resolve(&location, &operation);
        }
    }

    pub fn function_definition(&mut self, node: &Node) {
        let Some(obj) = self.object(node, "a function", PROPERTIES) else {
            self.functions.unread = true;
            return;
        };
        let kind = self.function_kind(obj);
        let (kind, operation) = self.operation_of(obj, kind);
        let (resource_auth, auth) = self.auth_of_function(obj, kind.as_ref());
        let Some(name) = self.need_string(obj, "a function", "name") else {
            self.functions.unread = true;
            return;
        };
        self.check_name(obj.get("name").unwrap_or(node), "a function's name", &name);
        if self.functions.get(&name).is_some() {
            self.duplicate(obj.get("name").unwrap_or(node), "function", &name);
        }
        // Nothing can be said about a function whose type could not be read.
        let kind_known = kind.is_some();
        let kind = kind.unwrap_or_else(|| FunctionKind::Custom(CUSTOM.to_owned()));
        let metadata = self.function_metadata(obj, &kind);
        let operation_node = obj.get("operation").unwrap_or(node);
        let operation = operation.unwrap_or_default();
        let operation = match kind {
            FunctionKind::Expression if !operation.is_empty() => {
                self.function_expression(operation_node).unwrap_or_default()
            }
            _ => {
                if !operation.is_empty() && operation_node.members().is_none() {
                    self.operation_format(operation_node, &kind, &operation);
                }
                operation
            }
        };
        let id = FunctionId(self.workflow.functions.len() as u32);
        let entry = FunctionEntry {
            id,
            kind: kind.clone(),
            kind_known,
            operation: operation.clone(),
            location: self.location(obj.get("type").unwrap_or(node)),
            operation_location: self.location(operation_node),
        };
        self.functions.add(name.clone(), entry);
        self.workflow.functions.push(Function {
            name: name.into(),
            kind,
            operation,
            place: String::new(),
            resource_auth,
            auth,
            metadata,
            within: None,
        });
    }

    /// A function that has only metadata is of type `custom`; its connector interprets the metadata
    /// (docs/language.md#decision-96).
    fn operation_of(
        &mut self,
        obj: Obj<'_>,
        kind: Option<FunctionKind>,
    ) -> (Option<FunctionKind>, Option<String>) {
        let is_custom = match &kind {
            Some(FunctionKind::Custom(_)) => true,
            _ => self.meant(obj, "type").is_none(),
        };
        let own_type = kind
            .as_ref()
            .filter(|kind| **kind != FunctionKind::Custom(CUSTOM.to_owned()));
        if let (false, true, Some(FunctionKind::Custom(own))) =
            (obj.has("operation"), obj.has("type"), own_type)
        {
            let message = format!(
                "the function has no 'operation': what to do is left to the connector of '{own}'"
            );
            self.loose(obj.node, message, "add 'operation'".to_owned());
            return (kind, None);
        }
        if !obj.has("operation") && obj.has("metadata") && is_custom {
            let message = "the function has no 'operation', only metadata: it is read as one of type 'custom'";
            let hint = "add 'operation'; the connectors of 'custom' functions get the metadata too";
            self.loose(obj.node, message.to_owned(), hint.to_owned());
            let kind = match kind {
                Some(kind @ FunctionKind::Custom(_)) => kind,
                _ => FunctionKind::Custom(CUSTOM.to_owned()),
            };
            return (Some(kind), None);
        }
        if let (Some(reader), Some(node)) = (self.dialect.parts.function, obj.get("operation"))
            && node.members().is_some()
        {
            let of = kind.clone().unwrap_or(FunctionKind::Rest);
            let operation = (reader.operation)(self, node, &of);
            return (kind, operation);
        }
        (kind, self.need_string(obj, "a function", "operation"))
    }

    fn function_kind(&mut self, obj: Obj<'_>) -> Option<FunctionKind> {
        let Some(node) = self.meant(obj, "type") else {
            return Some(FunctionKind::Rest);
        };
        let word = self.string(node, "'type'")?;
        if let Some(reader) = self.dialect.parts.function
            && let Some((_, kind)) = reader.kinds.iter().find(|(known, _)| *known == word)
        {
            return Some(kind.clone());
        }
        Some(match type_of(&word) {
            FunctionKind::Custom(other) => {
                let near = TYPES
                    .iter()
                    .find(|known| known.eq_ignore_ascii_case(&other))
                    .copied();
                if let Some(best) = near.or_else(|| suggest::did_you_mean(&other, TYPES))
                    && best != other
                {
                    let message = format!("'type' cannot be '{other}': it is {}", words(&TYPES));
                    let hint = match near {
                        Some(_) => format!("write '{best}': case matters"),
                        None => format!("did you mean '{best}'?"),
                    };
                    self.error(node, codes::UNKNOWN_VALUE, message, hint);
                    return Some(type_of(best));
                }
                FunctionKind::Custom(other)
            }
            known => known,
        })
    }

    /// The text of an expression function, without its `${ }`. It is compiled at each use, with the parameters in scope
    /// there. It is also compiled here with all parameters of the document, so that unused functions are checked too.
    fn function_expression(&mut self, node: &Node) -> Option<String> {
        let text = self.expression_text(node, "'operation'")?;
        if !text.starts_with("fn:") {
            let params = self.all_params.clone();
            let sight = VisibleVars {
                params: &params,
                secrets: true,
                args: true,
                ..VisibleVars::PLAIN
            };
            let location = self.location(node);
            // Reported here only, not again at each call.
            if !self.check(&location, &text, sight, false) {
                return None;
            }
            self.function_texts.insert(text.clone());
        }
        Some(text)
    }

    pub fn operation_format(&mut self, node: &Node, kind: &FunctionKind, operation: &str) {
        let Some(format) = format_of(kind) else {
            return;
        };
        self.warn_classpath(node, operation);
        if !is_operation_of(kind, operation) {
            let message = format!(
                "'{operation}' is not an operation of a function of type '{}'",
                kind.as_str()
            );
            self.error(
                node,
                codes::BAD_OPERATION,
                message,
                format!("write {format}"),
            );
        }
    }

    fn auth_of_function(
        &mut self,
        obj: Obj<'_>,
        kind: Option<&FunctionKind>,
    ) -> (Option<AuthId>, Option<AuthId>) {
        let Some(node) = obj.get("authRef") else {
            return (None, None);
        };
        if kind == Some(&FunctionKind::Expression) {
            self.ignored(node, "authRef", "an expression calls nothing");
        }
        if node.as_str().is_some() {
            return (None, self.auth_ref(node, "'authRef'"));
        }
        if node.members().is_none() {
            self.wrong_type(node, "'authRef'", "a string or an object");
            return (None, None);
        }
        let Some(obj) = self.object(node, "an authRef", &["resource", "invocation"]) else {
            return (None, None);
        };
        if !obj.has("resource") {
            self.missing(obj, "an authRef", &["resource"]);
        }
        let mut read = |name: &str| {
            let node = obj.get(name)?;
            self.auth_ref(node, &format!("'{name}'"))
        };
        (read("resource"), read("invocation"))
    }

    /// Functions in the same document share the auth definition for fetching it (section "AuthRef Definition").
    fn share_resource_auth(&mut self) {
        let path = |function: &Function| {
            function
                .operation
                .split('#')
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let mut by_path: HashMap<String, AuthId> = HashMap::new();
        for function in &self.workflow.functions {
            if let Some(auth) = function.resource_auth {
                by_path.entry(path(function)).or_insert(auth);
            }
        }
        for function in &mut self.workflow.functions {
            if function.resource_auth.is_none() && function.kind != FunctionKind::Expression {
                function.resource_auth = by_path.get(&path(function)).copied();
            }
        }
    }

    /// Checks types that the language doesn't define.
    pub fn check_custom_types(&mut self) {
        let mut findings = Vec::new();
        for (name, entry) in self.functions.names().zip(self.functions.values()) {
            if let FunctionKind::Custom(word) = &entry.kind
                && entry.kind_known
                && !self.options.provided.contains(name)
            {
                findings.push((entry.clone(), name.to_owned(), word.clone()));
            }
        }
        for (entry, name, word) in findings {
            match word.as_str() {
                CUSTOM => self.custom_operation(&entry, &name),
                word => self.custom_type(&entry.location, &name, word),
            }
        }
    }

    /// Connectors for operations that aren't built in are known only where workflows run: deployment rejects an
    /// operation without one (docs/language.md#decision-99).
    fn custom_operation(&mut self, entry: &FunctionEntry, name: &str) {
        let word = entry.operation.split(':').next().unwrap_or_default();
        let word = word.trim().to_ascii_lowercase();
        let is_known = self.options.custom_types.is_some();
        if is_known || entry.operation == "http" || ["rest", "sysout"].contains(&word.as_str()) {
            return;
        }
        let message = match entry.operation.as_str() {
            "" => format!(
                "the function '{name}' of type 'custom' has no operation, and no implementation of it is available here"
            ),
            operation => format!(
                "the function '{name}' of type 'custom' has the operation '{operation}', which is not built in"
            ),
        };
        let hint =
            "name its connector where workflows run: --connector custom=http://host/path or \
                    --connector custom=exec:program"
                .to_owned();
        self.warn_at(
            &entry.operation_location,
            codes::FUNCTION_TYPE_UNKNOWN,
            message,
            hint,
        );
    }

    /// A type that the language doesn't define. It is rejected unless it has an implementation here; if that isn't
    /// known, it is a warning.
    fn custom_type(&mut self, location: &Location, name: &str, word: &str) {
        let known = self.options.custom_types.as_ref();
        if known.is_some_and(|known| known.contains(word)) {
            return;
        }
        let is_refused = known.is_some();
        let message = format!(
            "the function '{name}' has the type '{word}', which the language does not have"
        );
        let hint = format!(
            "it is {}; for one of your own, name its connector where workflows run: \
             --connector {word}=http://host/path or --connector {word}=exec:program",
            words(&TYPES)
        );
        if is_refused {
            self.error_at(location, codes::FUNCTION_TYPE_UNKNOWN, message, hint);
        } else {
            self.warn_at(location, codes::FUNCTION_TYPE_UNKNOWN, message, hint);
        }
    }
}

/// The type of a function that a word names.
fn type_of(word: &str) -> FunctionKind {
    match word {
        "rest" => FunctionKind::Rest,
        "asyncapi" => FunctionKind::Asyncapi,
        "rpc" => FunctionKind::Rpc,
        "graphql" => FunctionKind::Graphql,
        "odata" => FunctionKind::Odata,
        "expression" => FunctionKind::Expression,
        own => FunctionKind::Custom(own.to_owned()),
    }
}

/// What the operation of a function of one of the language's types consists of. `None`: it may be any text.
pub(crate) fn format_of(kind: &FunctionKind) -> Option<&'static str> {
    Some(match kind {
        FunctionKind::Rest => "<URI of the OpenAPI document>#<operation id>",
        FunctionKind::Asyncapi => "<URI of the AsyncAPI document>#<operation id>",
        FunctionKind::Rpc => "<URI of the proto file>#<service>#<method>",
        FunctionKind::Graphql => "<URL of the endpoint>#<'query' or 'mutation'>#<field>",
        FunctionKind::Odata => "<URI of the service>#<entity set>",
        FunctionKind::Http | FunctionKind::HttpCall => "an object with 'method' and 'uri'",
        FunctionKind::A2a
        | FunctionKind::Custom(_)
        | FunctionKind::Expression
        | FunctionKind::Mcp
        | FunctionKind::Process => return None,
    })
}

/// Whether the text has the form of an operation of this type.
pub(crate) fn is_operation_of(kind: &FunctionKind, operation: &str) -> bool {
    let parts: Vec<&str> = operation.split('#').collect();
    let is_filled = parts.iter().all(|part| !part.trim().is_empty());
    let has_form = match kind {
        FunctionKind::Rest | FunctionKind::Asyncapi | FunctionKind::Odata => parts.len() == 2,
        FunctionKind::Rpc => parts.len() == 3,
        FunctionKind::Graphql => parts.len() == 3 && matches!(parts[1], "query" | "mutation"),
        FunctionKind::A2a | FunctionKind::Http | FunctionKind::HttpCall | FunctionKind::Mcp => {
            false
        }
        FunctionKind::Expression | FunctionKind::Process | FunctionKind::Custom(_) => return true,
    };
    has_form && is_filled
}

#[cfg(test)]
mod tests {
    use crate::build::parts::testing::{STATES, findings, show, workflow};
    use crate::options::Options;
    use crate::reader::read;
    use crate::resource::MapResources;

    #[test]
    fn definitions() {
        for (function, expected) in [
            ("{name: f, operation: 'a.json#f'}", ""),
            (
                "{name: f, operation: a.json}",
                "error bad-operation /functions/0/operation 4",
            ),
            (
                "{name: f, operation: '#f'}",
                "error bad-operation /functions/0/operation 4",
            ),
            ("{name: f}", "error missing-property /functions/0 4"),
            // Of a type that could not be read.
            (
                "{name: f, type: 5, operation: .a}",
                "error wrong-type /functions/0/type 4",
            ),
            (
                "{name: f, type: expresion, operation: '.a |'}",
                "error unknown-value /functions/0/type 4\nerror bad-expression /functions/0/operation 4",
            ),
            (
                "{operation: 'a#b'}",
                "error missing-property /functions/0 4",
            ),
            (
                "{name: f, operation: 'a#b', type: Rest}",
                "error unknown-value /functions/0/type 4",
            ),
            (
                "{name: f, operation: 'a', type: soap}",
                "warning function-type-unknown /functions/0/type 4",
            ),
            (
                "{name: f, operation: 'a#b', type: rpc}",
                "error bad-operation /functions/0/operation 4",
            ),
            ("{name: f, operation: 'a#b#c', type: rpc}", ""),
            (
                "{name: f, operation: 'a', type: custom}",
                "warning function-type-unknown /functions/0/operation 4",
            ),
            ("{name: f, operation: sysout, type: custom}", ""),
            (
                "{name: f, operation: 'a#b', authRef: x}",
                "error unknown-auth /functions/0/authRef 4",
            ),
            (
                "{name: f, operation: 'a#b', authRef: {invocation: x}}",
                "error missing-property /functions/0/authRef 4\nerror unknown-auth /functions/0/authRef/invocation 4",
            ),
            (
                "{name: f, operation: 'a#b', metadata: {checkArguments: false, server: 'http://h', own: 1}}",
                "warning metadata-not-text /functions/0/metadata/own 4",
            ),
            (
                "{name: f, operation: 'a#b', metadata: {checkArguments: 'false'}}",
                "warning loose-form /functions/0/metadata/checkArguments 4",
            ),
            (
                "{name: f, operation: 'a#b', metadata: {checkArguments: 0, server: [1]}}",
                "error wrong-type /functions/0/metadata/checkArguments 4\nerror wrong-type /functions/0/metadata/server 4",
            ),
            (
                "{name: f, operation: 'a#query#b', type: graphql, metadata: {argumentTypes: {id: 'ID!', n: 1}}}",
                "error wrong-type /functions/0/metadata/argumentTypes/n 4",
            ),
            (
                "{name: f, operation: 'a#query#b', type: graphql, metadata: {argumentTypes: 'id: ID!'}}",
                "error wrong-type /functions/0/metadata/argumentTypes 4",
            ),
            (
                "{name: f, operation: 'a#b', type: asyncapi, metadata: {action: send}}",
                "error wrong-type /functions/0/metadata/action 4",
            ),
            (
                "{name: f, operation: '.a |', type: expression}",
                "error bad-expression /functions/0/operation 4",
            ),
            (
                "{name: f, operation: 'fn:f', type: expression}, {name: g, operation: 'a#b'}",
                "error not-an-expression-function /functions/0/operation 4",
            ),
        ] {
            assert_eq!(
                findings(&format!("functions: [{function}]\n{STATES}")),
                expected,
                "{function}"
            );
        }
    }

    #[test]
    fn a_type_in_another_case_is_told_from_a_misspelt_one() {
        for (word, hint) in [
            ("REST", "write 'rest': case matters"),
            ("ret", "did you mean 'rest'?"),
        ] {
            let text = format!(
                "id: t\nversion: 1.0.0\nspecVersion: '0.8'\nfunctions: [{{name: f, operation: 'a#b', type: {word}}}]\n{STATES}"
            );
            let reading = read(
                text.as_bytes(),
                &MapResources::default(),
                &Options::default(),
            );
            let mut findings = reading.diagnostics.iter();
            assert!(
                findings.any(|finding| finding.hint.as_deref() == Some(hint)),
                "{hint}"
            );
        }
    }

    #[test]
    fn all_types_are_known() {
        let body = format!(
            "functions: [{{name: f, operation: sysout, type: custom}}, {{name: g, operation: 'a#b', type: odata}}, \
             {{name: h, operation: 'a#query#b', type: graphql}}, {{name: i, operation: 'a#b', type: asyncapi}}]\n{STATES}"
        );
        assert_eq!(findings(&body), "");
    }

    #[test]
    fn custom_types_without_implementation_are_rejected() {
        let body = format!(
            "functions: [{{name: f, operation: x, type: soap}}, {{name: g, operation: x, type: mail}}, {{name: h, operation: x, type: custom}}]\n{STATES}"
        );
        let text = format!("id: t\nversion: 1.0.0\nspecVersion: '0.8'\n{body}");
        let options = Options {
            custom_types: Some(["mail".to_owned()].into()),
            ..Options::default()
        };
        let reading = read(text.as_bytes(), &MapResources::default(), &options);
        assert_eq!(
            show(&reading),
            "error function-type-unknown /functions/0/type 4"
        );
    }

    #[test]
    fn auth_for_a_document_is_shared() {
        let body = format!(
            "auth: [{{name: a, properties: {{username: u, password: p}}}}]\nfunctions: [{{name: f, operation: 'a.json#f'}}, {{name: g, operation: 'a.json#g', authRef: {{resource: a}}}}, {{name: h, operation: 'b.json#h', authRef: a}}]\n{STATES}"
        );
        let workflow = workflow(&body);
        let auth: Vec<(bool, bool)> = workflow
            .functions
            .iter()
            .map(|function| (function.resource_auth.is_some(), function.auth.is_some()))
            .collect();
        assert_eq!(auth, [(true, false), (true, false), (false, true)]);
    }
}
