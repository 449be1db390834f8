//! The language server without its transport: answers the requests of an editor about a definition.
//!
//! A [`Session`] takes the messages of one editor and returns the messages to send back, both in the protocol's JSON.
//! It does no IO: documents are in the messages, and files that a definition refers to come from a [`Source`].
//! Positions are the protocol's: lines and UTF-16 units, from 0.

mod analysis;
mod around;
mod completion;
mod declared;
mod entries;
mod expressions;
mod fixes;
mod flow;
mod functions;
mod jq;
mod keys;
mod names;
mod offered;
mod once;
pub(crate) mod properties;
mod scalar;
mod serve;
mod shape;
mod task_flow;
mod text;
mod unfinished;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use swirl_documents::source::{self, Limits};
use swirl_presentation::{Format, Trail, render, render_with};
use swirl_spec::edition::{self, Edition};
use swirl_spec::resource::Resources;

use crate::format;
use analysis::Analysis;
use expressions::{KnownData, VisibleVars};
use flow::Flow;
use names::Names;
use task_flow::TaskFlow;
use text::{Position, Text};

pub use once::{COMPLETED_BYTES_MAX, completions};
pub use serve::{Gone, serve};

/// The maximum number of open documents. Further ones get no findings.
const OPEN_MAX: usize = 200;

/// The request for a definition's diagram.
const DIAGRAM: &str = "swirl/diagram";

/// Provides the documents that the definition at a URI refers to.
pub trait Source: Send + Sync {
    fn beside(&self, uri: &str) -> Box<dyn Resources>;
}

/// The session of one editor.
///
/// Requests are answered from the current text and from the last analysis, whose locations are adjusted to edits.
/// Analyses are [`Job`]s for another thread, because analysing long documents would be too slow during typing.
pub struct Session {
    source: Arc<dyn Source>,
    documents: BTreeMap<String, Document>,
    /// The number of changes in all documents.
    changes: u64,
}

struct Document {
    text: Text,
    version: i64,
    /// The number of the last change of the text, or of files that it may refer to.
    changed: u64,
    /// The last change that was handed out as a job.
    given: u64,
    /// The outline of the last text that could be parsed.
    outline: Outline,
    parsed: Parsed,
    analysis: Analysis,
    /// The workflow of the last text without errors.
    picture: Option<Arc<swirl_model::workflow::Workflow>>,
    /// The schema of its input, even if it is in another file.
    input_schema: Option<Value>,
}

/// Facts about a text that has been parsed but not analysed.
#[derive(Default)]
struct Outline {
    names: Names,
    sight: VisibleVars,
    flow: Flow,
    task_flow: Option<TaskFlow>,
    edition: Option<Edition>,
}

/// Whether the outline belongs to the current text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parsed {
    NotYet,
    Well,
    /// The text can't be parsed.
    Broken,
}

/// A text to analyse.
pub struct Job {
    uri: String,
    text: String,
    changed: u64,
    source: Arc<dyn Source>,
}

/// The result of a [`Job`].
pub struct Done {
    uri: String,
    changed: u64,
    analysis: Analysis,
}

/// A diagram to draw.
pub struct Drawing {
    workflow: Option<Arc<swirl_model::workflow::Workflow>>,
    state: Option<String>,
    version: i64,
}

/// The reason why a request has no answer: code and message of JSON-RPC.
pub type Refusal = (i32, String);

const INVALID_PARAMS: i32 = -32602;
const METHOD_NOT_FOUND: i32 = -32601;
const REQUEST_FAILED: i32 = -32803;

impl Session {
    pub fn new(source: Arc<dyn Source>) -> Session {
        Session {
            source,
            documents: BTreeMap::new(),
            changes: 0,
        }
    }

