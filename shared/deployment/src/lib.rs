//! Turns a document into a runnable definition, for every process. A document is read, once, with all
//! documents that it refers to; the documents of its functions are fetched; its functions are prepared; it
//! is stored.

pub mod fetch;
mod findings;
mod given;
mod loader;
mod reader;
mod store;

pub use fetch::Missing;
pub use findings::Text;
pub use given::GivenOr;
pub use loader::{Loader, RESOURCE_BYTES_MAX, Refusal};
pub use reader::{DocumentReader, Reader, Source};
pub use store::{Deployer, Outcome};
