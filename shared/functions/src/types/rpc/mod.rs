//! `rpc` functions: methods of gRPC services that a proto file describes.
//!
//! Language 0.8, "Using Functions for RPC Service Invocations". The file is compiled at deployment,
//! without generated code: messages are handled by their descriptions in the file.
//!
//! # The server
//!
//! A proto file doesn't say where its services listen. The function's `metadata.server` does
//! (`grpc://host:port`, `grpcs://host:port` for TLS), or the operator's setting for the service
//! ([`Servers`]), which takes precedence: addresses differ from one installation to the next.
//!
//! # Arguments and results
//!
//! Both follow the JSON mapping of protobuf. The arguments are the fields of the request message;
//! one that the message doesn't have is an error. A method that takes a stream has the one argument
//! `messages`, a list. A method that answers with a stream gives the list of its messages.
//!
//! # Errors
//!
//! The code is the name of gRPC's status, such as `NOT_FOUND`.

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
pub use server::{Server, ServerError, Servers, ServersError};
pub(crate) use status::{can_pass, name};
