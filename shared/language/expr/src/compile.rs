//! Compiles a source: parses it, refuses forbidden parts, and determines its shape.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jaq_core::Compiler;
use jaq_core::compile::Undefined;
use jaq_core::load::lex::{StrPart, Token};
use jaq_core::load::parse::{BinaryOp, Def, Parser, Pattern, Term};
use jaq_core::load::{Arena, File, Lexer, Loader};
use jaq_core::path::Part;

use crate::compiled::{Compiled, Secrets, Shape};
use crate::engine::Filter;
use crate::error::CompileError;
use crate::simple::{Simple, plain};
use crate::{alternatives, library, natives, outputs, precedence, rewrite, walk};

/// The maximum length of an expression in bytes.
const SOURCE_BYTES_MAX: usize = 64 << 10;
/// The stack size for parsing: enough for a source of the maximum length that consists only of parentheses.
const STACK: usize = 512 << 20;

/// The maximum number of parts in a path; `.a[0].b` has three. A path is evaluated recursively, part by part.
pub(crate) const PARTS_MAX: usize = 256;
/// The maximum number of variables, arrays and objects in a pattern after `as`, and of parameters of a function. They
/// are bound recursively, one in the other, however they are nested.
const BOUND_MAX: usize = 256;
/// The maximum number of functions that a source may define. Compiling one of them examines those around it.
const DEFINITIONS_MAX: usize = 256;

/// Refuses a source that is too long.
pub(crate) fn within_length(source: &str) -> Result<(), CompileError> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(CompileError::new(format!(
            "the expression has {} bytes; at most {SOURCE_BYTES_MAX} are allowed",
            source.len()
        )));
    }
    Ok(())
}

/// Runs code that recurses over a source, which may be nested as deeply as its length permits.
pub(crate) fn with_stack<T>(
    source: &str,
    f: impl FnOnce() -> Result<T, CompileError>,
) -> Result<T, CompileError> {
    within_length(source)?;
    // Most sources can't be nested deeply enough to need more stack.
    let needed = 64 * 1024 + source.len() * (STACK / SOURCE_BYTES_MAX);
    stacker::maybe_grow(needed, needed.max(1 << 20), || {
        catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| {
            Err(CompileError::new(
                "the expression could not be read (internal error)",
            ))
        })
    })
}

pub(crate) fn jq(source: &str, vars: &[&str]) -> Result<Compiled, CompileError> {
    as_lexed(source, |source| {
        let arena = Arena::default();
        let term = parse(source, &arena)?;
        compile(term, source, vars, &arena)
    })
}

/// Runs code that parses a source, with enough stack, on the form for the lexer.
pub(crate) fn as_lexed<T>(
    source: &str,
    f: impl FnOnce(&str) -> Result<T, CompileError>,
) -> Result<T, CompileError> {
    within_length(source)?;
    let Some(rewritten) = rewrite::rewritten(source) else {
        return with_stack(source, || f(source));
    };
    with_stack(source, || f(&rewritten.text)).map_err(|mut error| {
        error.span = error.span.map(|span| rewritten.original(span));
        error
    })
}

/// Parses and checks a source.
pub(crate) fn parse<'s>(source: &'s str, arena: &'s Arena) -> Result<Term<&'s str>, CompileError> {
    let tokens = Lexer::new(source).lex().map_err(|errors| {
        let (expect, found) = &errors[0];
        let shown = found.chars().take(20).collect::<String>();
        let what = match shown.is_empty() {
            true => "the expression ends".to_owned(),
            false => format!("there is `{shown}`"),
        };
        CompileError::at(
            format!("{what} where {} is expected", wanted(expect.as_str())),
            source,
            found,
        )
    })?;
    if let Some(Token(word @ ("module" | "import" | "include"), _)) = tokens.first() {
        return Err(refused(source, word).unwrap_or_else(|| CompileError::new("not available")));
    }
    let tokens = precedence::as_in_jq(alternatives::without(tokens));
    let mut term = Parser::new(&tokens)
        .parse(|parser| parser.term())
        .map_err(|errors| {
            let (expect, found) = &errors[0];
            let what = match found {
                Some(Token(text, _)) => {
                    format!("there is `{}`", text.chars().take(20).collect::<String>())
                }
                None => "the expression ends".to_owned(),
            };
            let expected = match expect.as_str() {
                "" | "nothing" => "where it should end".to_owned(),
                expected => format!("where {} is expected", wanted(expected)),
            };
            let part = Token::opt_as_str(*found, source);
            CompileError::at(format!("{what} {expected}"), source, part)
        })?;
    // `?//` creates one as well.
    let definitions = source.matches("def").count() + source.matches('?').count();
    if definitions > DEFINITIONS_MAX && definitions_in(&mut term) > DEFINITIONS_MAX {
        let message = format!("the expression defines more than {DEFINITIONS_MAX} functions");
        return Err(CompileError::new(message));
    }
    let mut error = None;
    prepare(&mut term, source, arena, &mut error);
    error.map_or(Ok(term), Err)
}

