//! Turns a document into a runnable definition, for every process. There are four steps: read the document once,
//! together with all documents that it refers to; fetch the documents of its functions; prepare the functions; store
//! the definition.

pub mod fetch;
mod findings;
mod given;
mod loader;
mod reader;
mod store;

pub use fetch::Missing;
pub use findings::Locations;
pub use given::{FunctionsError, GivenOr, functions_file, functions_in};
pub use loader::{Loaded, Loader, RESOURCE_BYTES_MAX, Refusal};
pub use reader::{DocumentReader, ReadDocument, Reader, Source};
pub use store::{Checked, Deployer, Outcome};
pub use swirl_spec::resource::NAMESPACE_FUNCTIONS_URI;
