//! Plain data: the canonical workflow, scopes, inputs, commands, events, ids.
//!
//! Nothing here decides or does anything. Readers of documents make a [`workflow::Workflow`], the
//! engine turns [`event::Input`]s into [`event::Event`]s and [`event::Command`]s over a
//! [`scope::Scope`], backends keep and carry these.

pub mod attribute;
pub mod cloudevent;
pub mod data;
pub mod difference;
pub mod error;
pub mod event;
pub mod ids;
pub mod instance;
pub mod language;
pub mod merge;
mod recording;
pub mod redact;
pub mod schedule;
pub mod scope;
mod subscription;
pub mod time;
pub mod trace;
pub mod workflow;

pub use cloudevent::CloudEvent;
pub use data::Data;
pub use error::WorkflowError;
