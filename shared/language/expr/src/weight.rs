//! The memory that a compiled regular expression takes, estimated from its text before it is compiled.
//!
//! The estimate is the same on any machine, so that a definition that was accepted by one process is accepted by all.
//! It is within a small factor of what the engines allocate (`tests/patterns.rs`).

use fancy_regex::{Absent, Expr};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

/// The maximum weight of one pattern, in bytes. The engines hold about three times the size of an automaton, for which
/// the limit is 1 MiB.
pub(crate) const WEIGHT_MAX: usize = 3 << 20;

/// The maximum approximate memory in bytes of all regular expressions in a definition, or in one JSON Schema.
pub const PATTERNS_MAX: usize = 16 << 20;

/// The bytes that an engine needs for any pattern.
const ENGINE: usize = 3 << 10;
const STEP: usize = 64;
/// A range of characters that are one byte in a text, and one of longer characters.
const SHORT_RANGE: usize = 32;
const LONG_RANGE: usize = 72;
/// A class that has longer characters.
const LONG_CLASS: usize = 1000;

/// The weight of a pattern, and 0 if it isn't valid.
pub(crate) fn weight(source: &str) -> usize {
    if let Ok(hir) = ParserBuilder::new().nest_limit(100).build().parse(source) {
        return linear(&hir);
    }
    match Expr::parse_tree(source) {
        Ok(tree) => ENGINE.saturating_add(part(&tree.expr).weight),
        Err(_) => 0,
    }
}

/// The weight of a pattern of a JSON Schema, in which `\w` and `\d` are ASCII, except next to look-around.
pub(crate) fn schema_weight(source: &str) -> usize {
    let mut plain = String::with_capacity(source.len());
    let mut rest = source.chars();
    while let Some(char) = rest.next() {
        match (char, char == '\\') {
            (_, false) => plain.push(char),
            _ => match rest.next() {
                Some('w') => plain.push_str("[0-9A-Za-z_]"),
                Some('d') => plain.push_str("[0-9]"),
                next => {
                    plain.push(char);
                    plain.extend(next);
                }
            },
        }
    }
    match ParserBuilder::new().build().parse(&plain) {
        Ok(hir) => linear(&hir),
        Err(_) => weight(source),
    }
}

/// The weight of a pattern that is matched in linear time.
pub(crate) fn linear(hir: &Hir) -> usize {
    ENGINE.saturating_add(of(hir))
}

fn of(hir: &Hir) -> usize {
    let all = |parts: &[Hir]| parts.iter().map(of).fold(STEP, usize::saturating_add);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => STEP,
        HirKind::Literal(literal) => literal.0.len().saturating_mul(STEP),
        HirKind::Class(Class::Unicode(class)) => class_weight(class),
        HirKind::Class(Class::Bytes(class)) => {
            class.ranges().len().saturating_mul(SHORT_RANGE) + STEP
        }
        HirKind::Capture(capture) => of(&capture.sub).saturating_add(2 * STEP),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => all(parts),
        HirKind::Repetition(repetition) => {
            let times = times(repetition.min, repetition.max);
            of(&repetition.sub)
                .saturating_add(STEP)
                .saturating_mul(times)
        }
    }
}

fn class_weight(class: &ClassUnicode) -> usize {
    let is_long = |range: &&regex_syntax::hir::ClassUnicodeRange| !range.end().is_ascii();
    let long = class.ranges().iter().filter(is_long).count();
    let short = class.ranges().len() - long;
    let more = if long > 0 { LONG_CLASS } else { 0 };
    STEP + more + long * LONG_RANGE + short * SHORT_RANGE
}

/// The number of copies that a repetition is compiled to.
fn times(min: u32, max: Option<u32>) -> usize {
    max.unwrap_or(min.saturating_add(1)).max(1) as usize
}

/// A part of a pattern that needs backtracking.
#[derive(Clone, Copy, Default)]
struct PatternPart {
    weight: usize,
    /// It isn't matched by a linear engine of its own.
    backtracks: bool,
    is_literal: bool,
}

impl PatternPart {
    fn linear(weight: usize) -> PatternPart {
        PatternPart {
            weight,
            ..PatternPart::default()
        }
    }

    fn backtracking(weight: usize) -> PatternPart {
        PatternPart {
            weight,
            backtracks: true,
            is_literal: false,
        }
    }

    /// With the engine that it gets between parts that backtrack.
    fn alone(self) -> usize {
        let engine = match self.backtracks || self.is_literal {
            true => 0,
            false => ENGINE,
        };
        self.weight.saturating_add(engine)
    }
}

fn part(expr: &Expr) -> PatternPart {
    match expr {
        Expr::Concat(list) | Expr::Alt(list) => {
            let parts: Vec<PatternPart> = list.iter().map(part).collect();
            let backtracks = parts.iter().any(|part| part.backtracks);
            let sum = |weight: fn(PatternPart) -> usize| {
                let weights = parts.iter().map(|part| weight(*part));
                weights.fold(STEP, usize::saturating_add)
            };
            match backtracks {
                true => PatternPart::backtracking(sum(PatternPart::alone)),
                false => PatternPart::linear(sum(|part| part.weight)),
            }
        }
        Expr::Literal { val, casei } => PatternPart {
            weight: val
                .len()
                .saturating_mul(if *casei { 2 * STEP } else { STEP }),
            backtracks: false,
            is_literal: !casei,
        },
        Expr::Any { .. } => PatternPart::linear(LONG_CLASS),
        Expr::Delegate { inner, casei } => {
            let parsed = ParserBuilder::new()
                .case_insensitive(*casei)
                .build()
                .parse(inner);
            PatternPart::linear(parsed.map_or(WEIGHT_MAX / 64, |hir| of(&hir)))
        }
        Expr::Group(child) => {
            let child = part(child);
            PatternPart {
                weight: child.weight.saturating_add(2 * STEP),
                is_literal: false,
                ..child
            }
        }
        Expr::Repeat { child, lo, hi, .. } => {
            let child = part(child);
            let weight = child.weight.saturating_add(STEP);
            if child.backtracks {
                // The attempts are counted, so there is one copy.
                return PatternPart::backtracking(weight);
            }
            let most = (*hi != usize::MAX).then_some(*hi);
            let times = most.unwrap_or(lo.saturating_add(1)).max(1);
            PatternPart::linear(weight.saturating_mul(times))
        }
        Expr::LookAround(child, _)
        | Expr::AtomicGroup(child)
        | Expr::Absent(Absent::Repeater(child) | Absent::Stopper(child)) => {
            PatternPart::backtracking(part(child).alone().saturating_add(STEP))
        }
        Expr::Conditional {
            condition,
            true_branch,
            false_branch,
        } => {
            let parts = [condition, true_branch, false_branch].map(|expr| part(expr).alone());
            PatternPart::backtracking(parts.into_iter().fold(STEP, usize::saturating_add))
        }
        Expr::Absent(Absent::Expression { absent, exp }) => {
            let parts = [absent, exp].map(|expr| part(expr).alone());
            PatternPart::backtracking(parts.into_iter().fold(STEP, usize::saturating_add))
        }
        Expr::DefineGroup { definitions } => part(definitions),
        Expr::Empty | Expr::Assertion(_) => PatternPart::linear(STEP),
        _ => PatternPart::backtracking(STEP),
    }
}
