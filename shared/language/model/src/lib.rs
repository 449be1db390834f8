//! Plain data: the canonical workflow, scopes, inputs, commands, events, ids.
//!
//! Nothing here decides or does anything. Document readers build a [`workflow::Workflow`]; the engine applies
//! [`event::Input`]s to a [`scope::Scope`], giving [`event::Event`]s and [`event::Command`]s; backends store and
//! transport all of these.

pub mod attribute;
pub mod cloudevent;
pub mod data;
pub mod difference;
pub mod error;
pub mod event;
pub mod file_names;
pub mod ids;
pub mod instance;
pub mod language;
pub mod merge;
pub mod messages;
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
