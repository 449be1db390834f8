//! JSONPath event filters that refer to the whole event.
//!
//! The specifications of the JSONPath editions show `$.data.results` next to paths that begin in the payload. The event
//! itself decides: the payload is tried first.

use swirl_documents::source::Node;

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

#[cfg(test)]
mod tests {
    use super::first_member;

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
}
