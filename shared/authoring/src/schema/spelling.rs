//! The spellings of a name, because the texts of the oldest editions mix them.

/// `onEvents`, `OnEvents` and `on-events`.
pub(super) fn spellings(name: &str) -> Vec<String> {
    let mut dashed = String::new();
    for (at, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && at > 0 {
            dashed.push('-');
        }
        dashed.push(c.to_ascii_lowercase());
    }
    let mut letters = name.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    let capital: String = first.into_iter().chain(letters).collect();
    vec![name.to_owned(), capital, dashed]
}
