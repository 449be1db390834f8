//! Workflow expressions: compiled once, evaluated within bounds.
