//! Traverses parsed jq.

use jaq_core::load::lex::{StrPart, Tok, Token};
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::path::Part;

/// Reports every call in a term.
pub(crate) fn calls(term: &mut Term<&str>, visit: &mut dyn FnMut(&str, usize)) {
    match term {
        Term::Call(name, args) => visit(name, args.len()),
        Term::Str(Some(format), _) => visit(format, 0),
        _ => {}
    }
    each_part(term, &mut |part| calls(part, visit));
}

/// Applies a rewrite inside a token: to the tokens of a block, and to the terms in a text.
pub(crate) fn inside<'s>(
    tok: Tok<&'s str>,
    rewrite: fn(Vec<Token<&'s str>>) -> Vec<Token<&'s str>>,
) -> Tok<&'s str> {
    let in_part = |part| match part {
        StrPart::Term(Token(text, tok)) => StrPart::Term(Token(text, inside(tok, rewrite))),
        part => part,
    };
    match tok {
        Tok::Block(tokens) => Tok::Block(rewrite(tokens)),
        Tok::Str(parts) => Tok::Str(parts.into_iter().map(in_part).collect()),
        tok => tok,
    }
}

/// The direct subterms of a term.
pub(crate) fn each_part<'s>(term: &mut Term<&'s str>, f: &mut dyn FnMut(&mut Term<&'s str>)) {
    match term {
        Term::Id | Term::Recurse | Term::Num(_) | Term::Break(_) | Term::Var(_) => {}
        Term::Arr(None) => {}
        Term::Str(_, parts) => parts.iter_mut().for_each(|part| {
            if let StrPart::Term(term) = part {
                f(term);
            }
        }),
        Term::Arr(Some(term)) | Term::Neg(term) | Term::Label(_, term) => f(term),
        Term::Obj(members) => members.iter_mut().for_each(|(key, value)| {
            f(key);
            value.iter_mut().for_each(&mut *f);
        }),
        Term::BinOp(left, op, right) => {
            f(left);
            if let BinaryOp::Pipe(Some(pattern)) = op {
                each_in_pattern(pattern, f);
            }
            f(right);
        }
        Term::Fold(_, values, pattern, args) => {
            f(values);
            each_in_pattern(pattern, f);
            args.iter_mut().for_each(f);
        }
        Term::TryCatch(term, catch) => {
            f(term);
            catch.iter_mut().for_each(|catch| f(catch));
        }
        Term::IfThenElse(cases, otherwise) => {
            cases.iter_mut().for_each(|(condition, then)| {
                f(condition);
                f(then);
            });
            otherwise.iter_mut().for_each(|otherwise| f(otherwise));
        }
        Term::Def(defs, term) => {
            defs.iter_mut().for_each(|def| f(&mut def.body));
            f(term);
        }
        Term::Call(_, args) => args.iter_mut().for_each(f),
        Term::Path(term, path) => {
            f(term);
            path.0.iter_mut().for_each(|(part, _)| match part {
                Part::Index(index) => f(index),
                Part::Range(start, end) => start.iter_mut().chain(end.iter_mut()).for_each(&mut *f),
            });
        }
    }
}

fn each_in_pattern<'s>(pattern: &mut Pattern<&'s str>, f: &mut dyn FnMut(&mut Term<&'s str>)) {
    match pattern {
        Pattern::Var(_) => {}
        Pattern::Arr(parts) => parts.iter_mut().for_each(|part| each_in_pattern(part, f)),
        Pattern::Obj(members) => members.iter_mut().for_each(|(key, part)| {
            f(key);
            each_in_pattern(part, f);
        }),
    }
}
