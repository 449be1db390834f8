//! Embedded backends: in memory, and durable in one folder.
