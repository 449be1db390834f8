//! `?//`, which jaq's parser doesn't support: `term as [$a] ?// $a | body`. The first pattern is tried with everything
//! that follows it; if that fails, the next one is tried. Variables that a pattern lacks are null. The tokens are
//! rewritten into an equivalent form without `?//`. The body becomes a function, so it occurs only once:
//!
//! ```text
//! term as $__value | def _body($a): body; . as $__input |
//!   try ($__value as [$a] | _body($a)) catch ($__input | $__value as $a | _body($a))
//! ```

use jaq_core::load::lex::{Tok, Token};

use crate::walk::inside;

type Tokens<'s> = Vec<Token<&'s str>>;

const VALUE: &str = "$__value";
const INPUT: &str = "$__input";
const BODY: &str = "_body";

pub(crate) fn without(tokens: Tokens<'_>) -> Tokens<'_> {
    let any = tokens
        .windows(2)
        .any(|two| is_alternative(&two[0], &two[1]));
    let tokens = tokens
        .into_iter()
        .map(|Token(text, tok)| Token(text, inside(tok, without)));
    match any {
        true => spelled(tokens.collect()),
        false => tokens.collect(),
    }
}

fn is_alternative(first: &Token<&str>, second: &Token<&str>) -> bool {
    matches!(
        (first, second),
        (Token("?", Tok::Sym), Token("//", Tok::Sym))
    )
}

/// From the last `as` to the first, so that each body has been rewritten before it is moved.
fn spelled(mut tokens: Tokens<'_>) -> Tokens<'_> {
    let mut at = tokens.len();
    while at > 0 {
        at -= 1;
        if !matches!(&tokens[at], Token("as", Tok::Word)) {
            continue;
        }
        let Some(after) = patterns_end(&tokens, at + 1) else {
            continue;
        };
        let end = body_end(&tokens, after + 1);
        let rest = tokens.split_off(end);
        let body = tokens.split_off(after + 1);
        let patterns = tokens.split_off(at + 1);
        // Every other token, except the `|` at the end, is half of a `?//`.
        let patterns = patterns
            .into_iter()
            .filter(|token| !matches!(token, Token("?" | "//" | "|", Tok::Sym)));
        written(&mut tokens, patterns.collect(), body);
        tokens.extend(rest);
    }
    tokens
}

/// The position of the `|` after several patterns.
fn patterns_end(tokens: &[Token<&str>], begin: usize) -> Option<usize> {
    let is_pattern = |at: usize| matches!(tokens.get(at), Some(Token(_, Tok::Var | Tok::Block(_))));
    let mut at = begin;
    if !is_pattern(at) {
        return None;
    }
    at += 1;
    while at + 2 < tokens.len()
        && is_alternative(&tokens[at], &tokens[at + 1])
        && is_pattern(at + 2)
    {
        at += 3;
    }
    let several = at > begin + 1;
    (several && matches!(tokens.get(at), Some(Token("|", Tok::Sym)))).then_some(at)
}

/// A body extends to the end of the enclosing term.
fn body_end(tokens: &[Token<&str>], begin: usize) -> usize {
    let mut ifs = 0usize;
    let mut defs = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match token {
            Token("if", Tok::Word) => ifs += 1,
            Token("def", Tok::Word) => defs += 1,
            Token("end", Tok::Word) if ifs > 0 => ifs -= 1,
            Token("then" | "elif" | "else", Tok::Word) if ifs > 0 => {}
            Token("end" | "then" | "elif" | "else", Tok::Word) => return at,
            Token(";", Tok::Sym) if defs > 0 => defs -= 1,
            Token(";" | ")" | "]" | "}", Tok::Sym) => return at,
            _ => {}
        }
    }
    tokens.len()
}

fn written<'s>(out: &mut Tokens<'s>, patterns: Tokens<'s>, body: Tokens<'s>) {
    let word = |text| Token(text, Tok::Word);
    let sign = |text| Token(text, Tok::Sym);
    let var = |text| Token(text, Tok::Var);
    let mut all = Vec::new();
    for pattern in &patterns {
        bound(pattern, &mut all);
    }
    // `(a; b)` for each of them, or nothing.
    let listed = |items: Tokens<'s>| -> Option<Token<&'s str>> {
        if items.is_empty() {
            return None;
        }
        let mut inner = Vec::new();
        for (n, item) in items.into_iter().enumerate() {
            if n > 0 {
                inner.push(sign(";"));
            }
            inner.push(item);
        }
        inner.push(sign(")"));
        Some(Token("(", Tok::Block(inner)))
    };
    out.extend([var(VALUE), sign("|"), word("def"), word(BODY)]);
    out.extend(listed(all.iter().map(|name| var(name)).collect()));
    out.push(sign(":"));
    out.extend(body);
    out.extend([sign(";"), sign("."), word("as"), var(INPUT), sign("|")]);
    // From the last to the first: each one goes into the `catch` of the previous one.
    let mut next: Option<Tokens<'s>> = None;
    for pattern in patterns.into_iter().rev() {
        let mut own = Vec::new();
        bound(&pattern, &mut own);
        let given = all.iter().map(|name| match own.contains(name) {
            true => var(name),
            false => word("null"),
        });
        let mut this = vec![var(VALUE), word("as"), pattern, sign("|"), word(BODY)];
        this.extend(listed(given.collect()));
        next = Some(match next {
            None => this,
            Some(mut later) => {
                this.push(sign(")"));
                let mut caught = vec![var(INPUT), sign("|")];
                caught.append(&mut later);
                caught.push(sign(")"));
                vec![
                    word("try"),
                    Token("(", Tok::Block(this)),
                    word("catch"),
                    Token("(", Tok::Block(caught)),
                ]
            }
        });
    }
    out.extend(next.into_iter().flatten());
}

/// The variables that a pattern binds, without duplicates.
fn bound<'s>(pattern: &Token<&'s str>, out: &mut Vec<&'s str>) {
    match pattern {
        Token(name, Tok::Var) if !out.contains(name) => out.push(name),
        // A key in parentheses binds no variable.
        Token(open, Tok::Block(inner)) if !open.starts_with('(') => {
            inner.iter().for_each(|token| bound(token, out));
        }
        _ => {}
    }
}
