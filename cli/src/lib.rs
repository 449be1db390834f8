//! The swirl command.
