//! Regular expressions: `test`, `match`, and the functions that jq defines by them.
//!
//! Matching takes time linear in the text and in the pattern. Their product is bounded, because a search can't be
//! interrupted. jq's own engine (Oniguruma) has look-around and back-references, which can't be matched in linear time.
//! Patterns that need them use a backtracking engine, with a limit on the number of attempts and on the length of the
//! text.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use jaq_core::ValR;
use jaq_json::Val;
use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};

use crate::value::{Error, V};
use crate::weight::{WEIGHT_MAX, linear, weight};
use crate::{alloc, meter};

/// The maximum memory of a compiled pattern.
const SIZE_MAX: usize = 1 << 20;
const PATTERN_BYTES_MAX: usize = 4096;
/// How much of a pattern is quoted in a message, in characters.
const SHOWN_MAX: usize = 500;
/// The maximum product of positions in a pattern and bytes of a text: about a second in the worst case.
const PRODUCT_MAX: usize = 100_000_000;
/// The maximum text length and number of attempts for the backtracking engine. Each attempt may scan the whole text.
const BACKTRACKING_BYTES_MAX: usize = 32 << 10;
const TRIES_MAX: usize = 100_000;
/// The number of compiled patterns that a thread caches, and the bytes that they hold.
const CACHE_MAX: usize = 64;
const CACHE_BYTES_MAX: usize = 8 << 20;

/// A compiled pattern with its flags.
struct Pattern {
    engine: Engine,
    /// The names of the groups, without the first group, which is the whole match.
    names: Vec<Option<String>>,
    positions: usize,
    global: bool,
    skip_empty: bool,
    /// The memory that it holds. The engines allocate more while they search.
    bytes: Cell<usize>,
}

enum Engine {
    Linear(Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

/// The positions of a match and of its groups.
type MatchPositions = Vec<Option<(usize, usize)>>;

/// Compiled patterns by source and flags.
type Cache = HashMap<(String, String), Rc<Pattern>>;

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

fn bytes_of(cache: &Cache) -> usize {
    cache.values().map(|pattern| pattern.bytes.get()).sum()
}

/// Whether a pattern matches the whole text, or a part of it.
pub(crate) fn holds(text: &Val, pattern: &str, whole: bool) -> Result<bool, String> {
    let pattern = match whole {
        true => format!("\\A(?:{pattern})\\z"),
        false => pattern.to_owned(),
    };
    match test(&V::new(text.clone()), &V::from(pattern), &V::null()) {
        Ok(found) => Ok(matches!(found.val, Val::Bool(true))),
        Err(error) => {
            let error = crate::value::Error::into_val(error);
            let reason = error.as_str().unwrap_or("not a regular expression");
            Err(reason.to_owned())
        }
    }
}

/// `test`.
pub(crate) fn test(text: &V, pattern: &V, flags: &V) -> ValR<V> {
    let (text, pattern) = prepare(text, pattern, flags)?;
    let _growth = Growth::of(&pattern);
    match &pattern.engine {
        Engine::Linear(regex) if !pattern.skip_empty => Ok(V::from(regex.is_match(text))),
        _ => Ok(V::from(!pattern.find_all(text, true)?.is_empty())),
    }
}

/// `[match]`.
pub(crate) fn matches(text: &V, pattern: &V, flags: &V) -> ValR<V> {
    let (text, pattern) = prepare(text, pattern, flags)?;
    let mut places = Places::new(text);
    let found = pattern.find_counted(text)?;
    let shown = found
        .iter()
        .map(|found| pattern.shown(text, found, &mut places));
    Ok(shown.collect())
}

/// The text split into parts: strings between the matches, and matches in the form of `match`.
pub(crate) fn parts(text: &V, pattern: &V, flags: &V) -> ValR<V> {
    let (text, pattern) = prepare(text, pattern, flags)?;
    let mut places = Places::new(text);
    let mut parts = Vec::new();
    let mut end = 0;
    for found in pattern.find_counted(text)? {
        if let Some(Some((from, to))) = found.first() {
            parts.push(V::str(&text[end..*from]));
            parts.push(pattern.shown(text, &found, &mut places));
            end = *to;
        }
    }
    parts.push(V::str(&text[end..]));
    Ok(V::array(parts))
}

fn prepare<'a>(text: &'a V, pattern: &V, flags: &V) -> Result<(&'a str, Rc<Pattern>), Error> {
    let text = text
        .as_str()
        .ok_or_else(|| text.fail("cannot be matched, as it is not a string"))?;
    // Pattern and flags may also be given as an array.
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
            // Compiling is expensive, so clock and memory are checked before and after. An evaluation that is aborted
            // here leaves nothing in the cache.
            meter::work(10_000);
            let before = alloc::held();
            let pattern = Rc::new(compile(source, flags)?);
            let held = usize::try_from(alloc::held().wrapping_sub(before)).unwrap_or(0);
            pattern.bytes.set(held.max(pattern.bytes.get()));
            meter::work(10_000);
            keep(key, &pattern);
            pattern
        }
    };
    if pattern.positions.saturating_mul(text.len()) > PRODUCT_MAX {
        return Err(Error::str(format_args!(
            "the regular expression is too big for a string of {} bytes",
            text.len()
        )));
    }
    if matches!(pattern.engine, Engine::Backtracking(_)) && text.len() > BACKTRACKING_BYTES_MAX {
        return Err(Error::str(format_args!(
            "a regular expression with look-around or references can be matched with at most {BACKTRACKING_BYTES_MAX} bytes, but the string has {}",
            text.len()
        )));
    }
    meter::work(text.len() / 16);
    Ok((text, pattern))
}

