//! Finds the keys that may follow at the cursor in an expression, from the data at that point and the path before the
//! cursor.

use super::shape::{Shape, Step, is_of_key, path, result};

/// jq functions that apply an argument to each item of their input.
const OF_ITEMS: [&str; 8] = [
    "all",
    "any",
    "group_by",
    "map",
    "max_by",
    "min_by",
    "sort_by",
    "unique_by",
];

/// jq functions whose arguments see the function's input.
const OF_INPUT: [&str; 16] = [
    "contains",
    "del",
    "endswith",
    "first",
    "has",
    "index",
    "inside",
    "isempty",
    "join",
    "last",
    "limit",
    "ltrimstr",
    "rtrimstr",
    "select",
    "split",
    "startswith",
];

/// An open part of an expression: a bracket, an interpolation in a text, or a condition.
struct Open {
    /// The shape of `.` at its beginning; `None` if unknown.
    begin: Option<Shape>,
    /// The shape of `.` after the last `|`.
    now: Option<Shape>,
    /// The byte position at which the part after the last `|` begins.
    start: usize,
    kind: KeyKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Bracket,
    Object,
    /// An interpolation in a text, which continues after it.
    Insertion,
    Condition,
}

/// The keys that may follow the path at the end of `inner`, and how many bytes of the last key are typed already.
/// `None` if there is no path, or its data is unknown.
pub fn offered<'i>(inner: &'i str, over: &Shape) -> Option<(Vec<String>, &'i str)> {
    let (begin, typed) = path_at_end(inner)?;
    let written = &inner[begin..inner.len() - typed.len()];
    let steps = path(written)?;
    let data = match written.starts_with('$') {
        true => over.clone(),
        false => here(&inner[..begin], over)?,
    };
    let keys = data.at(&steps)?.keys().map(str::to_owned).collect();
    Some((keys, typed))
}

/// The path after a variable, and the typed part of its last key.
pub fn after_variable(rest: &str) -> Option<(Vec<Step>, &str)> {
    let start = rest.rfind(|c| !is_of_key(c)).map_or(0, |at| at + 1);
    let (written, typed) = rest.split_at(start);
    let written = written.strip_suffix('.')?;
    let steps = match written {
        "" => Vec::new(),
        written => path(written)?,
    };
    Some((steps, typed))
}

/// The beginning of the path that ends at the end of the text, and the key that is being typed.
fn path_at_end(text: &str) -> Option<(usize, &str)> {
    let key = |text: &str| text.len() - text.chars().rev().take_while(|c| is_of_key(*c)).count();
    let typed = key(text);
    let mut begin = text[..typed].strip_suffix('.')?.len();
    loop {
        let before = text[..begin].trim_end_matches('?');
        begin = match before.chars().next_back() {
            Some(']') => before.rfind('[')?,
            Some('"') => {
                let open = before[..before.len() - 1].rfind('"')?;
                before[..open].strip_suffix('.')?.len()
            }
            // `.` alone, before brackets.
            Some('.') => before.len() - 1,
            Some('$') => return Some((before.len() - 1, &text[typed..])),
            Some(c) if is_of_key(c) => {
                let start = key(before);
                before[..start].strip_suffix('.')?.len()
            }
            // The result of something else.
            Some(')' | '}') => return None,
            _ => return Some((begin, &text[typed..])),
        };
    }
}

