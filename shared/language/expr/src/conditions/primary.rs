//! The operands of operators: literals, names, paths, calls and the steps after them.

use jaq_json::Val;

use super::ast::{Expr, Pick, Step};
use super::dialect::Dialect;
use super::functions::{self, Function, Row};
use super::lex::Token;
use super::parse::{Parser, Result};
use super::values;
use crate::jsonpath;

/// The names for the data in specification texts.
const DATA: [&str; 6] = [
    "stateData",
    "stateInputData",
    "stateOutputData",
    "taskData",
    "taskInputData",
    "taskOutputData",
];
const SECRETS: &str = "SECRETS";

impl<'s> Parser<'s> {
    /// A value and the steps after it.
    pub fn steps(&mut self) -> Result<Expr> {
        let base = self.primary()?;
        let mut steps = Vec::new();
        loop {
            let Token::Sign(sign) = *self.peek()? else {
                break;
            };
            match sign {
                "." => {
                    self.skip()?;
                    self.member(&mut steps)?;
                }
                "?." => {
                    self.skip()?;
                    steps.push(Step::Safe);
                    self.member(&mut steps)?;
                }
                "[" => {
                    self.skip()?;
                    let index = self.index()?;
                    self.expect("]")?;
                    steps.push(Step::Index(index));
                }
                ".?[" | ".^[" | ".$[" | ".![" | "?.?[" | "?.^[" | "?.$[" | "?.![" => {
                    self.skip()?;
                    if sign.starts_with('?') {
                        steps.push(Step::Safe);
                    }
                    steps.push(self.selection(sign)?);
                }
                _ => break,
            }
        }
        if steps.is_empty() {
            return Ok(base);
        }
        let base = match base {
            Expr::Data => self.of_data(&mut steps),
            Expr::Variable(place) if self.vars.get(place) == Some(&SECRETS) => {
                self.note(steps.first());
                base
            }
            Expr::Name(name) if &*name == SECRETS && self.vars.contains(&SECRETS) => {
                self.note(steps.first());
                Expr::Name(name)
            }
            base => base,
        };
        match steps.is_empty() {
            true => Ok(base),
            false => Ok(Expr::Steps(Box::new(base), steps)),
        }
    }

    /// `$.error` exists even if the data has no such member, if there is a variable with that name.
    fn of_data(&mut self, steps: &mut Vec<Step>) -> Expr {
        let place = self.vars.iter().rposition(|var| *var == "error");
        let named = matches!(steps.first(), Some(Step::Member(Val::TStr(name))) if name[..] == b"error"[..]);
        match place {
            Some(place) if named => {
                steps.remove(0);
                Expr::Error(place)
            }
            _ => Expr::Data,
        }
    }

    /// Records which secret is used.
    fn note(&mut self, step: Option<&Step>) {
        let name = match step {
            Some(Step::Member(Val::TStr(name)) | Step::Index(Expr::Literal(Val::TStr(name)))) => {
                String::from_utf8_lossy(name).into_owned()
            }
            _ => {
                self.secrets.other = true;
                return;
            }
        };
        if !self.secrets.names.contains(&name) {
            self.secrets.names.push(name);
        }
    }

    fn selection(&mut self, sign: &str) -> Result<Step> {
        self.inside += 1;
        let inner = self.expr()?;
        self.inside -= 1;
        self.expect("]")?;
        Ok(match sign.trim_start_matches('?') {
            ".![" => Step::Project(inner),
            ".^[" => Step::Select(Pick::First, inner),
            ".$[" => Step::Select(Pick::Last, inner),
            _ => Step::Select(Pick::All, inner),
        })
    }

    /// The index in brackets. In SpEL, a bare name is a key.
    fn index(&mut self) -> Result<Expr> {
        let expr = self.expr()?;
        Ok(match expr {
            Expr::Name(name) if self.dialect == Dialect::Spel => {
                Expr::Literal(Val::from(String::from(name)))
            }
            expr => expr,
        })
    }

