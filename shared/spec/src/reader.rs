//! Documents of any edition to the canonical workflow.

use std::collections::{BTreeSet, HashSet};

use swirl_model::time::Timestamp;
use swirl_model::workflow::Workflow;

use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::edition::{self, Detected, Edition};
use crate::editions;
use crate::resource::Resources;
use crate::source::{self, Limits, Node};
use crate::suggest;

/// The knowledge of a deployment besides the document.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of the functions that the caller answers itself, such as a scenario's mocks. Those
    /// of a type that this version doesn't carry out are accepted then.
    pub provided: HashSet<String>,
    /// Custom function types that this installation carries out, where known. Other types that the
    /// language doesn't have are then refused, otherwise warned of.
    pub custom_types: Option<BTreeSet<String>>,
    /// Ids of the workflows that are deployed, where known: references to others are warned of.
    pub workflows: Option<BTreeSet<String>>,
    /// The time, where it is known: schedules that are over by then are warned of.
    pub now: Option<Timestamp>,
    /// Of the document, and of each that it refers to.
    pub limits: Limits,
}

/// The result of reading a document.
#[derive(Debug)]
pub struct Reading {
    /// `None` if there is any error among the diagnostics.
    pub workflow: Option<Workflow>,
    /// The recognised edition, with the reason; `None` if the document has no tree at all.
    pub edition: Option<Detected>,
    pub diagnostics: Diagnostics,
    /// The documents that it refers to by URI, so that a deployment can be stored complete.
    pub resources_used: Vec<(String, Vec<u8>)>,
}

/// Reads a definition, JSON or YAML. All findings are reported, not only the first.
pub fn read(document: &[u8], resources: &dyn Resources, options: &Options) -> Reading {
    let parsed = source::read(document, &options.limits);
    let Some(root) = &parsed.root else {
        return Reading {
            workflow: None,
            edition: None,
            diagnostics: parsed.diagnostics,
            resources_used: Vec::new(),
        };
    };
    let mut reading = read_node(root, resources, options);
    let mut diagnostics = parsed.diagnostics;
    diagnostics.extend(reading.diagnostics.into_vec());
    reading.diagnostics = diagnostics;
    if reading.diagnostics.has_errors() {
        reading.workflow = None;
    }
    reading
}

/// Reads a definition inside a larger document, such as a scenario file: pointers are those inside
/// the definition, lines and columns those of the document.
pub fn read_node(root: &Node, resources: &dyn Resources, options: &Options) -> Reading {
    if let Some(reading) = of_kubernetes(root) {
        return reading;
    }
    let detected = match edition::detect(root) {
        Ok(detected) => detected,
        Err(unknown) => return unknown_edition(root, unknown),
    };
    editions::read(root, detected, resources, options)
}

/// Reads a document as one of an edition, regardless of its version key.
///
/// # Errors
/// It is neither JSON nor YAML.
pub fn read_as(
    edition: Edition,
    document: &[u8],
    resources: &dyn Resources,
    options: &Options,
) -> Result<Reading, Diagnostic> {
    let root = source::parse(document, &options.limits)?;
    let detected = Detected {
        edition,
        why: "it is said to be".to_owned(),
        also: Vec::new(),
        misled_by: None,
    };
    Ok(editions::read(&root, detected, resources, options))
}

fn unknown_edition(root: &Node, unknown: edition::UnknownEdition) -> Reading {
    if unknown.property == edition::DSL {
        return of_the_dsl(root, &unknown);
    }
    let place = root.get(unknown.property).unwrap_or(root);
    let known = ["0.1", "0.5", "0.6", "0.7", "0.8", "0.9"];
    let hint = match suggest::did_you_mean(&unknown.version, known) {
        Some(best) => format!("did you mean '{best}'?"),
        None => "write 'specVersion: \"0.8\"'".to_owned(),
    };
    let message = format!("there is no edition '{}' of the language", unknown.version);
    let error = Diagnostic::error(codes::EDITION_NOT_SUPPORTED, relative(root, place), message);
    refused(None, error.with_hint(hint))
}

/// Decision 97.
fn of_the_dsl(root: &Node, unknown: &edition::UnknownEdition) -> Reading {
    let place = root.get("document").unwrap_or(root);
    let message = format!(
        "the document is written in the DSL {}, the language that came after edition 0.9",
        unknown.version
    );
    let error = Diagnostic::error(codes::EDITION_NOT_SUPPORTED, relative(root, place), message);
    refused(
        None,
        error.with_hint("write it in one of the editions 0.1 to 0.9"),
    )
}

/// A custom resource whose `spec.flow` is the definition, as SonataFlow's operator takes it.
fn of_kubernetes(root: &Node) -> Option<Reading> {
    let text = |node: Option<&Node>| node.and_then(Node::as_str).map(str::to_owned);
    text(root.get("apiVersion"))?;
    let kind = root.get("kind")?;
    let word = kind.as_str()?;
    if root.get("states").is_some() {
        return None;
    }
    let metadata = root.get("metadata");
    let name = text(metadata.and_then(|metadata| metadata.get("name")));
    let annotations = metadata.and_then(|metadata| metadata.get("annotations"));
    let version = annotations.and_then(|all| all.get("sonataflow.org/version"));
    let hint = match root.get("spec").and_then(|spec| spec.get("flow")) {
        Some(_) => format!(
            "take the contents of 'spec.flow' as the definition, and add 'id: {}', 'version: {}' and 'specVersion: \"0.8\"'",
            name.as_deref().unwrap_or("..."),
            text(version).as_deref().unwrap_or("..."),
        ),
        None => "give the workflow definition that it refers to".to_owned(),
    };
    let message =
        format!("this is a Kubernetes resource of kind '{word}', not a workflow definition");
    let error = Diagnostic::error(codes::EDITION_NOT_SUPPORTED, relative(root, kind), message);
    Some(refused(None, error.with_hint(hint)))
}

fn relative(root: &Node, node: &Node) -> crate::diagnostic::Place {
    let mut place = node.place();
    if let Some(rest) = place.pointer.strip_prefix(root.pointer()) {
        place.pointer = rest.to_owned();
    }
    place
}

fn refused(edition: Option<Detected>, error: Diagnostic) -> Reading {
    let mut diagnostics = Diagnostics::default();
    diagnostics.push(error);
    Reading {
        workflow: None,
        edition,
        diagnostics,
        resources_used: Vec::new(),
    }
}
