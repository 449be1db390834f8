//! Compiles an operation of a document to an [`Operation`], by the rules of the document's format.

use url::Url;

use super::document::{FoundOperation, OpenApi};
use super::error::Error;
use super::operation::Operation;
use super::read::Format;
use super::{openapi3, swagger2};

impl OpenApi {
    /// The operation with this `operationId`, with everything that a call needs.
    ///
    /// # Errors
    /// [`Error::UnknownOperation`] with similar or available ids, or the error in the operation.
    pub fn operation(&self, id: &str) -> Result<Operation, Error> {
        self.operation_at(id, None)
    }

    /// The same, with the service's address for a document that has none.
    pub(crate) fn operation_at(&self, id: &str, server: Option<&Url>) -> Result<Operation, Error> {
        let found = FoundOperation {
            server: server.cloned(),
            ..self.find(id)?
        };
        match self.format {
            Format::OpenApi3 => openapi3::operation(self, id, &found),
            Format::Swagger2 => swagger2::operation(self, id, &found),
        }
    }
}
