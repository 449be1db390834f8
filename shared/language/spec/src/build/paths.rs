//! The names in the paths of the JSONPath editions.
//!
//! An event filter may refer to the whole event: their specifications show `$.data.results` next to paths that begin in
//! the payload. The event itself decides: the payload is tried first.

use swirl_documents::source::Node;
use swirl_model::workflow::{Under, UnderWhen};

use super::ctx::Ctx;

/// `data`, and the context attributes that every CloudEvent may have.
const PARTS: [&str; 9] = [
    "data",
    "datacontenttype",
    "dataschema",
    "id",
    "source",
    "specversion",
    "subject",
    "time",
    "type",
];

/// Whether the path begins with a part of an event: `data`, or an attribute that CloudEvents define or that an event in
/// the document is correlated by.
pub(crate) fn names_part_of_event(ctx: &Ctx<'_>, node: &Node) -> bool {
    let Some(first) = node.as_str().and_then(first_member) else {
        return false;
    };
    let mut rules = ctx
        .workflow
        .events
        .iter()
        .flat_map(|event| &event.correlation);
    PARTS.contains(&first) || rules.any(|rule| &*rule.attribute == first)
}

/// `a` for `$.a.b`, `{{ $['a'] }}` and `$.a[0]`.
fn first_member(path: &str) -> Option<&str> {
    let path = path.trim();
    let inner = path
        .strip_prefix("{{")
        .and_then(|path| path.strip_suffix("}}"));
    let path = inner.map_or(path, str::trim).strip_prefix('$')?;
    if let Some(quoted) = path.strip_prefix('[') {
        let quote = quoted.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        return quoted[1..].split(quote).next();
    }
    let name = path.strip_prefix('.')?;
    let end = name.find(|c: char| !c.is_alphanumeric());
    Some(&name[..end.unwrap_or(name.len())]).filter(|name| !name.is_empty())
}

/// The value of a plain member path is stored under the member's name (docs/language.md#decision-18).
pub(crate) fn under(path: Option<&Node>) -> Option<Under> {
    let key = member_name(path?.as_str()?)?;
    Some(Under {
        key: key.into(),
        when: UnderWhen::Always,
    })
}

/// The last name of a path that consists only of member names, as in `$.customer.name`.
pub(crate) fn member_name(path: &str) -> Option<String> {
    let path = path.trim();
    let path = path
        .strip_prefix("{{")
        .and_then(|path| path.strip_suffix("}}"))
        .map_or(path, str::trim);
    let mut rest = path.strip_prefix('$')?;
    let mut last = None;
    while !rest.is_empty() {
        let name;
        if let Some(inner) = rest.strip_prefix("['").or_else(|| rest.strip_prefix("[\"")) {
            let sign = rest.as_bytes().get(1).map(|&byte| byte as char)?;
            let end = inner.find(sign)?;
            name = &inner[..end];
            rest = inner[end + 1..].strip_prefix(']')?;
        } else {
            let inner = rest.strip_prefix('.')?;
            let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            let end = inner.find(|c| !is_letter(c)).unwrap_or(inner.len());
            (name, rest) = inner.split_at(end);
        }
        if name.is_empty() {
            return None;
        }
        last = Some(name);
    }
    last.map(str::to_owned)
}

/// Whether a text among data is meant as a path, also a broken one: it is `$`, or continues like a path.
pub(crate) fn is_path(text: &str) -> bool {
    let Some(rest) = text.trim().strip_prefix('$') else {
        return false;
    };
    match rest.chars().next() {
        None | Some('[') => true,
        // `$.5` is an amount of money.
        Some('.') => !rest[1..].starts_with(|c: char| c.is_ascii_digit()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{first_member, is_path, member_name};

    #[test]
    fn the_member_that_a_path_begins_with() {
        for (path, name) in [
            ("$.data.results", Some("data")),
            ("{{ $.data }}", Some("data")),
            ("$['subject']", Some("subject")),
            ("$.data[0]", Some("data")),
            ("$.data[?(@.a > 1)]", Some("data")),
            ("$", None),
            ("$..data", None),
            ("$[0]", None),
            ("data", None),
        ] {
            assert_eq!(first_member(path), name, "{path}");
        }
    }

    #[test]
    fn plain_member_paths() {
        for (path, name) in [
            ("$.customer", Some("customer")),
            (" $.payload.greeting ", Some("greeting")),
            ("{{ $.a.b-c }}", Some("b-c")),
            ("$['a b']", Some("a b")),
            ("$['a']['c']", Some("c")),
            ("$.a[\"b\"]", Some("b")),
            ("$", None),
            ("$.", None),
            ("$..a", None),
            ("$.*", None),
            ("$.a[0]", None),
            ("$.a[*]", None),
            ("$.a[*].b", None),
            ("$.a[?(@.b)]", None),
            ("$.a[?(@.b > 1)]", None),
            ("$.a.length()", None),
            ("a", None),
            ("$['a", None),
        ] {
            assert_eq!(member_name(path).as_deref(), name, "{path}");
        }
    }

    #[test]
    fn paths_and_other_texts() {
        for text in [
            "$",
            "$.a",
            "$['a']",
            " $..a ",
            "$.orders[?(@.x == true)]",
            "$.",
        ] {
            assert!(is_path(text), "{text}");
        }
        for text in ["", "a", "$5", "$.50", "$a", "a $.b", "$$"] {
            assert!(!is_path(text), "{text}");
        }
    }
}