    /// The member after a dot.
    fn member(&mut self, steps: &mut Vec<Step>) -> Result<()> {
        let begin = self.at;
        let name = match self.skip()? {
            Token::Word(name) => name.to_owned(),
            // In JEXL, an element, or a name in quotes.
            Token::Number(index @ Val::Num(_)) if self.dialect == Dialect::Jexl => {
                steps.push(Step::Index(Expr::Literal(index)));
                return Ok(());
            }
            Token::Text(name) if self.dialect == Dialect::Jexl => {
                steps.push(Step::Member(Val::from(name)));
                return Ok(());
            }
            _ => {
                self.jump(begin);
                return Err(self.unexpected("a name"));
            }
        };
        if !self.take("(")? {
            if matches!(&*name, "class") && self.dialect != Dialect::Cel {
                let why = self.dialect.refused(&name).unwrap_or_default();
                return Err(self.fail_at(begin, &format!("`{name}` is not available: {why}")));
            }
            steps.push(Step::Member(Val::from(name)));
            return Ok(());
        }
        if let Some(step) = self.macro_call(&name)? {
            steps.push(step);
            return Ok(());
        }
        let row = self.known(&name, begin, functions::method(&name, self.dialect), true)?;
        let arguments = self.nested(Self::arguments)?;
        self.count(row, 1 + arguments.len(), begin, true)?;
        self.check(row.function, &arguments, begin)?;
        steps.push(Step::Call(row.function, arguments));
        Ok(())
    }

    /// Reads up to and including the closing parenthesis.
    fn arguments(&mut self) -> Result<Vec<Expr>> {
        let mut arguments = Vec::new();
        if self.take(")")? {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expr()?);
            if self.take(")")? {
                return Ok(arguments);
            }
            if !self.take(",")? {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
    }

    fn known(
        &self,
        name: &str,
        at: usize,
        row: Option<&'static Row>,
        method: bool,
    ) -> Result<&'static Row> {
        if let Some(row) = row {
            return Ok(row);
        }
        let language = self.dialect.name();
        if let Some(why) = self.dialect.refused(name) {
            return Err(self.fail_at(at, &format!("`{name}` is not available: {why}")));
        }
        let kind = if method { "method" } else { "function" };
        let mut message = format!("there is no {kind} `{name}` in {language} here");
        if let Some(near) = functions::nearest(name, self.dialect, method) {
            message.push_str(&format!("; did you mean `{near}`?"));
        }
        Err(self.fail_at(at, &message))
    }

    /// `given` includes the value that a method is called on.
    fn count(&self, row: &Row, given: usize, at: usize, method: bool) -> Result<()> {
        if (row.least..=row.most).contains(&given) {
            return Ok(());
        }
        let own = usize::from(method);
        let (least, most, given) = (row.least - own, row.most - own, given - own);
        let wanted = match least == most {
            true => least.to_string(),
            false => format!("{least} to {most}"),
        };
        let message = format!("`{}` takes {wanted} arguments and gets {given}", row.name);
        Err(self.fail_at(at, &message))
    }

    fn check(&self, function: Function, arguments: &[Expr], at: usize) -> Result<()> {
        if let (Function::Matches | Function::Find, Some(Expr::Literal(pattern))) =
            (function, arguments.last())
        {
            values::check_pattern(pattern).map_err(|why| self.fail_at(at, &why))?;
        }
        Ok(())
    }

    fn primary(&mut self) -> Result<Expr> {
        const OPERAND: &str = "a value, a name or `(`";
        let begin = self.at;
        match self.peek()?.clone() {
            Token::Number(value) => {
                self.skip()?;
                Ok(Expr::Literal(value))
            }
            Token::Text(text) => {
                self.skip()?;
                Ok(Expr::Literal(Val::from(text)))
            }
            Token::Word(word) => self.word(word, begin),
            Token::Sign("(") => {
                self.skip()?;
                let inner = self.expr()?;
                self.expect(")")?;
                // So that enclosing operators and steps see a single value.
                Ok(inner)
            }
            Token::Sign("$") => self.dollar(begin),
            Token::Sign("#") => self.hash(begin),
            Token::Sign("[") if self.dialect != Dialect::Spel => {
                self.skip()?;
                self.nested(|parser| parser.list("]"))
            }
            Token::Sign("{") => {
                self.skip()?;
                self.nested(Self::braces)
            }
            Token::Sign("@") => Err(self.fail("`@` is not available: there are no beans")),
            Token::Sign("++" | "--") => Err(self.fail("there are no assignments here")),
            _ => Err(self.unexpected(OPERAND)),
        }
    }

