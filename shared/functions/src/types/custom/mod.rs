//! Custom function types: every `type` that the language doesn't define.
//!
//! Language 0.8, "Defining custom function types". Such a type is implemented by a *connector* that the operator of a
//! runtime configures ([`Connectors`]): a service that takes calls as JSON over HTTP, a command that takes them on
//! stdin, a NATS subject, or a WebAssembly module. A definition can choose a connector but not define one. A type
//! without a connector is refused at deployment, except for the built-in ones: `sysout`, `rest:METHOD:URL` and `http`.

mod builtin;
mod caller;
mod connectors;
pub(crate) mod exec;
mod function;
#[cfg(feature = "wasm")]
mod wasm;
mod wire;

pub use builtin::{SYSOUT_TARGET, is_sysout};
pub(crate) use caller::CustomCaller;
pub use connectors::{Connector, ConnectorError, Connectors};
pub(crate) use function::TYPE;
pub use function::refused;