    /// Returns the `capabilities` of the answer to `initialize`.
    pub fn capabilities() -> Value {
        json!({
            "textDocumentSync": {"openClose": true, "change": 2, "save": true},
            "hoverProvider": true,
            "completionProvider": {"triggerCharacters": [" ", "\"", "'", ".", "$", ":"]},
            "definitionProvider": true,
            "referencesProvider": true,
            "renameProvider": {"prepareProvider": true},
            "documentSymbolProvider": true,
            "codeActionProvider": {"codeActionKinds": ["quickfix"]},
            "documentFormattingProvider": true,
            "experimental": {"diagram": DIAGRAM},
        })
    }

    /// Handles a notification. Notifications that we don't need are ignored.
    pub fn notify(&mut self, method: &str, params: &Value) {
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
        self.changes += 1;
        let changed = self.changes;
        match method {
            "textDocument/didOpen" => {
                let text = params["textDocument"]["text"].as_str().unwrap_or_default();
                if self.documents.len() < OPEN_MAX || self.documents.contains_key(uri) {
                    let mut document = Document::new(Text::new(text.to_owned()));
                    document.version = version(params);
                    document.changed = changed;
                    self.documents.insert(uri.to_owned(), document);
                }
            }
            "textDocument/didChange" => {
                if let Some(document) = self.documents.get_mut(uri) {
                    for change in params["contentChanges"].as_array().into_iter().flatten() {
                        document.change(change);
                    }
                    document.version = version(params);
                    document.changed = changed;
                }
            }
            "textDocument/didClose" => {
                self.documents.remove(uri);
            }
            // Files that a document refers to may have changed.
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                for document in self.documents.values_mut() {
                    document.changed = changed;
                }
            }
            _ => {}
        }
    }

    /// Whether an analysis is due.
    pub fn has_job(&self) -> bool {
        let mut documents = self.documents.values();
        documents.any(|document| document.given < document.changed)
    }

    /// Returns a text that has changed since the last job for it.
    pub fn job(&mut self) -> Option<Job> {
        let mut documents = self.documents.iter_mut();
        let (uri, document) = documents.find(|(_, document)| document.given < document.changed)?;
        document.given = document.changed;
        Some(Job {
            uri: uri.clone(),
            text: document.text.as_str().to_owned(),
            changed: document.changed,
            source: self.source.clone(),
        })
    }

    /// Stores an analysis, and returns the findings in the form of `publishDiagnostics`. Findings for an older text are
    /// dropped, but its workflow can be drawn until there is one for the current text.
    pub fn take(&mut self, done: Done) -> Option<Value> {
        let Done {
            uri,
            changed,
            mut analysis,
        } = done;
        let document = self.documents.get_mut(&uri)?;
        if let Some(workflow) = analysis.workflow.take() {
            let schema = workflow.input_schema.as_ref();
            document.input_schema = schema.map(|input| Value::from(&input.schema));
            document.picture = Some(Arc::new(workflow));
        }
        if changed < document.changed {
            return None;
        }
        document.analysis = analysis;
        let diagnostics = document.analysis.diagnostics(&document.text, &uri);
        Some(json!({"uri": uri, "version": document.version, "diagnostics": diagnostics}))
    }

    /// All pending findings.
    pub fn findings(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(job) = self.job() {
            all.extend(self.take(job.run()));
        }
        all
    }

    /// The answer to a request.
    ///
    /// # Errors
    /// There is no answer; the error gives the reason.
    pub fn answer(&mut self, method: &str, params: &Value) -> Result<Value, Refusal> {
        let answer: fn(&DocumentRequest<'_>) -> Result<Value, Refusal> = match method {
            "textDocument/hover" => |asked| asked.hover(),
            "textDocument/completion" => return self.complete(params),
            "textDocument/definition" => |asked| {
                let (names, at) = (&asked.outline.names, asked.at()?);
                Ok(names.definition(asked.text, at, asked.uri))
            },
            "textDocument/references" => |asked| {
                let (names, at) = (&asked.outline.names, asked.at()?);
                Ok(names.references(asked.text, at, asked.uri))
            },
            "textDocument/prepareRename" => {
                |asked| Ok(asked.outline.names.rename_range(asked.text, asked.at()?))
            }
            "textDocument/rename" => |asked| asked.rename(),
            "textDocument/documentSymbol" => |asked| Ok(asked.outline.names.symbols(asked.text)),
            "textDocument/codeAction" => |asked| {
                let (names, within) = (&asked.outline.names, range(&asked.params["range"]));
                let analysis = asked.analysis;
                let fixes = |finding| fixes::fixes(finding, asked.text, names, asked.uri);
                Ok(analysis
                    .within(asked.text, within)
                    .flat_map(fixes)
                    .collect())
            },
            "textDocument/formatting" => |asked| formatted(asked.text),
            DIAGRAM => return Ok(self.drawing(params)?.run()),
            _ => return Err((METHOD_NOT_FOUND, format!("there is no method '{method}'"))),
        };
        let (uri, document) = self.document(params)?;
        document.parse();
        answer(&DocumentRequest {
            uri,
            params,
            text: &document.text,
            outline: &document.outline,
            is_broken: document.parsed == Parsed::Broken,
            analysis: &document.analysis,
        })
    }

    fn complete(&mut self, params: &Value) -> Result<Value, Refusal> {
        let source = self.source.clone();
        let (uri, document) = self.document(params)?;
        let at = needed_position(params)?;
        if document.outline.edition.is_none() || document.outline.sight.holds(&document.text, at) {
            document.parse();
        }
        let (text, Outline { names, edition, .. }) = (&document.text, &document.outline);
        let known = KnownData {
            flow: &document.outline.flow,
            tasks: document.outline.task_flow.as_ref(),
            schema: document.input_schema.as_ref(),
        };
        let expression = document.outline.sight.complete(text, at, names, &known);
        // Otherwise the text is parsed anyway, with a placeholder at the cursor.
        let resources = source.beside(uri);
        let other = || completion::complete(text, names, *edition, &*resources, at);
        Ok(expression.unwrap_or_else(other))
    }

    /// Returns the drawing for `swirl/diagram`: the last workflow without errors, with the state at
    /// the position marked.
    ///
    /// # Errors
    /// The document is not open.
    pub fn drawing(&mut self, params: &Value) -> Result<Drawing, Refusal> {
        let (_, document) = self.document(params)?;
        document.parse();
        let state = position(&params["position"]).and_then(|at| {
            let state = document.outline.names.state_at(&document.text, at)?;
            Some(state.to_owned())
        });
        Ok(Drawing {
            workflow: document.picture.clone(),
            state,
            version: document.version,
        })
    }

    fn document<'p>(&mut self, params: &'p Value) -> Result<(&'p str, &mut Document), Refusal> {
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
        match self.documents.get_mut(uri) {
            Some(document) => Ok((uri, document)),
            None => Err((INVALID_PARAMS, format!("'{uri}' is not open"))),
        }
    }
}

