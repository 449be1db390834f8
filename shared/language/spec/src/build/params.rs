//! The names of iteration parameters.

/// The default name of the parameter (docs/language.md#decision-34).
pub(crate) const DEFAULT_PARAM: &str = "item";

/// The name in `${ .name }`, `.name` or `$name`.
pub(crate) fn meant_param(text: &str) -> Option<&str> {
    let text = text.trim();
    let inner = text
        .strip_prefix("${")
        .and_then(|text| text.strip_suffix('}'));
    let name = inner.unwrap_or(text).trim();
    let name = name.strip_prefix(['.', '$']).unwrap_or(name);
    is_variable(name).then_some(name)
}

/// A name that works as `$name`.
pub(crate) fn is_variable(name: &str) -> bool {
    const RESERVED: [&str; 6] = ["CONST", "SECRETS", "WORKFLOW", "args", "ENV", "__loc__"];
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !RESERVED.contains(&name)
}