/// Caches a pattern, unless it is bigger than the cache.
fn keep(key: (String, String), pattern: &Rc<Pattern>) {
    CACHE.with_borrow_mut(|cache| {
        let held = bytes_of(cache);
        if cache.len() >= CACHE_MAX || held + pattern.bytes.get() > CACHE_BYTES_MAX {
            cache.clear();
        }
        if pattern.bytes.get() <= CACHE_BYTES_MAX {
            cache.insert(key, Rc::clone(pattern));
        }
    });
}

fn compile(source: &str, flags: &str) -> Result<Pattern, Error> {
    let fail = |why: &dyn std::fmt::Display| {
        // A long message would be cut before the reason.
        let shown = match source.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => &format!("{}...", &source[..end]),
            None => source,
        };
        Error::str(format_args!(
            "{shown} (at offset 0) is not a valid regex: {why}"
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
            // `^` and `$` match the ends of the text in any case. Longest-match search isn't supported.
            's' | 'l' => {}
            _ => {
                return Err(Error::str(format_args!(
                    "{flags} is not a valid modifier string"
                )));
            }
        }
    }
    let names = |names: &mut dyn Iterator<Item = Option<&str>>| {
        names.skip(1).map(|name| name.map(str::to_owned)).collect()
    };
    let parsed = match syntax.build().parse(source) {
        Ok(parsed) => parsed,
        Err(_) if calls_group(source) => {
            return Err(fail(&"it calls a group as a subroutine"));
        }
        Err(error) => {
            // Each of its parts has an automaton of its own.
            let weight = weight(&with_flags(source, flags));
            if weight > WEIGHT_MAX {
                return Err(fail(&"it is too big"));
            }
            meter::charge(weight);
            let engine = backtracking(source, flags).ok_or_else(|| fail(&error))?;
            return Ok(Pattern {
                names: names(&mut engine.capture_names()),
                engine: Engine::Backtracking(Box::new(engine)),
                positions: 1,
                global,
                skip_empty,
                bytes: Cell::new(weight),
            });
        }
    };
    let positions = positions(&parsed);
    if positions > PRODUCT_MAX {
        return Err(fail(&"it has too many repetitions"));
    }
    // The engine refuses what exceeds its limit while it compiles.
    let weight = linear(&parsed).min(WEIGHT_MAX);
    meter::charge(weight);
    let regex = builder.build().map_err(|e| fail(&e))?;
    Ok(Pattern {
        names: names(&mut regex.capture_names()),
        engine: Engine::Linear(regex),
        positions,
        global,
        skip_empty,
        bytes: Cell::new(weight),
    })
}

/// A pattern that has its flags inside.
fn with_flags(source: &str, flags: &str) -> String {
    let inner = [('i', 'i'), ('x', 'x'), ('p', 's')];
    let set = inner.iter().filter(|(flag, _)| flags.contains(*flag));
    let set: String = set.map(|(_, inner)| *inner).collect();
    match set.is_empty() {
        true => source.to_owned(),
        false => format!("(?{set}){source}"),
    }
}

/// Whether a pattern calls a group, or itself: `\g<name>` or `(?P>name)`. Each call is compiled as a copy, so a few calls
/// within calls would fill the memory.
pub(crate) fn calls_group(source: &str) -> bool {
    let mut rest = source.chars();
    while let Some(char) = rest.next() {
        let is_call = match char {
            '\\' => rest.next() == Some('g'),
            '(' => rest.as_str().starts_with("?P>"),
            _ => false,
        };
        if is_call {
            return true;
        }
    }
    false
}

/// A pattern that needs backtracking, if it does.
fn backtracking(source: &str, flags: &str) -> Option<fancy_regex::Regex> {
    let mut builder = fancy_regex::RegexBuilder::new(source);
    builder
        .backtrack_limit(TRIES_MAX)
        .delegate_size_limit(SIZE_MAX)
        .delegate_dfa_size_limit(SIZE_MAX)
        .case_insensitive(flags.contains('i'))
        .ignore_whitespace(flags.contains('x'))
        .dot_matches_new_line(flags.contains('p'));
    builder.build().ok()
}

