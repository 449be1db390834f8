//! Functions of the editions before 0.5, which refer to functions by name (docs/language.md#decision-103).
//!
//! Functions that are provided at deployment are a resource: a list of functions as in edition 0.8 (or an object with
//! `functions` and `auth`). So they are stored with the definition that uses them.

use swirl_documents::codes;
use swirl_documents::source::{self, Node};
use swirl_model::workflow::{FunctionId, FunctionKind, Language};

use super::ctx::{Ctx, Given, words};
use super::dialect::Dialect;
use super::parts::{format_of, is_operation_of};
use crate::resource::{FUNCTIONS_BESIDE, FUNCTIONS_URIS};

/// The runtime's types that the early editions may name.
const TYPES: [(&str, FunctionKind); 6] = [
    ("rest", FunctionKind::Rest),
    ("asyncapi", FunctionKind::Asyncapi),
    ("rpc", FunctionKind::Rpc),
    ("graphql", FunctionKind::Graphql),
    ("odata", FunctionKind::Odata),
    ("expression", FunctionKind::Expression),
];

/// The type of a function without one, and of those whose operations need no document.
const CUSTOM: &str = "custom";

/// A function as an early edition states it.
pub(crate) struct EarlyFunction<'n> {
    pub name: &'n str,
    pub name_node: &'n Node,
    /// Its type, or "".
    pub word: &'n str,
    /// The location of the type, or else of the function.
    pub place: &'n Node,
    /// `resource`, or, in the drafts of 0.1, the name. Empty if there is no resource.
    pub operation: &'n str,
    pub operation_node: &'n Node,
    /// Whether the operation is a `resource`, which may be a URL to call.
    pub is_resource: bool,
}

/// How such a function is carried out.
pub(crate) enum Early {
    Given(FunctionId),
    /// By its type, with this operation.
    Own(FunctionKind, String),
    /// With this operation, and all arguments as the body.
    Posted(FunctionKind, String),
}

