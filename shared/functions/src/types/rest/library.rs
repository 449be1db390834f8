//! The OpenAPI documents of a definition and the documents that they refer to. Each one is read once.

use std::collections::HashMap;
use std::sync::Arc;

use swirl_model::workflow::Function;
use url::Url;

use super::document::OpenApi;
use super::error::Error;
use super::inline::is_inline;
use super::operation::Operation;
use crate::types::{Documents, NOWHERE};

/// The document's URI and the operation's id in a function's operation.
pub(super) fn parts(function: &Function) -> Result<(&str, &str), String> {
    let operation = &function.operation;
    let parts = operation.split_once('#');
    let Some((uri, id)) = parts.filter(|(uri, id)| !uri.is_empty() && !id.is_empty()) else {
        return Err(format!(
            "the operation `{operation}` must be the URI of an OpenAPI document, `#` and the id of \
             one of its operations"
        ));
    };
    Ok((uri, id))
}

/// Documents by the URIs that the definition has for them.
#[derive(Debug, Default)]
pub(crate) struct Library {
    read: HashMap<String, Result<OpenApi, String>>,
}

/// The reason why there is no such operation.
#[derive(Debug, PartialEq)]
pub(crate) enum Refused {
    /// A document that another one refers to is missing.
    Missing(String),
    /// The document at this URI doesn't say where the service is, for this reason.
    NoAddress(String, String),
    /// The document has no such operation.
    Unknown(String),
    Wrong(String),
}

impl Library {
    /// The operation that a function names. Documents are loaded when a reference needs them.
    ///
    /// # Errors
    /// [`Refused`]; its sentence names the document.
    pub(crate) fn operation(
        &mut self,
        function: &Function,
        documents: &Documents<'_>,
    ) -> Result<Operation, Refused> {
        let (uri, _) = parts(function).map_err(Refused::Wrong)?;
        let own = documents.server(function, Some(uri));
        let server = documents.server_or_own(function, Some(uri));
        let server = server.map_err(Refused::Wrong)?;
        let mut operation = self.operation_at(function, documents, server.as_ref())?;
        // The operator's address takes precedence over an absolute one of the document.
        if let Some(own) = own
            && Url::parse(&operation.server).is_ok_and(|server| server.origin() != own.origin())
        {
            own.as_str()
                .trim_end_matches('/')
                .clone_into(&mut operation.server);
        }
        Ok(operation)
    }

    /// The same with this address, if the document has none.
    pub(super) fn operation_at(
        &mut self,
        function: &Function,
        documents: &Documents<'_>,
        server: Option<&Url>,
    ) -> Result<Operation, Refused> {
        let (uri, id) = parts(function).map_err(Refused::Wrong)?;
        let wrong = |reason: &dyn std::fmt::Display| Refused::Wrong(format!("`{uri}`: {reason}"));
        let content = documents.get(uri).ok_or_else(|| {
            let reason = "it isn't among the definition's resources";
            wrong(&reason)
        })?;
        let read = self.read.entry(uri.to_owned()).or_insert_with(|| {
            OpenApi::parse(content.as_bytes(), uri).map_err(|error| error.to_string())
        });
        let document = read.as_mut().map_err(|reason| wrong(reason))?;
        loop {
            match document.operation_at(id, server) {
                Ok(operation) => return Ok(operation),
                Err(Error::MissingDocument { uri: other, .. }) => {
                    let Some(content) = documents.get(&other) else {
                        return Err(Refused::Missing(other));
                    };
                    let added = document.add(&other, content.as_bytes());
                    added.map_err(|error| wrong(&error))?;
                }
                Err(Error::NoAddress(reason)) => {
                    return Err(Refused::NoAddress(uri.to_owned(), reason));
                }
                Err(error @ Error::UnknownOperation { .. }) => {
                    return Err(Refused::Unknown(format!("`{uri}`: {error}")));
                }
                Err(error) => return Err(wrong(&error)),
            }
        }
    }

    /// The documents that have been read, for sharing with later readers.
    pub(crate) fn shared(self) -> HashMap<String, Arc<OpenApi>> {
        let read = self.read.into_iter();
        read.filter_map(|(uri, document)| Some((uri, Arc::new(document.ok()?))))
            .collect()
    }

    /// The first missing document that is needed to find the operation.
    pub(crate) fn missing(
        &mut self,
        function: &Function,
        documents: &Documents<'_>,
    ) -> Option<String> {
        if is_inline(function) {
            return None;
        }
        let mut found = self.operation(function, documents);
        if let Err(Refused::NoAddress(..)) = found {
            found = self.operation_at(function, documents, Url::parse(NOWHERE).ok().as_ref());
        }
        match found {
            Err(Refused::Missing(uri)) => Some(uri),
            _ => None,
        }
    }
}
