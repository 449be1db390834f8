//! Reads documents of any edition to the canonical workflow.

use swirl_documents::codes;
use swirl_documents::diagnostic::{Diagnostic, Diagnostics};
use swirl_documents::source::{self, Node};
use swirl_documents::suggest;
use swirl_model::workflow::{ActionKind, AuthId, Workflow};

use crate::build::ctx::Ctx;
use crate::build::dialect::Dialect;
use crate::edition::{self, Detected, Edition};
use crate::editions;
use crate::options::Options;
use crate::resource::Resources;

/// The result of reading a document.
#[derive(Debug)]
pub struct Reading {
    /// The document's tree, if [`read`] could parse it.
    pub root: Option<Node>,
    /// `None` if there is any error among the diagnostics.
    pub workflow: Option<Workflow>,
    /// The readable parts of a document with errors, so that its functions can be checked too.
    pub partial: Option<Box<Workflow>>,
    /// The recognised edition, with the reason; `None` if the document has no tree.
    pub edition: Option<Detected>,
    pub diagnostics: Diagnostics,
    /// The documents that it refers to by URI, so that a deployment can be stored completely.
    pub resources_used: Vec<(String, Vec<u8>)>,
    /// Documents that could not be had without their credentials, which are in the workflow or its readable parts.
    pub guarded: Vec<(String, AuthId)>,
}

/// Reads a definition in JSON or YAML. All findings are reported, not only the first one.
pub fn read(document: &[u8], resources: &dyn Resources, options: &Options) -> Reading {
    let parsed = source::read(document, &options.limits);
    let Some(root) = &parsed.root else {
        return Reading {
            root: None,
            workflow: None,
            partial: None,
            edition: None,
            diagnostics: parsed.diagnostics,
            resources_used: Vec::new(),
            guarded: Vec::new(),
        };
    };
    let mut reading = read_node(root, resources, options);
    let mut diagnostics = parsed.diagnostics;
    diagnostics.extend(reading.diagnostics.into_vec());
    reading.diagnostics = diagnostics;
    if reading.diagnostics.has_errors()
        && let Some(workflow) = reading.workflow.take()
    {
        reading.partial = Some(Box::new(workflow));
    }
    reading.root = parsed.root;
    reading
}

/// Reads a definition inside a larger document, such as a scenario file. Pointers are relative to the definition; lines
/// and columns refer to the document.
pub fn read_node(root: &Node, resources: &dyn Resources, options: &Options) -> Reading {
    if let Some(reading) = of_kubernetes(root) {
        return reading;
    }
    let detected = match edition::detect(root) {
        Ok(detected) => detected,
        Err(unknown) => return unknown_edition(root, unknown),
    };
    read_detected(root, detected, resources, options)
}

/// Reads a document as one of the given edition, whatever its version key says.
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
    Ok(read_detected(&root, detected, resources, options))
}

/// Reads a document of a detected edition.
fn read_detected(
    root: &Node,
    detected: Detected,
    resources: &dyn Resources,
    options: &Options,
) -> Reading {
    let entry = editions::row(detected.edition);
    let dialect = entry.map_or(Dialect::JQ, |entry| entry.dialect);
    let mut ctx = Ctx::new(dialect, root.pointer(), resources, options);
    ctx.workflow.edition = detected.edition.as_str();
    ctx.workflow.merge_hint = dialect.merge_hint;
    if let Some(property) = detected.misled_by {
        misled(&mut ctx, root, property, &detected);
    } else if !detected.also.is_empty() {
        ambiguous(&mut ctx, root, &detected);
    }
    padded_version(&mut ctx, root);
    match entry {
        Some(entry) => {
            let mut root = root.clone();
            ctx.leave_out_absent_of(&mut root);
            ctx.read_flags(&mut root);
            if entry.rules.is_empty() {
                (entry.read)(&mut ctx, &root);
            } else {
                let mut rewritten = root.clone();
                ctx.rewrite(&mut rewritten, entry.rules);
                (entry.read)(&mut ctx, &rewritten);
            }
            ctx.own_metadata(&root);
        }
        None => not_supported(&mut ctx, root),
    }
    let is_clean = ctx.is_clean();
    let (workflow, partial) = match is_clean {
        true => (Some(ctx.workflow), None),
        false => (None, Some(Box::new(readable(ctx.workflow)))),
    };
    Reading {
        root: None,
        workflow,
        partial,
        edition: Some(detected),
        diagnostics: ctx.diagnostics,
        resources_used: ctx.resources_used,
        guarded: ctx.guarded,
    }
}

