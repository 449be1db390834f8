//! The upper limits of the servers and crates: bare loops without everything that an engine does.

pub mod disk;
pub mod events;
pub mod parts;
pub mod transition;