    fn list(&mut self, close: &str) -> Result<Expr> {
        let mut items = Vec::new();
        while !self.take(close)? {
            items.push(self.expr()?);
            if !self.take(",")? {
                self.expect(close)?;
                break;
            }
        }
        Ok(Expr::List(items))
    }

    /// A map. In SpEL and JEXL it may also be a list (or set).
    fn braces(&mut self) -> Result<Expr> {
        if self.take(":")? {
            self.expect("}")?;
            return Ok(Expr::Map(Vec::new()));
        }
        if self.take("}")? {
            return Ok(match self.dialect {
                Dialect::Cel => Expr::Map(Vec::new()),
                _ => Expr::List(Vec::new()),
            });
        }
        let (mut items, mut members) = (Vec::new(), Vec::new());
        loop {
            let key = self.expr()?;
            let is_member = match self.dialect {
                Dialect::Cel => {
                    self.expect(":")?;
                    true
                }
                _ => self.take(":")?,
            };
            if is_member {
                let key = match key {
                    Expr::Name(name) if self.dialect == Dialect::Spel => {
                        Expr::Literal(Val::from(String::from(name)))
                    }
                    key => key,
                };
                members.push((key, self.expr()?));
            } else {
                items.push(key);
            }
            if !items.is_empty() && !members.is_empty() {
                return Err(self.fail("this is neither a list nor a map"));
            }
            if !self.take(",")? {
                self.expect("}")?;
                break;
            }
        }
        Ok(match items.is_empty() {
            true => Expr::Map(members),
            false => Expr::List(items),
        })
    }

    fn word(&mut self, word: &'s str, begin: usize) -> Result<Expr> {
        let literal = match (word, self.dialect) {
            ("true", _) => Some(Val::Bool(true)),
            ("false", _) => Some(Val::Bool(false)),
            ("null", _) => Some(Val::Null),
            (word, Dialect::Spel) if word.eq_ignore_ascii_case("true") => Some(Val::Bool(true)),
            (word, Dialect::Spel) if word.eq_ignore_ascii_case("false") => Some(Val::Bool(false)),
            (word, Dialect::Spel) if word.eq_ignore_ascii_case("null") => Some(Val::Null),
            _ => None,
        };
        if let Some(literal) = literal {
            self.skip()?;
            return Ok(Expr::Literal(literal));
        }
        if self.dialect.word(word).is_some() {
            return Err(self.unexpected("a value, a name or `(`"));
        }
        self.skip()?;
        if self.take("(")? {
            return self.function(word, begin);
        }
        if let (Some(why), false) = (self.dialect.refused(word), self.is_data_name(word)) {
            return Err(self.fail_at(begin, &format!("`{word}` is not available: {why}")));
        }
        if let Some(place) = self.locals.iter().rposition(|local| *local == word) {
            return Ok(Expr::Local(place));
        }
        if self.inside == 0 && DATA.contains(&word) {
            return Ok(Expr::Data);
        }
        if self.vars.contains(&word) {
            self.used.insert(word.to_owned());
            self.whole_secrets(word)?;
        }
        Ok(Expr::Name(word.into()))
    }

    /// `type` and `class` may also be names of members.
    fn is_data_name(&self, word: &str) -> bool {
        matches!(
            word,
            "T" | "class" | "type" | "duration" | "timestamp" | "bytes" | "cel" | "getClass"
        )
    }

    /// All secrets at once, unless a member follows.
    fn whole_secrets(&mut self, name: &str) -> Result<()> {
        if name == SECRETS && !matches!(self.peek()?, Token::Sign("." | "[" | "?.")) {
            self.secrets.other = true;
        }
        Ok(())
    }

