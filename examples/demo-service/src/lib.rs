//! A small HTTP service for the examples and tests to call.