impl Document {
    fn new(text: Text) -> Document {
        Document {
            text,
            version: 0,
            changed: 0,
            given: 0,
            outline: Outline::default(),
            parsed: Parsed::NotYet,
            analysis: Analysis::default(),
            picture: None,
            input_schema: None,
        }
    }

    fn change(&mut self, change: &Value) {
        let new = change["text"].as_str().unwrap_or_default();
        self.parsed = Parsed::NotYet;
        let Some((start, end)) = range(&change["range"]) else {
            self.text = Text::new(new.to_owned());
            return;
        };
        let (first, last) = (self.text.place(start), self.text.place(end));
        let begin = self.text.byte(start);
        self.text.replace(start, end, new);
        let new_end = self.text.position(begin + new.len());
        self.analysis.moved(first, last, self.text.place(new_end));
    }

    /// Updates the outline to the current text. If that can't be parsed, the last outline stays.
    fn parse(&mut self) {
        if self.parsed != Parsed::NotYet {
            return;
        }
        self.parsed = match Outline::of(self.text.as_str()) {
            Some(outline) => {
                self.outline = outline;
                Parsed::Well
            }
            None => Parsed::Broken,
        };
    }
}

impl Outline {
    fn of(text: &str) -> Option<Outline> {
        let root = source::read(text.as_bytes(), &Limits::default()).root?;
        let edition = edition::detect(&root).ok().map(|detected| detected.edition);
        Some(Outline {
            names: declared::names_of(&root),
            sight: VisibleVars::of(&root, edition),
            flow: Flow::of(&root),
            task_flow: declared::has_tasks(&root).then(|| TaskFlow::of(root)),
            edition,
        })
    }
}