    /// A call, beginning after its parenthesis.
    fn function(&mut self, name: &str, begin: usize) -> Result<Expr> {
        if name == "jsonPath" {
            return self.nested(Self::json_path);
        }
        if name == "has" && self.dialect == Dialect::Cel {
            return self.nested(|parser| parser.has(begin));
        }
        let row = self.known(name, begin, functions::function(name, self.dialect), false)?;
        let arguments = self.nested(Self::arguments)?;
        self.count(row, arguments.len(), begin, false)?;
        self.check(row.function, &arguments, begin)?;
        Ok(Expr::Call(row.function, arguments))
    }

    /// The operators `empty` and `size` in JEXL.
    pub fn word_call(&self, word: &str, operand: Expr) -> Expr {
        let function = match word {
            "empty" => Function::IsEmpty,
            _ => Function::Size,
        };
        Expr::Call(function, vec![operand])
    }

    /// `jsonPath(data, '$..a')`, beginning after its parenthesis.
    fn json_path(&mut self) -> Result<Expr> {
        let of = self.expr()?;
        self.expect(",")?;
        let at = self.at;
        let Token::Text(source) = self.skip()? else {
            return Err(self.fail_at(at, "the JSONPath must be a string"));
        };
        self.expect(")")?;
        let mut parser = jsonpath::Parser::new(&source, self.vars);
        let path = parser.whole().map_err(|error| {
            let message = format!("`{source}` is not a JSONPath: {}", error.message);
            self.fail_at(at, &message)
        })?;
        let (used, secrets) = parser.uses();
        self.used.extend(used);
        self.secrets.other |= secrets.other || !secrets.names.is_empty();
        Ok(Expr::Path(Box::new(of), Box::new(path)))
    }

    /// `$`, `$name`, or a JSONPath that may select many values.
    fn dollar(&mut self, begin: usize) -> Result<Expr> {
        let mut parser = jsonpath::Parser::new(self.source, self.vars);
        parser.at = begin;
        // A path to a single location is evaluated by the rules of the language itself.
        if let Ok(query) = parser.query()
            && !query.singular()
        {
            let end = parser.at;
            let (used, secrets) = parser.uses();
            self.used.extend(used);
            self.secrets.other |= secrets.other || !secrets.names.is_empty();
            self.jump(end);
            let path = jsonpath::Expr::Query(query);
            return Ok(Expr::Path(Box::new(Expr::Data), Box::new(path)));
        }
        self.skip()?;
        // `$name`, without a space.
        let named = self.at == begin + 1;
        match self.peek()?.clone() {
            Token::Word(name) if named && !matches!(self.dialect.word(name), Some((_, 1..))) => {
                self.skip()?;
                self.variable(name, begin)
            }
            _ => Ok(Expr::Data),
        }
    }

    /// `#root`, `#this`, `#name`, `#jsonPath(...)`.
    fn hash(&mut self, begin: usize) -> Result<Expr> {
        self.skip()?;
        let name = match self.skip()? {
            Token::Word(name) => name,
            _ => {
                self.jump(begin);
                return Err(self.unexpected("the name of a variable"));
            }
        };
        if self.take("(")? {
            if name != "jsonPath" {
                let message = format!("there is no function `#{name}`, only `#jsonPath`");
                return Err(self.fail_at(begin, &message));
            }
            return self.nested(Self::json_path);
        }
        match name {
            "root" => Ok(Expr::Data),
            "this" if self.inside > 0 => Ok(Expr::This),
            "this" => Ok(Expr::Data),
            name if DATA.contains(&name) => Ok(Expr::Data),
            name => self.variable(name, begin),
        }
    }

    fn variable(&mut self, name: &str, begin: usize) -> Result<Expr> {
        let Some(place) = self.vars.iter().rposition(|var| *var == name) else {
            let all: Vec<String> = self.vars.iter().map(|var| format!("#{var}")).collect();
            let only = match all.is_empty() {
                true => String::new(),
                false => format!(" (there are {})", all.join(", ")),
            };
            let message =
                format!("there is no variable `{name}`{only}; for a member write `{name}`");
            return Err(self.fail_at(begin, &message));
        };
        self.used.insert(name.to_owned());
        self.whole_secrets(name)?;
        Ok(Expr::Variable(place))
    }
}
