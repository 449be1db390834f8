//! The function types that call the outside world, one folder each.
//!
//! `expression` isn't here: the engine evaluates it. The table below is what deployment checks a
//! definition's function types against; adding a type means a folder and a line.

pub mod rest;

/// The function types that the worker calls, by their name in a definition (language 0.8,
/// "Function Definition"). Kept in alphabetical order.
pub const TYPES: [&str; 1] = ["rest"];

#[cfg(test)]
mod tests {
    use super::TYPES;

    #[test]
    fn the_table_is_in_order() {
        assert!(TYPES.is_sorted());
    }
}