/// The parser's word for a missing part, in a form for sentences.
fn wanted(word: &str) -> String {
    match word {
        "else or end" => "`else` or `end`".to_owned(),
        // Words that don't begin with a letter, and keywords, are quoted literally.
        "as" | "catch" | "do" | "else" | "end" | "in" | "then" => format!("`{word}`"),
        word if !word.starts_with(|c: char| c.is_ascii_alphanumeric()) => format!("`{word}`"),
        word if word.starts_with(['a', 'e', 'i', 'o']) => format!("an {word}"),
        word => format!("a {word}"),
    }
}

fn definitions_in(term: &mut Term<&str>) -> usize {
    let mut found = match term {
        Term::Def(defs, _) => defs.len(),
        _ => 0,
    };
    walk::each_part(term, &mut |part| found += definitions_in(part));
    found
}

fn refused(source: &str, name: &str) -> Option<CompileError> {
    let why = natives::refused(name)?;
    Some(CompileError::at(
        format!("`{name}` is not available: {why}"),
        source,
        name,
    ))
}

/// Refuses forbidden forms, and rewrites those that jaq doesn't support or doesn't bound.
fn prepare<'s>(
    term: &mut Term<&'s str>,
    source: &'s str,
    arena: &'s Arena,
    error: &mut Option<CompileError>,
) {
    match term {
        Term::Call(name, _) if name.contains("::") => {
            let message = format!("`{name}` is not available: modules are not available");
            error.get_or_insert(CompileError::at(message, source, name));
        }
        Term::Var("$__loc__") => *term = location(term, source, arena),
        Term::Call(name, _) | Term::Var(name) => {
            if let Some(refused) = refused(source, name) {
                error.get_or_insert(refused);
            }
        }
        // `{"a b"}` and `{@base64 "x"}` are fine; `{$__loc__}` is a member with that name.
        Term::Obj(members) => {
            for (key, value) in members {
                if matches!((&*key, &*value), (Term::Var("$__loc__"), None)) {
                    *value = Some(location(key, source, arena));
                    *key = Term::Str(None, vec![StrPart::Str("__loc__")]);
                }
            }
        }
        Term::Def(defs, _) => {
            if let Some(def) = defs.iter().find(|def| def.args.len() > BOUND_MAX) {
                let message = format!(
                    "a function may have {BOUND_MAX} parameters, and `{}` has {}",
                    def.name,
                    def.args.len()
                );
                error.get_or_insert(CompileError::at(message, source, def.name));
            }
            defs.iter_mut().for_each(library::bound);
        }
        Term::BinOp(_, BinaryOp::Pipe(Some(pattern)), _) | Term::Fold(_, _, pattern, _) => {
            let parts = parts_of(pattern);
            if parts > BOUND_MAX {
                let message = format!(
                    "a pattern after `as` may have {BOUND_MAX} parts, and this one has {parts}"
                );
                error.get_or_insert(CompileError::new(message));
            }
        }
        Term::Path(_, path) if path.0.len() > PARTS_MAX => {
            let message = format!(
                "a path may have {PARTS_MAX} parts, and this one has {}",
                path.0.len()
            );
            error.get_or_insert(CompileError::new(message));
        }
        _ => {}
    }
    walk::each_part(term, &mut |part| prepare(part, source, arena, error));
    outputs::as_in_jq(term, arena);
}

/// The variables, arrays and objects in a pattern.
fn parts_of(pattern: &Pattern<&str>) -> usize {
    match pattern {
        Pattern::Var(_) => 1,
        Pattern::Arr(parts) => 1 + parts.iter().map(parts_of).sum::<usize>(),
        Pattern::Obj(members) => {
            1 + members
                .iter()
                .map(|(_, part)| parts_of(part))
                .sum::<usize>()
        }
    }
}

/// `$__loc__`: `{file, line}`.
fn location<'s>(var: &Term<&'s str>, source: &'s str, arena: &'s Arena) -> Term<&'s str> {
    let before = match var {
        Term::Var(name) => {
            let at = (name.as_ptr() as usize).wrapping_sub(source.as_ptr() as usize);
            source.get(..at).unwrap_or_default()
        }
        _ => "",
    };
    let line = arena.alloc((before.matches('\n').count() + 1).to_string());
    let string = |text| Term::Str(None, vec![StrPart::Str(text)]);
    Term::Obj(vec![
        (string("file"), Some(string("<top-level>"))),
        (string("line"), Some(Term::Num(line))),
    ])
}

pub(crate) fn compile<'s>(
    mut term: Term<&'s str>,
    source: &'s str,
    vars: &[&str],
    arena: &'s Arena,
) -> Result<Compiled, CompileError> {
    let mut used = BTreeSet::new();
    let mut secrets = Secrets::default();
    variables(&mut term, &mut used, &mut secrets);
    let shape = match Simple::of(&term, vars) {
        Some(simple) => Shape::Simple(simple),
        None => {
            let places = (0..vars.len()).filter(|place| used.contains(vars[*place]));
            let places: Vec<usize> = places.collect();
            let names: Vec<String> = places
                .iter()
                .map(|place| format!("${}", vars[*place]))
                .collect();
            let names: Vec<&'s str> = names.into_iter().map(|name| &**arena.alloc(name)).collect();
            let filter = filter(term, source, vars, &names, arena)?;
            Shape::Filter {
                filter: Box::new(filter),
                vars: places,
            }
        }
    };
    Ok(Compiled {
        shape,
        used,
        secrets,
    })
}

