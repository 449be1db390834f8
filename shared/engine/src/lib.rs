//! The pure workflow engine: step and apply.