/// The shape of `.` at the end of a jq text.
fn here(text: &str, over: &Shape) -> Option<Shape> {
    let open = |now: Option<Shape>, start, kind| Open {
        begin: now.clone(),
        now,
        start,
        kind,
    };
    let mut stack = vec![open(Some(over.clone()), 0, KeyKind::Bracket)];
    let mut is_text = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let top = stack.last_mut()?;
        if is_text {
            match c {
                '"' => is_text = false,
                '\\' if chars.next_if(|(_, c)| *c == '(').is_some() => {
                    let now = top.now.clone();
                    stack.push(open(now, at + 2, KeyKind::Insertion));
                    is_text = false;
                }
                '\\' => drop(chars.next()),
                _ => {}
            }
            continue;
        }
        match c {
            '"' => is_text = true,
            '(' => {
                let now = argument(&text[top.start..at], top.now.as_ref());
                stack.push(open(now, at + 1, KeyKind::Bracket));
            }
            '[' => {
                let now = top.now.clone();
                stack.push(open(now, at + 1, KeyKind::Bracket));
            }
            '{' => {
                let now = top.now.clone();
                stack.push(open(now, at + 1, KeyKind::Object));
            }
            ')' | ']' | '}' => {
                is_text = stack.pop()?.kind == KeyKind::Insertion;
            }
            '|' if text[at..].starts_with("|=") => (top.begin, top.now) = (None, None),
            '|' => {
                top.now = top
                    .now
                    .as_ref()
                    .and_then(|now| piped(&text[top.start..at], now));
                top.start = at + 1;
            }
            ',' if top.kind == KeyKind::Object => top.begin_anew(at + 1),
            ';' => top.begin_anew(at + 1),
            ':' if top.kind == KeyKind::Object => top.start = at + 1,
            c if c.is_ascii_alphabetic() && is_word_begin(&text[..at]) => {
                let end = text[at..].find(|c| !is_of_key(c));
                let end = end.map_or(text.len(), |end| at + end);
                match &text[at..end] {
                    "if" => {
                        let now = top.now.clone();
                        stack.push(open(now, end, KeyKind::Condition));
                    }
                    "then" | "elif" | "else" if top.kind == KeyKind::Condition => {
                        top.begin_anew(end);
                    }
                    "end" if top.kind == KeyKind::Condition => drop(stack.pop()),
                    "def" | "catch" => (top.begin, top.now) = (None, None),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    // There are no paths inside a text.
    let top = stack.pop()?;
    if is_text { None } else { top.now }
}

impl Open {
    fn begin_anew(&mut self, start: usize) {
        self.now.clone_from(&self.begin);
        self.start = start;
    }
}

fn is_word_begin(before: &str) -> bool {
    let last = before.chars().next_back();
    !last.is_some_and(|c| is_of_key(c) || matches!(c, '.' | '$' | '@' | ':'))
}

/// The shape of `.` in an argument of a function. `before` ends with the function's name, or without one.
fn argument(before: &str, now: Option<&Shape>) -> Option<Shape> {
    let before = before.trim_end();
    let start = before.rfind(|c| !is_of_key(c)).map_or(0, |at| at + 1);
    let name = &before[start..];
    let now = now?;
    match name {
        "and" | "or" | "not" | "if" | "then" | "elif" | "else" | "as" => Some(now.clone()),
        // A variable, in `reduce` or `foreach`.
        _ if before[..start].ends_with('$') => None,
        "" => Some(now.clone()),
        name if OF_ITEMS.contains(&name) => now.at(&[Step::Item]).cloned(),
        name if OF_INPUT.contains(&name) => Some(now.clone()),
        _ => None,
    }
}

/// The shape of `.` after a `|`, from the text before it.
fn piped(before: &str, now: &Shape) -> Option<Shape> {
    const SAME: [&str; 6] = [
        "reverse",
        "select(",
        "sort",
        "sort_by(",
        "unique",
        "unique_by(",
    ];
    let before = before.trim();
    let binds = before.rsplit_once(" as ").map(|(_, name)| name.trim());
    if binds.is_some_and(|name| name.starts_with('$') && name[1..].chars().all(is_of_key)) {
        return Some(now.clone());
    }
    let is_call = |name: &&str| match name.strip_suffix('(') {
        Some(_) => before.starts_with(*name) && before.find(')') == Some(before.len() - 1),
        None => before == *name,
    };
    if SAME.iter().any(is_call) {
        return Some(now.clone());
    }
    match path(before) {
        Some(steps) => now.at(&steps).cloned(),
        None => Some(result(before, now)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keys(inner: &str) -> String {
        let line = json!({"properties": {"price": {}, "count": {}}});
        let schema = json!({"properties": {
            "order": {"properties": {"id": {}, "lines": {"items": line}}},
            "vip": {},
        }});
        match offered(inner, &Shape::of_schema(&schema)) {
            Some((keys, typed)) if !keys.is_empty() => {
                format!("{} < {typed}", keys.join(" "))
            }
            _ => "-".to_owned(),
        }
    }

    #[test]
    fn keys_are_derived_from_the_preceding_text() {
        const ALL: &str = "order vip < ";
        const LINE: &str = "count price < ";
        for (inner, offered) in [
            (".", ALL),
            (".or", "order vip < or"),
            ("1 + .", ALL),
            ("(.vip and .", ALL),
            ("{a: .order.id, b: .", ALL),
            ("[.vip, .", ALL),
            (".order.", "id lines < "),
            (".order.li", "id lines < li"),
            (".order.lines[0].", LINE),
            (".order.lines[].p", "count price < p"),
            (".order | .", "id lines < "),
            (".order.lines[] | .", LINE),
            (".order.lines | map(.", LINE),
            (".order.lines | map(select(.", LINE),
            (".order.lines | sort_by(.price) | .[0].", LINE),
            (".order as $o | .", ALL),
            ("{n: .order} | .n.", "id lines < "),
            ("if .vip then .order | .id else .", ALL),
            ("if .order | .id then 1 end | .", "-"),
            ("\"a \\(.order.", "id lines < "),
            (".order.lines[.", ALL),
            ("{a: (.order | .id), b: .", ALL),
            ("$.order.", "id lines < "),
            ("$.order.lines[*].", LINE),
            // Nothing is known there.
            ("", "-"),
            ("vip", "-"),
            (".nothing.", "-"),
            ("\"a .", "-"),
            ("$x.", "-"),
            ("first.", "-"),
            ("(.order).", "-"),
            (".order | keys | .[0].", "-"),
            ("reduce .order.lines[] as $l (0; . + .", "-"),
            ("with_entries(.", "-"),
            (".order |= .", "-"),
            ("def f: .", "-"),
        ] {
            assert_eq!(keys(inner), offered, "{inner}");
        }
    }
}
