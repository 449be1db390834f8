//! The differences between the three languages: their operators, and the names that each refuses.

use super::op::Op;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Spel,
    Jexl,
    Cel,
}

/// A bit for each language, for tables.
pub(super) const SPEL: u8 = 1;
pub(super) const JEXL: u8 = 2;
pub(super) const CEL: u8 = 4;
pub(super) const JAVA: u8 = SPEL | JEXL;
pub(super) const ALL: u8 = SPEL | JEXL | CEL;

/// The precedence of binary operators, from loosest to tightest.
pub(super) const OR: u8 = 1;
pub(super) const AND: u8 = 2;
const EQUALITY: u8 = 3;
const ORDER: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const POWER: u8 = 7;

/// Symbols that are operators between two operands.
const SIGNS: [(&str, Op, u8, u8); 22] = [
    ("!=", Op::Ne, EQUALITY, ALL),
    ("!$", Op::NotEndsWith, ORDER, JEXL),
    ("!^", Op::NotStartsWith, ORDER, JEXL),
    ("!~", Op::NotIn, ORDER, JEXL),
    ("%", Op::Rem, PRODUCT, ALL),
    ("&&", Op::And, AND, ALL),
    ("*", Op::Mul, PRODUCT, ALL),
    ("+", Op::Add, SUM, ALL),
    ("-", Op::Sub, SUM, ALL),
    ("/", Op::Div, PRODUCT, ALL),
    ("<", Op::Lt, ORDER, ALL),
    ("<=", Op::Le, ORDER, ALL),
    ("=$", Op::EndsWith, ORDER, JEXL),
    ("==", Op::Eq, EQUALITY, ALL),
    ("=^", Op::StartsWith, ORDER, JEXL),
    ("=~", Op::In, ORDER, JEXL),
    // SpEL itself doesn't have it, but definitions use it.
    ("=~", Op::Matches, ORDER, SPEL),
    (">", Op::Gt, ORDER, ALL),
    (">=", Op::Ge, ORDER, ALL),
    ("^", Op::Pow, POWER, SPEL),
    ("||", Op::Or, OR, ALL),
    ("=", Op::Assign, 0, JAVA),
];

/// Words that are operators between two operands.
const WORDS: [(&str, Op, u8, u8); 14] = [
    ("and", Op::And, AND, JAVA),
    ("between", Op::Between, ORDER, SPEL),
    ("div", Op::Div, PRODUCT, JAVA),
    ("eq", Op::Eq, EQUALITY, JAVA),
    ("ge", Op::Ge, ORDER, JAVA),
    ("gt", Op::Gt, ORDER, JAVA),
    ("in", Op::In, ORDER, CEL),
    ("le", Op::Le, ORDER, JAVA),
    ("lt", Op::Lt, ORDER, JAVA),
    ("matches", Op::Matches, ORDER, SPEL),
    ("mod", Op::Rem, PRODUCT, JAVA),
    ("ne", Op::Ne, EQUALITY, JAVA),
    ("or", Op::Or, OR, JAVA),
    ("instanceof", Op::InstanceOf, 0, JAVA),
];

/// All symbols of a language, longer ones first.
const LEX_SPEL: [&str; 42] = [
    "?.![", "?.?[", "?.^[", "?.$[", ".![", ".?[", ".^[", ".$[", "==", "!=", "<=", ">=", "&&", "||",
    "++", "--", "=~", "?.", "?:", "(", ")", "[", "]", "{", "}", ",", ".", "?", ":", "<", ">", "+",
    "-", "*", "/", "%", "^", "!", "#", "$", "@", "=",
];
const LEX_JEXL: [&str; 52] = [
    "...", "==", "!=", "<=", ">=", "&&", "||", "=~", "!~", "=^", "!^", "=$", "!$", "?:", "??",
    "?.", "..", "->", "=>", "+=", "-=", "*=", "/=", "%=", "++", "--", "(", ")", "[", "]", "{", "}",
    ",", ".", "?", ":", "<", ">", "+", "-", "*", "/", "%", "!", "=", "#", "$", ";", "&", "|", "^",
    "~",
];
const LEX_CEL: [&str; 31] = [
    "==", "!=", "<=", ">=", "&&", "||", "(", ")", "[", "]", "{", "}", ",", ".", "?", ":", "<", ">",
    "+", "-", "*", "/", "%", "!", "#", "$", "=", "&", "|", "^", "~",
];

/// Parts of a language that are not available here.
const REFUSED: [(&str, u8, &str); 22] = [
    ("T", SPEL, "types of a host language are not available"),
    ("break", JEXL, "statements are not available"),
    ("continue", JEXL, "statements are not available"),
    ("const", JEXL, "variables cannot be declared"),
    ("do", JEXL, "statements are not available"),
    ("for", JEXL, "statements are not available"),
    ("function", JEXL, "functions cannot be defined"),
    ("if", JEXL, "statements are not available; use `a ? b : c`"),
    (
        "instanceof",
        JAVA,
        "types of a host language are not available",
    ),
    ("let", JEXL, "variables cannot be declared"),
    ("new", JAVA, "objects of a host language cannot be made"),
    ("pragma", JEXL, "pragmas are not available"),
    ("return", JEXL, "statements are not available"),
    ("var", JEXL, "variables cannot be declared"),
    ("while", JEXL, "statements are not available"),
    ("duration", CEL, "there are no durations; compare numbers"),
    (
        "getClass",
        JAVA,
        "types of a host language are not available",
    ),
    (
        "timestamp",
        CEL,
        "there are no timestamps; compare strings of one ISO 8601 form",
    ),
    ("type", CEL, "types are not available"),
    ("class", JAVA, "types of a host language are not available"),
    ("bytes", CEL, "there are no bytes"),
    ("cel", CEL, "extensions are not available"),
];

impl Dialect {
    pub fn bit(self) -> u8 {
        match self {
            Dialect::Spel => SPEL,
            Dialect::Jexl => JEXL,
            Dialect::Cel => CEL,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Dialect::Spel => "SpEL",
            Dialect::Jexl => "JEXL",
            Dialect::Cel => "CEL",
        }
    }

    pub fn signs(self) -> &'static [&'static str] {
        match self {
            Dialect::Spel => &LEX_SPEL,
            Dialect::Jexl => &LEX_JEXL,
            Dialect::Cel => &LEX_CEL,
        }
    }

    /// The operator that a symbol stands for between two operands, and its precedence.
    pub fn sign(self, sign: &str) -> Option<(Op, u8)> {
        self.find(&SIGNS, |known| known == sign)
    }

    pub fn word(self, word: &str) -> Option<(Op, u8)> {
        // SpEL's word operators are case-insensitive.
        self.find(&WORDS, |known| match self {
            Dialect::Spel => known.eq_ignore_ascii_case(word),
            _ => known == word,
        })
    }

    fn find(self, table: &[(&str, Op, u8, u8)], same: impl Fn(&str) -> bool) -> Option<(Op, u8)> {
        let mut rows = table.iter();
        let (_, op, level, _) =
            rows.find(|(known, _, _, bits)| bits & self.bit() != 0 && same(known))?;
        // Only JEXL has two levels of comparisons.
        let level = match *level {
            EQUALITY if self != Dialect::Jexl => ORDER,
            level => level,
        };
        Some((*op, level))
    }

    /// The reason why a word is not available.
    pub fn refused(self, word: &str) -> Option<&'static str> {
        let mut rows = REFUSED.iter();
        let (.., why) = rows.find(|(known, bits, _)| *known == word && bits & self.bit() != 0)?;
        Some(why)
    }
}