impl Ctx<'_> {
    /// Finds out how a function of an early edition is carried out: by a provided function of its name, else by its
    /// type (docs/language.md#decision-103).
    pub fn early_function(&mut self, early: &EarlyFunction<'_>) -> Early {
        if let Some(id) = self.given_function(early.name_node, early.name) {
            return Early::Given(id);
        }
        let operation = early.operation.to_owned();
        let is_mocked = self.options.provided.contains(early.name);
        let known = TYPES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(early.word));
        let known = known.map(|(_, kind)| kind.clone());
        let is_expression = known == Some(FunctionKind::Expression);
        if let Some(kind) = known.filter(|kind| is_operation_of(kind, &operation))
            && !operation.is_empty()
            && !(is_mocked && is_expression)
        {
            self.warn_classpath(early.operation_node, &operation);
            return Early::Own(kind, operation);
        }
        let word = match early.word {
            "" => CUSTOM,
            word if is_known_type(word) => CUSTOM,
            word => word,
        };
        let custom = |operation| Early::Own(FunctionKind::Custom(word.to_owned()), operation);
        if is_mocked {
            return custom(operation);
        }
        if early.is_resource && is_url(&operation) && is_called_by_url(early.word) {
            let post = format!("rest:POST:{}", operation.trim());
            return Early::Posted(FunctionKind::Custom(CUSTOM.to_owned()), post);
        }
        if !self.is_carried_out(early.word, &operation, early.is_resource) {
            self.not_given(early);
        }
        custom(operation)
    }

    /// Whether the runtime or one of its connectors carries out a type that isn't one of the language's.
    fn is_carried_out(&self, word: &str, operation: &str, is_resource: bool) -> bool {
        let connectors = self.options.custom_types.as_ref();
        let has = |word: &str| connectors.is_some_and(|all| all.contains(word));
        let prefix = operation.split(':').next().unwrap_or_default().trim();
        let is_built_in = ["rest", "sysout"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(prefix));
        match word {
            // A draft's name may be the operation of any connector of that type.
            word if !is_resource && word.eq_ignore_ascii_case(CUSTOM) => true,
            "" => has(CUSTOM),
            word if word.eq_ignore_ascii_case(CUSTOM) => {
                is_built_in || operation == "http" || has(CUSTOM) || has(prefix)
            }
            word => has(word),
        }
    }

    /// Refuses a function that nothing carries out. If it isn't known what is available where the workflow will run,
    /// it is a warning.
    fn not_given(&mut self, early: &EarlyFunction<'_>) {
        let (name, word, operation) = (early.name, early.word, early.operation);
        let is_ours = is_known_type(word);
        let what = match word {
            "" => "has no type".to_owned(),
            word => format!("is of type '{word}'"),
        };
        let (code, place, message) = match is_ours {
            true if operation.is_empty() => (
                codes::MISSING_PROPERTY,
                early.operation_node,
                format!("the function '{name}' {what}, is not given here, and has no 'resource'"),
            ),
            true => (
                codes::BAD_OPERATION,
                early.operation_node,
                format!(
                    "the function '{name}' {what}, is not given here, and '{operation}' is not an operation of that type"
                ),
            ),
            false => (
                codes::FUNCTION_TYPE_UNKNOWN,
                early.place,
                format!(
                    "the function '{name}' {what}, and no implementation of it is available here"
                ),
            ),
        };
        let mut hint = format!(
            "give the function with --functions FILE, or in '{}' beside the document, as '{name}' with its type and operation",
            FUNCTIONS_BESIDE[0]
        );
        let format = TYPES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(word));
        match format.and_then(|(_, kind)| format_of(kind)) {
            Some(format) => hint.push_str(&format!("; or write {format}")),
            None if is_ours => {}
            None => {
                let connector = if word.is_empty() { CUSTOM } else { word };
                hint.push_str(&format!(
                    "; or name a connector where workflows run: --connector {connector}=http://host/path"
                ));
            }
        }
        let types = TYPES.map(|(word, _)| word);
        if !is_ours {
            hint.push_str(&format!("; types with a document are {}", words(&types)));
        }
        let connectors = self.options.custom_types.as_ref();
        if let Some(known) = connectors.filter(|known| !known.is_empty()) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            hint.push_str(&format!(". Carried out here are {}", words(&known)));
        }
        match connectors.is_some() {
            true => self.error(place, code, message, hint),
            false => self.warn(place, code, message, hint),
        }
    }

    /// The function with this name, if it was provided. `place`: the location where the document names it, at which
    /// findings about the provided function are shown.
    pub fn given_function(&mut self, place: &Node, name: &str) -> Option<FunctionId> {
        if let Some(known) = self.given(place).read.get(name) {
            return *known;
        }
        let item = self.given_item(place, name);
        let found = item.and_then(|item| self.read_given(place, &item, name));
        self.given(place).read.insert(name.to_owned(), found);
        found
    }

    /// The expression and the kind of a provided function.
    pub fn given_expression(&self, name: &str) -> Option<String> {
        let entry = self.functions.get(name)?;
        (entry.kind == FunctionKind::Expression).then(|| entry.operation.clone())
    }

    fn given(&mut self, place: &Node) -> &mut Given {
        if self.given.is_none() {
            let mut given = Given::default();
            for uri in FUNCTIONS_URIS {
                let content = self.resources.fetch(uri, None).unwrap_or_default();
                if !content.is_empty() {
                    let document = self.given_document(place, uri, &content);
                    given.sources.push((uri, document, content));
                }
            }
            self.given = Some(given);
        }
        self.given.get_or_insert_default()
    }

    fn given_document(&mut self, place: &Node, uri: &str, content: &[u8]) -> Option<Node> {
        let reason = match source::parse(content, &self.options.limits) {
            Ok(document) if list_of(&document).items().is_some() => return Some(document),
            Ok(_) => "it must be a list of functions".to_owned(),
            Err(error) => format!("line {}: {}", error.line, error.message),
        };
        let message = format!("the functions in '{uri}' cannot be read: {reason}");
        self.error(place, codes::BAD_RESOURCE, message, None);
        None
    }

    /// The function of this name in the first list that has it, and the number of that list.
    fn given_item(&mut self, place: &Node, name: &str) -> Option<(usize, Node)> {
        let sources = self.given(place).sources.iter().enumerate();
        let mut found = sources.filter_map(|(index, (_, document, _))| {
            let mut items = list_of(document.as_ref()?).items()?.iter();
            let item = items.find(|item| item.get("name").and_then(Node::as_str) == Some(name));
            Some((index, item?.clone()))
        });
        found.next()
    }

    fn read_given(
        &mut self,
        place: &Node,
        (source, item): &(usize, Node),
        name: &str,
    ) -> Option<FunctionId> {
        let (uri, document, content) = self.given(place).sources.get(*source)?.clone();
        let uri = uri.to_owned();
        if !self.resources_used.iter().any(|(known, _)| *known == uri) {
            self.resources_used.push((uri.clone(), content));
        }
        let location = self.location(place);
        let origin = self.origin.replace((uri, location));
        let dialect = std::mem::replace(&mut self.dialect, Dialect::JQ);
        let language = std::mem::replace(&mut self.language, Language::Jq);
        let auth = document.as_ref().and_then(|document| document.get("auth"));
        if let Some(auth) = auth.filter(|_| self.workflow.auth.is_empty()) {
            self.auth_definitions(auth);
        }
        let had_failed = std::mem::take(&mut self.failed);
        self.function_definition(item);
        (self.origin, self.dialect, self.language) = (origin, dialect, language);
        let found = self.functions.get(name).map(|entry| entry.id);
        if found.is_none() && self.is_clean() {
            let message = format!("the function '{name}' that was given cannot be read");
            self.error(place, codes::UNKNOWN_FUNCTION, message, None);
        }
        self.failed |= had_failed;
        found
    }
}

/// The list of functions in a document of functions.
fn list_of(document: &Node) -> &Node {
    document.get("functions").unwrap_or(document)
}

/// Whether it is one of the language's types, in any case.
pub(crate) fn is_known_type(word: &str) -> bool {
    let mut types = TYPES.iter();
    types.any(|(known, _)| known.eq_ignore_ascii_case(word))
}

/// Types whose functions may be called by a URL alone.
fn is_called_by_url(word: &str) -> bool {
    ["", "rest", "http", "https"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(word))
}

fn is_url(text: &str) -> bool {
    let text = text.trim();
    let scheme = crate::resource::scheme(text).unwrap_or_default();
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    is_http && !text.contains('#') && !text.contains(char::is_whitespace)
}
