//! `rpc` functions: methods of gRPC services that are described by a proto file.
//!
//! Language 0.8, "Using Functions for RPC Service Invocations". The file is compiled at deployment,
//! without generated code: messages are handled by their descriptions in the file.
//!
//! # The server
//!
//! A proto file doesn't state where its services listen. The function's `metadata.server` does (`grpc://host:port`, or
//! `grpcs://host:port` for TLS), or the operator's setting for the service (`functions.servers`). The operator's setting takes
//! precedence, because addresses differ between installations.
//!
//! # Arguments and results
//!
//! Both follow protobuf's JSON mapping. The arguments are the fields of the request message; unknown fields are an
//! error. A method that takes a stream has the single argument `messages`, a list. A method that answers with a stream
//! returns the list of its messages.
//!
//! # Errors
//!
//! The code is the name of the gRPC status, such as `NOT_FOUND`.

mod caller;
mod channels;
mod check;
mod codec;
mod function;
mod google;
mod message;
mod number;
mod proto;
mod server;
mod sources;
mod status;

pub(crate) use caller::RpcCaller;
pub(crate) use function::{TYPE, imports};
pub use server::{Server, ServerError};
pub(crate) use status::{can_pass, name};