fn filter<'s>(
    mut term: Term<&'s str>,
    source: &str,
    vars: &[&str],
    names: &[&'s str],
    arena: &'s Arena,
) -> Result<Filter, CompileError> {
    const MAIN: &str = "swirl__main";
    let mut prelude: Vec<Def<&'s str>> = library::needed(&mut term);
    prelude.push(Def {
        name: MAIN,
        args: Vec::new(),
        body: term,
    });
    let file = File {
        code: MAIN,
        path: (),
    };
    let modules = Loader::new(prelude)
        .load(arena, file)
        .map_err(|_| CompileError::new("the expression could not be loaded (internal error)"))?;
    let compiled = Compiler::default()
        .with_funs(library::functions())
        .with_global_vars(names.iter().copied())
        .compile(modules);
    compiled.map_err(
        |errors| match errors.iter().flat_map(|(_, errors)| errors).next() {
            Some((name, what)) => undefined(source, name, what, vars),
            None => CompileError::new("the expression could not be compiled (internal error)"),
        },
    )
}

/// Longer names aren't typing errors, and comparing them is slow.
const HINT_BYTES_MAX: usize = 100;

fn undefined(source: &str, name: &str, what: &Undefined, vars: &[&str]) -> CompileError {
    let nearest = |name: &str, among: &mut dyn Iterator<Item = &str>| {
        if name.len() > HINT_BYTES_MAX {
            return None;
        }
        let scored = among.map(|other| (strsim::jaro_winkler(name, other), other.to_owned()));
        let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
        best.filter(|(score, _)| *score > 0.85)
            .map(|(_, name)| name)
    };
    let message = match what {
        Undefined::Var => {
            let bare = name.trim_start_matches('$');
            match nearest(bare, &mut vars.iter().copied()) {
                Some(other) => format!("there is no variable `{name}`; did you mean `${other}`?"),
                None if vars.is_empty() => format!("there is no variable `{name}` here"),
                None => {
                    let all: Vec<_> = vars.iter().map(|var| format!("${var}")).collect();
                    format!(
                        "there is no variable `{name}` here, only {}",
                        all.join(", ")
                    )
                }
            }
        }
        Undefined::Filter(arity) => {
            let function = match arity {
                0 => format!("there is no function `{name}`"),
                1 => format!("there is no function `{name}` of one argument"),
                n => format!("there is no function `{name}` of {n} arguments"),
            };
            let known = library::names().any(|other| other == name);
            match nearest(name, &mut library::names()) {
                Some(other) if !known => format!("{function}; did you mean `{other}`?"),
                _ => function,
            }
        }
        Undefined::Label => format!("there is no `label {name}` around this `break`"),
        _ => format!("there is no {} `{name}`", what.as_str()),
    };
    CompileError::at(message, source, name)
}

/// The variable that holds the secrets: the language changed its name.
const SECRETS: [&str; 2] = ["$SECRETS", "$secrets"];

/// Records all variables (without `$`), and how those with secrets are used.
fn variables(term: &mut Term<&str>, used: &mut BTreeSet<String>, secrets: &mut Secrets) {
    match term {
        Term::Var(name) => {
            used.insert(name.trim_start_matches('$').to_owned());
            secrets.other |= SECRETS.contains(name);
        }
        Term::Path(base, path) if matches!(**base, Term::Var(name) if SECRETS.contains(&name)) => {
            let name = match path.0.first() {
                Some((Part::Index(index), _)) => plain(index),
                _ => None,
            };
            if let Some(name) = name {
                variables(base, used, &mut Secrets::default());
                if !secrets.names.contains(&name) {
                    secrets.names.push(name);
                }
                // The rest of the path may use it in other ways.
                for (part, _) in &mut path.0[1..] {
                    match part {
                        Part::Index(index) => variables(index, used, secrets),
                        Part::Range(start, end) => {
                            let bounds = start.iter_mut().chain(end.iter_mut());
                            bounds.for_each(|bound| variables(bound, used, secrets));
                        }
                    }
                }
                return;
            }
        }
        _ => {}
    }
    walk::each_part(term, &mut |part| variables(part, used, secrets));
}

#[cfg(test)]
mod tests {
    use crate::Program;

    #[test]
    fn a_long_name_gets_no_hint() {
        let hint = |length: usize| {
            let name = "x".repeat(length);
            let error = Program::jq(&format!("${name}y"), &[&name]).map(drop);
            error.is_err_and(|error| error.message.contains("did you mean"))
        };
        assert!(hint(50));
        assert!(!hint(5_000));
    }
}
