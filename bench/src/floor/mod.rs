//! What the servers and crates can do at best: bare loops that leave out everything an engine does.

pub mod disk;
pub mod parts;
pub mod transition;
