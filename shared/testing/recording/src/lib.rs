//! Instances as scenarios: [`mod@record`] makes a scenario of what an instance did, and [`replay`] runs an instance again
//! and compares.

pub mod record;
pub mod replay;
