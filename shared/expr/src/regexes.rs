//! Regular expressions: `test`, `match` and what jq builds on them.
//!
//! Matching takes time linear in the text and in the pattern; their product is bounded, because a
//! search can't be stopped half-way. jq's own engine (Oniguruma) has look-around and
//! back-references, which can't be matched in linear time and are refused here.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use jaq_core::ValR;
use jaq_json::Val;
use regex::{Captures, Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};

use crate::meter;
use crate::value::{Error, V};

/// Memory of one compiled pattern.
const SIZE_MAX: usize = 1 << 20;
const PATTERN_BYTES_MAX: usize = 4096;
/// Positions of a pattern times bytes of a text: about a second in the worst case.
const PRODUCT_MAX: usize = 100_000_000;
/// Compiled patterns that a thread keeps.
const CACHE_MAX: usize = 64;

/// A pattern with its flags, ready for use.
struct Pattern {
    regex: Regex,
    positions: usize,
    global: bool,
    skip_empty: bool,
}

thread_local! {
    static CACHE: RefCell<HashMap<(String, String), Rc<Pattern>>> = RefCell::default();
}

/// `test`.
pub(crate) fn test(text: &V, pattern: &V, flags: &V) -> ValR<V> {
    let (text, pattern) = prepare(text, pattern, flags)?;
    if pattern.skip_empty {
        return Ok(V::from(pattern.find_all(text).next().is_some()));
    }
    Ok(V::from(pattern.regex.is_match(text)))
}

/// `[match]`.
pub(crate) fn matches(text: &V, pattern: &V, flags: &V) -> ValR<V> {
    let (text, pattern) = prepare(text, pattern, flags)?;
    let mut places = Places::new(text);
    Ok(pattern
        .find_all(text)
        .map(|found| pattern.shown(&found, &mut places))
        .collect())
}

/// The text in parts: strings between the matches, and the matches as `match` shows them.
pub(crate) fn parts(text: &V, pattern: &V, flags: &V) -> ValR<V> {
    let (text, pattern) = prepare(text, pattern, flags)?;
    let mut places = Places::new(text);
    let mut parts = Vec::new();
    let mut end = 0;
    for found in pattern.find_all(text) {
        if let Some(whole) = found.get(0) {
            parts.push(V::str(&text[end..whole.start()]));
            parts.push(pattern.shown(&found, &mut places));
            end = whole.end();
        }
    }
    parts.push(V::str(&text[end..]));
    Ok(V::array(parts))
}

fn prepare<'a>(text: &'a V, pattern: &V, flags: &V) -> Result<(&'a str, Rc<Pattern>), Error> {
    let text = text
        .as_str()
        .ok_or_else(|| text.fail("cannot be matched, as it is not a string"))?;
    // Pattern and flags may also come as an array.
    let (pattern, flags) = match (&pattern.val, &flags.val) {
        (Val::Arr(both), Val::Null) => {
            let item = |n: usize| V::new(both.get(n).cloned().unwrap_or_default());
            (item(0), item(1))
        }
        _ => (pattern.clone(), flags.clone()),
    };
    let source = pattern
        .as_str()
        .ok_or_else(|| pattern.fail("cannot be used as a regular expression: not a string"))?;
    let flags = match &flags.val {
        Val::Null => "",
        _ => flags
            .as_str()
            .ok_or_else(|| flags.fail("is not a string of flags"))?,
    };
    let key = (source.to_owned(), flags.to_owned());
    let cached = CACHE.with_borrow(|cache| cache.get(&key).cloned());
    let pattern = match cached {
        Some(pattern) => pattern,
        None => {
            // Compiling isn't cheap: look at the clock.
            meter::work(10_000);
            let pattern = Rc::new(compile(source, flags)?);
            CACHE.with_borrow_mut(|cache| {
                if cache.len() >= CACHE_MAX {
                    cache.clear();
                }
                cache.insert(key, Rc::clone(&pattern));
            });
            meter::work(10_000);
            pattern
        }
    };
    if pattern.positions.saturating_mul(text.len()) > PRODUCT_MAX {
        return Err(Error::str(format_args!(
            "the regular expression is too big for a text of {} bytes",
            text.len()
        )));
    }
    meter::work(text.len() / 16);
    Ok((text, pattern))
}

