//! Compares the meaning of two documents.

use swirl_documents::source::{Node, NodeKind};

/// The pointer to the first value that differs: in its type, in its notation (`1.0` is not `1` where it is a version),
/// or in the order of its keys.
pub fn difference<'n>(one: &'n Node, other: &'n Node) -> Option<&'n str> {
    let here = Some(one.pointer());
    if one.kind() != other.kind() || one.raw() != other.raw() {
        return here;
    }
    match one.kind() {
        NodeKind::Array => {
            let (ones, others) = (one.items()?, other.items()?);
            if ones.len() != others.len() {
                return here;
            }
            ones.iter()
                .zip(others)
                .find_map(|(one, other)| difference(one, other))
        }
        NodeKind::Object => {
            let (ones, others) = (one.members()?, other.members()?);
            let keys = |members: &'n [swirl_documents::source::Member]| {
                members.iter().map(|member| member.key())
            };
            if !keys(ones).eq(keys(others)) {
                return here;
            }
            let mut pairs = ones.iter().zip(others);
            pairs.find_map(|(one, other)| difference(one.value(), other.value()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_documents::source::{Limits, parse};

    #[test]
    fn differences() {
        for (one, other, pointer) in [
            ("a: 1", "a: 1 # x", None),
            ("a: 'x'", "a: x", None),
            ("a: 1.0", "a: 1", Some("/a")),
            ("a: '1'", "a: 1", Some("/a")),
            ("a: [1, 2]", "a: [1]", Some("/a")),
            ("a: [1, {b: 2}]", "a: [1, {b: 3}]", Some("/a/1/b")),
            ("a: 1\nb: 2", "b: 2\na: 1", Some("")),
        ] {
            let parse = |text: &str| parse(text.as_bytes(), &Limits::default()).unwrap();
            let (before, after) = (parse(one), parse(other));
            assert_eq!(difference(&before, &after), pointer, "{one} / {other}");
        }
    }
}
