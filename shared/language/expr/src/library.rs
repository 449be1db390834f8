//! The functions that expressions may use: jaq's library plus our own, and the subset that a program needs.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use jaq_core::load::parse::{BinaryOp, Def, Term};
use jaq_core::native::{Fun, bome, run};

use crate::engine::Jq;
use crate::natives;
use crate::value::V;
use crate::walk::calls;

/// The function that returns the names of all functions.
const BUILTINS: &str = "builtins";

/// The definitions of the library in order, and the positions of each by name and arity.
struct Library {
    defs: Vec<Def<&'static str>>,
    /// The names that each definition uses.
    uses: Vec<Vec<(String, usize)>>,
    places: HashMap<(&'static str, usize), Vec<usize>>,
}

fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let own: HashSet<_> = natives::own_names().into_iter().collect();
        let replaced = |def: &Def<&'static str>| {
            own.contains(&(def.name, def.args.len()))
                || natives::refused(def.name).is_some()
                || matches!(
                    def.name,
                    "scan_" | "capture_of_match" | "gamma" | "nearbyint"
                )
        };
        let theirs = jaq_core::defs()
            .chain(jaq_std::defs())
            .chain(jaq_json::defs());
        let ours = jaq_core::load::parse(include_str!("prelude.jq"), |p| p.defs());
        let mut defs: Vec<_> = theirs
            .filter(|def| !replaced(def))
            .chain(ours.unwrap_or_default())
            .collect();
        defs.iter_mut().for_each(bound);
        let mut places: HashMap<_, Vec<usize>> = HashMap::new();
        for (place, def) in defs.iter().enumerate() {
            places
                .entry((def.name, def.args.len()))
                .or_default()
                .push(place);
        }
        let uses = defs
            .iter_mut()
            .map(|def| {
                let mut uses = Vec::new();
                calls(&mut def.body, &mut |name, arity| {
                    uses.push((name.to_owned(), arity))
                });
                uses
            })
            .collect();
        Library { defs, uses, places }
    })
}

/// The definitions of the library that a program needs, in their original order. (All of them would make each compiled
/// program a hundred times bigger.)
pub(crate) fn needed(program: &mut Term<&str>) -> Vec<Def<&'static str>> {
    let library = library();
    let find =
        |name: &str, arity: usize, before: usize| defined(&library.places, name, arity, before);
    let mut open = Vec::new();
    calls(program, &mut |name, arity| {
        open.extend(find(name, arity, usize::MAX))
    });
    let mut taken = vec![false; library.defs.len()];
    while let Some(place) = open.pop() {
        if !std::mem::replace(&mut taken[place], true) {
            let uses = &library.uses[place];
            open.extend(
                uses.iter()
                    .filter_map(|(name, arity)| find(name, *arity, place)),
            );
        }
    }
    let needed = library.defs.iter().zip(taken).filter(|(_, taken)| *taken);
    needed.map(|(def, _)| def.clone()).collect()
}

/// The last definition of a name that stands before a place. The names in the library are static, but `name` need not
/// be.
fn defined<'n>(
    places: &HashMap<(&'n str, usize), Vec<usize>>,
    name: &'n str,
    arity: usize,
    before: usize,
) -> Option<usize> {
    let places = places.get(&(name, arity))?.iter().rev();
    places.copied().find(|place| *place < before)
}

/// All native functions, in the order in which names are looked up.
pub(crate) fn functions() -> Vec<Fun<Jq>> {
    let own = natives::fun(BUILTINS, |_| bome(Ok(builtins())));
    let mut all = vec![run::<Jq>(own)];
    all.extend(natives::all());
    all
}

/// The names and arities of all functions.
fn builtins() -> V {
    let mut all: Vec<V> = signatures()
        .map(|(name, arity)| V::from(format!("{name}/{arity}")))
        .collect();
    all.sort();
    all.dedup();
    V::array(all)
}

/// The names of all functions in the library, for hints.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let natives = natives::own_names().into_iter().map(|(name, _)| name);
    let natives = natives.chain([BUILTINS]);
    let defined = library().places.keys().map(|(name, _)| *name);
    defined
        .chain(natives)
        .filter(|name| !name.starts_with(['_', '!']))
}

/// The names and arities of all functions that a jq expression may use.
pub fn signatures() -> impl Iterator<Item = (&'static str, usize)> {
    let natives = functions()
        .into_iter()
        .map(|(name, args, _)| (name, args.len()));
    let defined = library().places.keys().copied();
    natives
        .chain(defined)
        .filter(|(name, _)| !name.starts_with(['_', '!', '@']) && !name.ends_with('_'))
}

/// Counts the calls of a recursive function that takes functions. At each call the argument may be a function of the
/// previous argument, which creates a chain that is dropped recursively.
pub(crate) fn bound(def: &mut Def<&str>) {
    if def.args.iter().all(|arg| arg.starts_with('$')) {
        return;
    }
    let mut recursive = false;
    let name_arity = (def.name, def.args.len());
    calls(&mut def.body, &mut |name, arity| {
        recursive |= (name, arity) == name_arity;
    });
    if recursive {
        let count = Box::new(Term::Call("_chained", Vec::new()));
        let pipe = BinaryOp::Pipe(None);
        let body = std::mem::take(&mut def.body);
        def.body = Term::BinOp(count, pipe, Box::new(body));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The library is parsed at run time, so this test has to find mistakes in it.
    #[test]
    fn every_definition_of_the_library_compiles() {
        let ours = jaq_core::load::parse(include_str!("prelude.jq"), |p| p.defs());
        assert!(ours.is_some_and(|defs| defs.len() > 50));
        for def in &library().defs {
            if def.name.starts_with('!') {
                continue;
            }
            let args = vec!["."; def.args.len()].join("; ");
            let source = match def.args.len() {
                0 => def.name.to_owned(),
                _ => format!("{}({args})", def.name),
            };
            let program = crate::Program::jq(&source, &[]);
            assert!(program.is_ok(), "{source}: {program:?}");
        }
    }
}