fn compile(source: &str, flags: &str) -> Result<Pattern, Error> {
    let fail = |why: &dyn std::fmt::Display| {
        Error::str(format_args!(
            "{source} (at offset 0) is not a valid regex: {why}"
        ))
    };
    if source.len() > PATTERN_BYTES_MAX {
        return Err(Error::str(format_args!(
            "a regular expression may have {PATTERN_BYTES_MAX} bytes, this one has {}",
            source.len()
        )));
    }
    let mut builder = RegexBuilder::new(source);
    builder
        .size_limit(SIZE_MAX)
        .dfa_size_limit(SIZE_MAX)
        .nest_limit(100);
    let mut syntax = regex_syntax::ParserBuilder::new();
    syntax.nest_limit(100);
    let (mut global, mut skip_empty) = (false, false);
    for flag in flags.chars() {
        match flag {
            'g' => global = true,
            'n' => skip_empty = true,
            'i' => {
                builder.case_insensitive(true);
            }
            'x' => {
                builder.ignore_whitespace(true);
                syntax.ignore_whitespace(true);
            }
            'p' => {
                builder.dot_matches_new_line(true);
            }
            // `^` and `$` mean the ends of the text in any case; the longest match isn't sought.
            's' | 'l' => {}
            _ => {
                return Err(Error::str(format_args!(
                    "{flags} is not a valid modifier string"
                )));
            }
        }
    }
    let positions = positions(&syntax.build().parse(source).map_err(|e| fail(&e))?);
    if positions > PRODUCT_MAX {
        return Err(fail(&"its repetitions are too many"));
    }
    let regex = builder.build().map_err(|e| fail(&e))?;
    Ok(Pattern {
        regex,
        positions,
        global,
        skip_empty,
    })
}

/// How many places in the pattern a search may be in at once, at most.
fn positions(hir: &Hir) -> usize {
    let all = |parts: &[Hir]| parts.iter().map(positions).fold(1, usize::saturating_add);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(_) => 4,
        HirKind::Capture(capture) => positions(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => all(parts),
        HirKind::Repetition(repetition) => {
            let times = repetition
                .max
                .unwrap_or(repetition.min.saturating_add(1))
                .max(1);
            positions(&repetition.sub)
                .saturating_add(1)
                .saturating_mul(times as usize)
        }
    }
}

impl Pattern {
    fn find_all<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Captures<'a>> {
        let most = if self.global { usize::MAX } else { 1 };
        let all = self.regex.captures_iter(text).inspect(|found| {
            // A search may have gone through the whole rest of the text.
            meter::work(64);
            meter::charge(64 * found.len());
        });
        all.filter(|found| !(self.skip_empty && found[0].is_empty()))
            .take(most)
    }

    /// As `match` shows it.
    fn shown(&self, found: &Captures<'_>, places: &mut Places<'_>) -> V {
        let null = V::null;
        let part = |part: Option<regex::Match<'_>>, places: &mut Places<'_>| match part {
            Some(part) => [
                ("offset", V::from(places.chars_at(part.start()))),
                ("length", V::from(part.as_str().chars().count())),
                ("string", V::str(part.as_str())),
            ],
            None => [
                ("offset", V::from(-1isize)),
                ("length", V::from(0usize)),
                ("string", null()),
            ],
        };
        let [offset, length, string] = part(found.get(0), places);
        let captures = self
            .regex
            .capture_names()
            .enumerate()
            .skip(1)
            .map(|(n, name)| {
                let [offset, length, string] = part(found.get(n), places);
                V::object([
                    offset,
                    length,
                    string,
                    ("name", name.map_or_else(null, V::str)),
                ])
            });
        let captures = captures.collect();
        V::object([offset, length, string, ("captures", captures)])
    }
}

/// Offsets in bytes to offsets in characters, fast for places that follow each other.
struct Places<'a> {
    text: &'a str,
    byte: usize,
    chars: usize,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Places<'a> {
        Places {
            text,
            byte: 0,
            chars: 0,
        }
    }

    fn chars_at(&mut self, byte: usize) -> usize {
        if byte >= self.byte {
            self.chars += self.text[self.byte..byte].chars().count();
        } else {
            // Groups may lie before their predecessor's start.
            self.chars -= self.text[byte..self.byte].chars().count();
        }
        self.byte = byte;
        self.chars
    }
}
