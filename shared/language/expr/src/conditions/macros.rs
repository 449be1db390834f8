//! `has`, and the CEL macros that iterate over lists and maps.

use jaq_json::Val;

use super::Dialect;
use super::ast::{Expr, Macro, Step};
use super::lex::Token;
use super::parse::{Parser, Result};

impl Parser<'_> {
    /// Continues after the parenthesis: `has(a.b)`.
    pub fn has(&mut self, begin: usize) -> Result<Expr> {
        let whole = self.expr()?;
        self.expect(")")?;
        if let Expr::Steps(base, mut steps) = whole {
            match steps.pop() {
                Some(Step::Member(name)) => {
                    let base = match steps.is_empty() {
                        true => base,
                        false => Box::new(Expr::Steps(base, steps)),
                    };
                    return Ok(Expr::Has(base, name));
                }
                Some(Step::Index(Expr::Literal(name @ Val::TStr(_)))) => {
                    return Ok(Expr::Has(Box::new(Expr::Steps(base, steps)), name));
                }
                _ => {}
            }
        }
        Err(self.fail_at(
            begin,
            "`has` asks for a member, as in `has(order.customer)`",
        ))
    }

    /// Continues after the parenthesis: `list.all(x, condition)`, if `name` is a macro.
    pub fn macro_call(&mut self, name: &str) -> Result<Option<Step>> {
        if self.dialect != Dialect::Cel {
            return Ok(None);
        }
        let kind = match name {
            "all" => Macro::All,
            "exists" => Macro::Exists,
            "exists_one" | "existsOne" => Macro::ExistsOne,
            "filter" => Macro::Filter,
            "map" => Macro::Map,
            _ => return Ok(None),
        };
        self.nested(|parser| {
            let at = parser.at;
            let Token::Word(local) = parser.skip()? else {
                return Err(parser.fail_at(at, "the name of a variable is needed here"));
            };
            parser.expect(",")?;
            parser.locals.push(local);
            let first = parser.expr()?;
            let second = match kind == Macro::Map && parser.take(",")? {
                true => Some(parser.expr()?),
                false => None,
            };
            parser.expect(")")?;
            parser.locals.pop();
            Ok(Some(Step::Macro(kind, first, second)))
        })
    }
}