/// The parts of an unfinished workflow that its functions are checked with.
fn readable(mut workflow: Workflow) -> Workflow {
    let functions = workflow.functions.len();
    workflow.actions.retain(|action| match &action.kind {
        ActionKind::Call(call) => (call.function.0 as usize) < functions,
        _ => false,
    });
    workflow
}

/// Warns if the stated version isn't the edition in which the document is written.
fn misled(ctx: &mut Ctx<'_>, root: &Node, property: &str, detected: &Detected) {
    let edition = detected.edition;
    let mut message = format!(
        "the document is read as edition {edition}: {}",
        detected.why
    );
    if !detected.also.is_empty() {
        message.push_str("; it could also be of edition ");
        message.push_str(&alternatives(&detected.also));
    }
    let (right, version) = version_key(edition);
    let hint =
        format!("write '{right}: \"{version}\"', or change the parts that are not of that edition");
    // The names of the properties here are meant as they are.
    let location = ctx.location(root.get(property).unwrap_or(root));
    ctx.warn_as_is(&location, codes::MISLEADING_EDITION, message, hint);
}

/// Blanks around a version don't hide the edition (docs/language.md#decision-96).
fn padded_version(ctx: &mut Ctx<'_>, root: &Node) {
    for property in edition::VERSIONS {
        let Some(node) = root.get(property) else {
            continue;
        };
        let text = node.as_str().unwrap_or_default();
        let version = text.trim();
        if version != text && !version.is_empty() {
            let message = format!("'{property}' has spaces around '{version}'");
            let location = ctx.location(node);
            let hint = format!("write '{version}'");
            ctx.warn_as_is(&location, codes::LOOSE_FORM, message, hint);
        }
    }
}

/// How a document states that it is of an edition.
fn version_key(edition: Edition) -> (&'static str, &'static str) {
    let property = match edition {
        Edition::V0_7 | Edition::V0_8 | Edition::V0_9 => "specVersion",
        Edition::V1_0 => "dsl",
        Edition::V0_1 | Edition::V0_1Early => "schema-version",
        _ => "schemaVersion",
    };
    let version = match edition {
        Edition::V0_1 | Edition::V0_1Early | Edition::V0_1Release | Edition::Tasks => "0.1",
        edition => edition.as_str(),
    };
    (property, version)
}

/// Warns if a document could also be of another edition.
fn ambiguous(ctx: &mut Ctx<'_>, root: &Node, detected: &Detected) {
    let message = format!(
        "the document does not name its edition, and could also be of edition {}; it is read as edition {}",
        alternatives(&detected.also),
        detected.edition
    );
    let (property, version) = version_key(detected.edition);
    let hint = format!(
        "add '{property}: \"{version}\"' if that is right, else 'specVersion' with the right one"
    );
    // The names of the properties here are meant as they are.
    let location = ctx.location(root);
    ctx.warn_as_is(&location, codes::AMBIGUOUS_EDITION, message, hint);
}

fn alternatives(editions: &[Edition]) -> String {
    let words: Vec<&str> = editions.iter().map(|edition| edition.as_str()).collect();
    words.join(" or ")
}

/// Rejects a document whose edition has no reader.
fn not_supported(ctx: &mut Ctx<'_>, root: &Node) {
    let place = ["specVersion", "schemaVersion", "schema-version"]
        .iter()
        .find_map(|name| root.get(name))
        .unwrap_or(root);
    let message = format!(
        "the document is of edition {}, which this version does not read yet",
        ctx.workflow.edition
    );
    let hint = "write it in edition 0.8, and state that with 'specVersion: \"0.8\"'".to_owned();
    ctx.error(place, codes::EDITION_NOT_SUPPORTED, message, hint);
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

/// docs/language.md#decision-97.
fn of_the_dsl(root: &Node, unknown: &edition::UnknownEdition) -> Reading {
    let document = root.get("document");
    let place = document
        .and_then(|node| node.get(edition::DSL))
        .unwrap_or(root);
    let message = format!("there is no DSL '{}' that can be read", unknown.version);
    let error = Diagnostic::error(codes::EDITION_NOT_SUPPORTED, relative(root, place), message);
    let hint = match unknown.version.starts_with("1.0.0-alpha1") {
        true => "write 'dsl: 1.0.3', in which lists of tasks are lists",
        false => "write 'dsl: 1.0.3'",
    };
    refused(None, error.with_hint(hint))
}

/// A Kubernetes custom resource whose `spec.flow` is the definition, in the form of SonataFlow's operator.
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

fn relative(root: &Node, node: &Node) -> swirl_documents::diagnostic::SourceLocation {
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
        root: None,
        workflow: None,
        partial: None,
        edition,
        diagnostics,
        resources_used: Vec::new(),
        guarded: Vec::new(),
    }
}