/// The maximum number of positions in the pattern that a search may be in at the same time.
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

/// Counts the memory that an engine has allocated during a search, even if the search is aborted.
struct Growth<'a> {
    pattern: &'a Pattern,
    before: isize,
    /// The bytes of the search's results, which don't stay.
    results: usize,
}

impl<'a> Growth<'a> {
    fn of(pattern: &'a Pattern) -> Growth<'a> {
        Growth {
            pattern,
            before: alloc::held(),
            results: 0,
        }
    }
}

impl Drop for Growth<'_> {
    fn drop(&mut self) {
        let more = alloc::held().wrapping_sub(self.before);
        let more = usize::try_from(more).unwrap_or(0);
        let more = more.saturating_sub(self.results);
        if more == 0 {
            return;
        }
        let bytes = &self.pattern.bytes;
        bytes.set(bytes.get().saturating_add(more));
        CACHE.with_borrow_mut(|cache| {
            if bytes_of(cache) > CACHE_BYTES_MAX {
                cache.clear();
            }
        });
    }
}

impl Pattern {
    /// All matches. Counts what the search leaves in memory.
    fn find_counted(&self, text: &str) -> Result<Vec<MatchPositions>, Error> {
        let mut growth = Growth::of(self);
        let found = self.find_all(text, false)?;
        let groups: usize = found.iter().map(Vec::capacity).sum();
        growth.results = groups * size_of::<Option<(usize, usize)>>()
            + found.capacity() * size_of::<MatchPositions>();
        Ok(found)
    }

    /// All matches or, with `one`, only the first.
    fn find_all(&self, text: &str, one: bool) -> Result<Vec<MatchPositions>, Error> {
        let most = if self.global && !one { usize::MAX } else { 1 };
        let mut all = Vec::new();
        let mut take = |found: MatchPositions| {
            // The search may have scanned the whole rest of the text.
            let begin = found.first().copied().flatten().map_or(0, |(from, _)| from);
            meter::work(64 + (text.len() - begin) / 1024);
            meter::charge(64 * found.len());
            let is_empty = matches!(found.first(), Some(Some((from, to))) if from == to);
            if !(self.skip_empty && is_empty) {
                all.push(found);
            }
            all.len() < most
        };
        match &self.engine {
            Engine::Linear(regex) => {
                for found in regex.captures_iter(text) {
                    let groups = found.iter();
                    let groups =
                        groups.map(|group| group.map(|group| (group.start(), group.end())));
                    if !take(groups.collect()) {
                        break;
                    }
                }
            }
            Engine::Backtracking(regex) => {
                for found in regex.captures_iter(text) {
                    meter::work(256 + text.len());
                    let Ok(found) = found else {
                        return Err(Error::str("the regular expression takes too many steps"));
                    };
                    let groups = (0..found.len()).map(|n| found.get(n));
                    let groups =
                        groups.map(|group| group.map(|group| (group.start(), group.end())));
                    if !take(groups.collect()) {
                        break;
                    }
                }
            }
        }
        Ok(all)
    }

    /// In the form that `match` returns.
    fn shown(&self, text: &str, found: &MatchPositions, places: &mut Places<'_>) -> V {
        let null = V::null;
        let part = |place: Option<(usize, usize)>, places: &mut Places<'_>| match place {
            Some((from, to)) => {
                let part = &text[from..to];
                [
                    ("offset", V::from(places.chars_at(from))),
                    ("length", V::from(part.chars().count())),
                    ("string", V::str(part)),
                ]
            }
            None => [
                ("offset", V::from(-1isize)),
                ("length", V::from(0usize)),
                ("string", null()),
            ],
        };
        let group = |n: usize| found.get(n).copied().flatten();
        let [offset, length, string] = part(group(0), places);
        // jq 1.6 returns no groups for an empty match.
        let is_empty = group(0).is_some_and(|(from, to)| from == to);
        let names = self.names.iter().enumerate().filter(|_| !is_empty);
        let captures = names.map(|(n, name)| {
            let [offset, length, string] = part(group(n + 1), places);
            let name = name.as_deref().map_or_else(null, V::str);
            V::object([offset, length, string, ("name", name)])
        });
        let captures = captures.collect();
        V::object([offset, length, string, ("captures", captures)])
    }
}

/// Converts byte offsets to character offsets. Fast for increasing offsets.
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
            // A group may begin before the group that precedes it.
            self.chars -= self.text[byte..self.byte].chars().count();
        }
        self.byte = byte;
        self.chars
    }
}
