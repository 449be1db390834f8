//! If several parts of a term have several outputs, jq varies those of the left part fastest: `[(1,2) * (3,4)]` is
//! `[3,6,4,8]`, and `"\(1,2)-\(3,4)"` begins with `1-3`, `2-3`. jaq varies those of the right part fastest. Here such
//! terms become `(3,4) as $right | (1,2) * $right`, which both evaluate in the same order.

use jaq_core::load::Arena;
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::path::Part;

/// A name that no source can contain.
const RIGHT: &str = "$__right";
/// The maximum number of parts of a string that are bound. If more of them may have several outputs, the string stays
/// unchanged: hardly any of them actually does, because otherwise there would be more outputs than any limit permits.
const PARTS_MAX: usize = 64;

/// The number of terms that are examined to determine how many outputs another one has. Without a limit, a chain of
/// thousands would be traversed once for each of its links. A bigger term is assumed to have several, which changes
/// only its form.
const LOOK_MAX: usize = 64;

/// Functions that have at most one output if their arguments do, and otherwise as many as those.
const ONE: [&str; 58] = [
    "abs",
    "add",
    "all",
    "any",
    "ascii_downcase",
    "ascii_upcase",
    "ceil",
    "contains",
    "empty",
    "endswith",
    "explode",
    "fabs",
    "false",
    "first",
    "flatten",
    "floor",
    "from_entries",
    "fromdate",
    "fromdateiso8601",
    "fromjson",
    "gmtime",
    "group_by",
    "gsub",
    "has",
    "implode",
    "index",
    "inside",
    "join",
    "keys",
    "keys_unsorted",
    "last",
    "length",
    "ltrimstr",
    "map",
    "map_values",
    "max",
    "max_by",
    "min",
    "min_by",
    "mktime",
    "not",
    "now",
    "null",
    "reverse",
    "rindex",
    "round",
    "rtrimstr",
    "sort",
    "sort_by",
    "sqrt",
    "startswith",
    "sub",
    "test",
    "to_entries",
    "tojson",
    "tonumber",
    "tostring",
    "true",
];

/// Functions whose arguments may have any number of outputs.
const GATHERS: [&str; 12] = [
    "add",
    "all",
    "any",
    "first",
    "group_by",
    "last",
    "map",
    "map_values",
    "max_by",
    "min_by",
    "sort_by",
    "with_entries",
];

/// Gives a term jq's order of outputs. Its parts have it already.
pub(crate) fn as_in_jq<'s>(term: &mut Term<&'s str>, arena: &'s Arena) {
    match term {
        Term::BinOp(left, BinaryOp::Math(_) | BinaryOp::Cmp(_), right)
            if !has_one(left) && !has_one(right) =>
        {
            let right = std::mem::replace(&mut **right, Term::Var(RIGHT));
            bind(term, right, RIGHT);
        }
        Term::Str(_, parts) => {
            let terms = parts.iter_mut().filter_map(|part| match part {
                StrPart::Term(term) if !has_one(term) => Some(term),
                _ => None,
            });
            // The first one stays, because it varies fastest.
            let terms: Vec<&mut Term<&'s str>> = terms.skip(1).collect();
            if terms.len() > PARTS_MAX {
                return;
            }
            let mut bound = Vec::new();
            for (number, part) in terms.into_iter().enumerate() {
                let name: &'s str = arena.alloc(format!("$__part{number}"));
                bound.push((std::mem::replace(part, Term::Var(name)), name));
            }
            for (value, name) in bound {
                bind(term, value, name);
            }
        }
        _ => {}
    }
}

/// `value as $name | term`
fn bind<'s>(term: &mut Term<&'s str>, value: Term<&'s str>, name: &'s str) {
    let body = std::mem::take(term);
    let pipe = BinaryOp::Pipe(Some(Pattern::Var(name)));
    *term = Term::BinOp(Box::new(value), pipe, Box::new(body));
}

/// Whether a term obviously has at most one output.
fn has_one(term: &Term<&str>) -> bool {
    has_one_within(term, &mut { LOOK_MAX })
}

fn has_one_within(term: &Term<&str>, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else {
        return false;
    };
    *left = rest;
    let mut has_one = |term: &Term<&str>| has_one_within(term, left);
    match term {
        Term::Id | Term::Num(_) | Term::Var(_) | Term::Break(_) | Term::Arr(_) => true,
        Term::Recurse | Term::Label(..) | Term::Def(..) | Term::TryCatch(..) => false,
        Term::Neg(term) => has_one(term),
        Term::Str(_, parts) => parts.iter().all(|part| match part {
            StrPart::Term(term) => has_one(term),
            _ => true,
        }),
        Term::Obj(members) => members
            .iter()
            .all(|(key, value)| has_one(key) && value.as_ref().is_none_or(&mut has_one)),
        Term::BinOp(_, BinaryOp::Update, _) => true,
        Term::BinOp(_, BinaryOp::Assign | BinaryOp::UpdateMath(_), right) => has_one(right),
        Term::BinOp(_, BinaryOp::Comma | BinaryOp::UpdateAlt, _) => false,
        Term::BinOp(left, _, right) => has_one(left) && has_one(right),
        Term::Fold(..) => false,
        Term::IfThenElse(cases, otherwise) => {
            let cases = cases
                .iter()
                .all(|(test, then)| has_one(test) && has_one(then));
            cases && otherwise.as_ref().is_none_or(|term| has_one(term))
        }
        Term::Call(name, args) => {
            ONE.contains(name) && (GATHERS.contains(name) || args.iter().all(&mut has_one))
        }
        Term::Path(base, path) => {
            has_one(base)
                && path.0.iter().all(|(part, _)| match part {
                    Part::Index(index) => has_one(index),
                    Part::Range(None, None) => false,
                    Part::Range(start, end) => start.iter().chain(end).all(&mut has_one),
                })
        }
    }
}
