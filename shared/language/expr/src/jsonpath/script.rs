//! Scripts as indexes, `[(@.length-1)]`, from the time before JSONPath was standardised. Only those that count from the
//! end are supported.

/// The index that a script stands for, and the script's length with both parentheses.
pub(super) fn index(text: &str) -> Result<(i64, usize), String> {
    let none = || {
        "a script as index may only be of the form `(@.length-1)`; write a number, as `[-1]`"
            .to_owned()
    };
    let mut depth = 0usize;
    let mut end = None;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            end = Some(at);
            break;
        }
    }
    let end = end.ok_or_else(none)?;
    let bare: String = text[1..end]
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect();
    let back = bare
        .strip_prefix("@.length()-")
        .or_else(|| bare.strip_prefix("@.length-"))
        .ok_or_else(none)?;
    let back = back.parse::<i64>().ok().filter(|back| *back > 0);
    Ok((-back.ok_or_else(none)?, end + 1))
}
