//! jq gives `*`, `/` and `%` the same precedence, but in jaq's parser `%` binds more tightly: `5 * 7 % 3` would be 5
//! instead of 2. Here parentheses are added so that jaq evaluates in jq's order.

use jaq_core::load::lex::{Tok, Token};

use crate::walk::inside;

pub(crate) fn as_in_jq<'s>(tokens: Vec<Token<&'s str>>) -> Vec<Token<&'s str>> {
    let mut out: Vec<Token<&'s str>> = Vec::with_capacity(tokens.len());
    // The beginning of the current chain of factors, and whether it has a `*` or `/`.
    let mut chain = (0, false);
    // The chains outside of an `if`.
    let mut outer = Vec::new();
    for Token(text, tok) in tokens {
        let tok = inside(tok, as_in_jq);
        match (text, &tok) {
            ("%", Tok::Sym) if chain.1 && out.len() > chain.0 => {
                let mut factors = out.split_off(chain.0);
                factors.push(Token(")", Tok::Sym));
                out.push(Token("(", Tok::Block(factors)));
                chain.1 = false;
            }
            ("%", Tok::Sym) => {}
            ("*" | "/", Tok::Sym) => chain.1 = true,
            ("if", Tok::Word) => {
                outer.push(chain);
                chain = (out.len() + 1, false);
            }
            ("end", Tok::Word) => chain = outer.pop().unwrap_or((0, false)),
            ("then" | "elif" | "else" | "and" | "or", Tok::Word) => chain = (out.len() + 1, false),
            (text, Tok::Sym) if !text.starts_with('.') && text != "?" => {
                chain = (out.len() + 1, false);
            }
            _ => {}
        }
        out.push(Token(text, tok));
    }
    out
}
