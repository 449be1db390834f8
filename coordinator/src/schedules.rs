//! Schedules.
