//! Where the scalars of a YAML text stand, and how they are written, for those who change the text itself.

use std::collections::BTreeMap;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle};

/// The notation of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    Plain,
    Quoted,
    /// With `|` or `>`. The content begins on a later line than the key.
    Block,
}

/// A scalar as it stands in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub notation: Notation,
    /// With the quotes; of a block, only its content.
    pub bytes: Range<usize>,
}

/// The scalars of a YAML text, by line and column, as a [`Node`](crate::source::Node) has them. Nothing follows a syntax
/// error.
pub fn written(text: &str) -> BTreeMap<(usize, usize), Written> {
    let mut found = BTreeMap::new();
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else {
            break;
        };
        let Event::Scalar(_, style, ..) = event else {
            continue;
        };
        let (Some(start), Some(end)) = (span.start.byte_offset(), span.end.byte_offset()) else {
            continue;
        };
        let notation = match style {
            ScalarStyle::Plain => Notation::Plain,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Notation::Quoted,
            ScalarStyle::Literal | ScalarStyle::Folded => Notation::Block,
        };
        let bytes = start..end;
        let place = (span.start.line(), span.start.col() + 1);
        found.insert(place, Written { notation, bytes });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scalar_has_its_place() {
        let text = "é: 'it''s' # c\nb: two\n  lines\nc: |-\n\n  x\n   y\nd: [\"\\\"\", 1]\n";
        let found = written(text);
        let shown: Vec<_> = found
            .values()
            .map(|one| (one.notation, text[one.bytes.clone()].trim_end()))
            .collect();
        use Notation::{Block, Plain, Quoted};
        assert_eq!(
            shown,
            [
                (Plain, "é"),
                (Quoted, "'it''s'"),
                (Plain, "b"),
                (Plain, "two\n  lines"),
                (Plain, "c"),
                (Block, "x\n   y"),
                (Plain, "d"),
                (Quoted, "\"\\\"\""),
                (Plain, "1"),
            ]
        );
        let root = crate::source::parse(text.as_bytes(), &crate::source::Limits::default());
        let root = root.unwrap();
        for pointer in ["/é", "/b", "/c", "/d/0"] {
            let node = root.at(pointer).unwrap();
            assert!(
                found.contains_key(&(node.line(), node.column())),
                "{pointer}"
            );
        }
    }
}