impl Job {
    pub fn run(self) -> Done {
        let resources = self.source.beside(&self.uri);
        Done {
            analysis: Analysis::of(&self.text, &*resources),
            uri: self.uri,
            changed: self.changed,
        }
    }
}

impl Drawing {
    /// `svg` is null until there was a text without errors.
    pub fn run(&self) -> Value {
        let svg = self.workflow.as_ref().map(|workflow| match &self.state {
            Some(state) => render_with(workflow, &Trail::at(state)),
            None => render(workflow, Format::Svg),
        });
        json!({"svg": svg, "state": self.state, "version": self.version})
    }
}

/// A request about a document.
struct DocumentRequest<'a> {
    uri: &'a str,
    params: &'a Value,
    text: &'a Text,
    outline: &'a Outline,
    is_broken: bool,
    analysis: &'a Analysis,
}

impl DocumentRequest<'_> {
    fn at(&self) -> Result<Position, Refusal> {
        needed_position(self.params)
    }

    /// Returns the pages of findings or, if there are none, the description of the function or property at the
    /// position.
    fn hover(&self) -> Result<Value, Refusal> {
        let at = self.at()?;
        let pages = self.analysis.pages(self.text, at);
        let function = || self.outline.sight.hover(self.text, at);
        let property = || {
            let (key, about) = properties::at(self.outline.edition, self.text, at)?;
            Some(format!("**{key}**: {about}"))
        };
        let shown = pages.or_else(function).or_else(property);
        Ok(shown.map_or(
            Value::Null,
            |shown| json!({"contents": {"kind": "markdown", "value": shown}}),
        ))
    }

    fn rename(&self) -> Result<Value, Refusal> {
        if self.is_broken {
            let why = "the document cannot be parsed: fix that first";
            return Err((REQUEST_FAILED, why.to_owned()));
        }
        let name = self.params["newName"].as_str().unwrap_or_default();
        let edits = self.outline.names.rename(self.text, self.at()?, name);
        match edits {
            Ok(edits) => Ok(json!({"changes": {self.uri: edits}})),
            Err(why) => Err((REQUEST_FAILED, why)),
        }
    }
}

fn needed_position(params: &Value) -> Result<Position, Refusal> {
    let at = position(&params["position"]);
    at.ok_or_else(|| (INVALID_PARAMS, "'position' is missing".to_owned()))
}

fn version(params: &Value) -> i64 {
    let version = params["textDocument"]["version"].as_i64();
    version.unwrap_or_default()
}

/// A single edit of the whole text, or none.
fn formatted(text: &Text) -> Result<Value, Refusal> {
    match format::format(text.as_str().as_bytes()) {
        Ok(formatted) if formatted == text.as_str() => Ok(json!([])),
        Ok(formatted) => {
            let end = text.end();
            let range = json!({"start": Position::default(), "end": end});
            Ok(json!([{"range": range, "newText": formatted}]))
        }
        Err(error) => Err((REQUEST_FAILED, error.to_string())),
    }
}

fn position(value: &Value) -> Option<Position> {
    let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
    Some(Position {
        line: number(&value["line"])?,
        character: number(&value["character"])?,
    })
}

fn range(value: &Value) -> Option<(Position, Position)> {
    Some((position(&value["start"])?, position(&value["end"])?))
}

#[cfg(test)]
mod tests;
