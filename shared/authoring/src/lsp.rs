//! What an editor asks about a definition, and the answers: the language server without its wire.
//!
//! A [`Session`] takes the messages of one editor and gives what is to be sent back, both as the
//! protocol writes them. It does no IO: documents come with the messages, and what a definition
//! refers to comes from a [`Source`]. Positions are those of the protocol: lines and UTF-16 units,
//! from 0.

mod analysis;
mod completion;
mod names;
pub(crate) mod properties;
mod text;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use swirl_spec::resource::Resources;

use crate::format;
use analysis::Analysis;
use text::{Position, Text};

/// Documents open at once; what an editor opens beyond them gets no findings.
const OPEN_MAX: usize = 200;

/// Where the documents are that the definition at a URI refers to.
pub trait Source {
    fn beside(&self, uri: &str) -> Box<dyn Resources>;
}

/// One editor, from its first message to its last.
pub struct Session {
    source: Box<dyn Source>,
    documents: BTreeMap<String, Document>,
}

struct Document {
    text: Text,
    version: i64,
    /// `None` after a change, until somebody asks.
    analysis: Option<Analysis>,
    /// Findings of the current text were sent.
    is_told: bool,
}

/// Why a request has no answer: code and message of JSON-RPC.
pub type Refusal = (i32, String);

const INVALID_PARAMS: i32 = -32602;
const METHOD_NOT_FOUND: i32 = -32601;
const REQUEST_FAILED: i32 = -32803;

impl Session {
    pub fn new(source: Box<dyn Source>) -> Session {
        Session {
            source,
            documents: BTreeMap::new(),
        }
    }

    /// What the server can do: the `capabilities` of its answer to `initialize`.
    pub fn capabilities() -> Value {
        json!({
            "textDocumentSync": {"openClose": true, "change": 2},
            "hoverProvider": true,
            "completionProvider": {"triggerCharacters": [" ", "\"", "'", "."]},
            "definitionProvider": true,
            "referencesProvider": true,
            "renameProvider": {"prepareProvider": true},
            "documentSymbolProvider": true,
            "codeActionProvider": {"codeActionKinds": ["quickfix"]},
            "documentFormattingProvider": true,
        })
    }

    /// Takes a notification. What the protocol has and we don't need is passed over.
    pub fn notify(&mut self, method: &str, params: &Value) {
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
        let version = params["textDocument"]["version"]
            .as_i64()
            .unwrap_or_default();
        match method {
            "textDocument/didOpen" => {
                let text = params["textDocument"]["text"].as_str().unwrap_or_default();
                if self.documents.len() < OPEN_MAX {
                    let document = Document {
                        text: Text::new(text.to_owned()),
                        version,
                        analysis: None,
                        is_told: false,
                    };
                    self.documents.insert(uri.to_owned(), document);
                }
            }
            "textDocument/didChange" => {
                if let Some(document) = self.documents.get_mut(uri) {
                    for change in params["contentChanges"].as_array().into_iter().flatten() {
                        let new = change["text"].as_str().unwrap_or_default();
                        match range(&change["range"]) {
                            Some((start, end)) => document.text.replace(start, end, new),
                            None => document.text = Text::new(new.to_owned()),
                        }
                    }
                    document.version = version;
                    document.analysis = None;
                    document.is_told = false;
                }
            }
            "textDocument/didClose" => {
                self.documents.remove(uri);
            }
            // What a document refers to may have changed.
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                for document in self.documents.values_mut() {
                    document.analysis = None;
                    document.is_told = false;
                }
            }
            _ => {}
        }
    }

    /// The findings that the editor hasn't got yet, as `publishDiagnostics` takes them. To be asked
    /// for when no message waits: while somebody types, what is in between interests nobody.
    pub fn findings(&mut self) -> Vec<Value> {
        let uris: Vec<String> = self.documents.keys().cloned().collect();
        let mut sent = Vec::new();
        for uri in uris {
            let Some(document) = self.analysed(&uri) else {
                continue;
            };
            if document.is_told {
                continue;
            }
            document.is_told = true;
            let version = document.version;
            let diagnostics = document
                .analysis
                .as_ref()
                .map(|analysis| analysis.diagnostics(&document.text));
            sent.push(json!({"uri": uri, "version": version, "diagnostics": diagnostics}));
        }
        sent
    }

    /// The answer to a request.
    ///
    /// # Errors
    /// There is none, with the reason for people.
    pub fn answer(&mut self, method: &str, params: &Value) -> Result<Value, Refusal> {
        let uri = params["textDocument"]["uri"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let position = position(&params["position"]);
        let needs_position = matches!(
            method,
            "textDocument/hover"
                | "textDocument/completion"
                | "textDocument/definition"
                | "textDocument/references"
                | "textDocument/prepareRename"
                | "textDocument/rename"
        );
        let is_known = needs_position
            || matches!(
                method,
                "textDocument/documentSymbol"
                    | "textDocument/codeAction"
                    | "textDocument/formatting"
            );
        if !is_known {
            return Err((METHOD_NOT_FOUND, format!("there is no method '{method}'")));
        }
        let resources = self.source.beside(&uri);
        let Some(document) = self.analysed(&uri) else {
            return Err((INVALID_PARAMS, format!("'{uri}' is not open")));
        };
        let (text, Some(analysis)) = (&document.text, &document.analysis) else {
            return Ok(Value::Null);
        };
        let at = match (position, needs_position) {
            (Some(position), _) => position,
            (None, false) => Position::default(),
            (None, true) => return Err((INVALID_PARAMS, "'position' is missing".to_owned())),
        };
        match method {
            "textDocument/hover" => Ok(analysis.hover(text, at)),
            "textDocument/completion" => Ok(completion::complete(text, analysis, at, &*resources)),
            "textDocument/definition" => Ok(analysis.names.definition(text, at, &uri)),
            "textDocument/references" => Ok(analysis.names.references(text, at, &uri)),
            "textDocument/prepareRename" => Ok(analysis.names.rename_range(text, at)),
            "textDocument/rename" => {
                let name = params["newName"].as_str().unwrap_or_default();
                let edits = analysis.names.rename(text, at, name);
                edits
                    .map(|edits| json!({"changes": {uri: edits}}))
                    .map_err(|why| (REQUEST_FAILED, why))
            }
            "textDocument/documentSymbol" => Ok(analysis.names.symbols(text)),
            "textDocument/codeAction" => Ok(analysis.fixes(text, &uri, range(&params["range"]))),
            _ => formatted(text),
        }
    }

    fn analysed(&mut self, uri: &str) -> Option<&mut Document> {
        let document = self.documents.get_mut(uri)?;
        if document.analysis.is_none() {
            let resources = self.source.beside(uri);
            document.analysis = Some(Analysis::of(document.text.as_str(), &*resources));
        }
        Some(document)
    }
}

/// One edit of the whole text, or none.
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
