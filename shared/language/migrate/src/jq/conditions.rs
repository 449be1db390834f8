//! Converts conditions of older editions, which compare the selection of a path with a value, to jq. Numbers and texts
//! that look like numbers are compared as numbers, everything else as text (docs/language.md#decision-39).

use swirl_model::Data;
use swirl_model::workflow::{Comparison, ExprId, Test};

use super::paths::{One, Selection};

/// A condition in jq.
pub(crate) struct Condition {
    pub text: String,
    /// It needs no parentheses inside other conditions.
    plain: bool,
}

fn plain(text: String) -> Condition {
    Condition { text, plain: true }
}

fn compound(text: String) -> Condition {
    Condition { text, plain: false }
}

impl Condition {
    fn inner(&self) -> String {
        match self.plain {
            true => self.text.clone(),
            false => format!("({})", self.text),
        }
    }
}

pub(crate) struct Conditions<'p> {
    /// The selection of a path; `None` if it has no form in jq.
    pub path: &'p dyn Fn(ExprId) -> Option<Selection>,
    /// The state data is always an object.
    pub object: bool,
}

impl Conditions<'_> {
    /// The test in jq; `None` if a path or a value has no form in jq.
    pub fn written(&self, test: &Test) -> Option<Condition> {
        Some(match test {
            Test::Holds(id) => match (self.path)(*id)? {
                // Values other than true, false and null are an error.
                Selection::One(_) => return None,
                Selection::Many(each) => plain(format!("any({each}; true)")),
            },
            Test::Exists(id) => match (self.path)(*id)? {
                Selection::One(one) => {
                    compound(format!("{} | . and . != []", one.or_null(self.object)))
                }
                Selection::Many(each) => plain(format!("any({each}; true)")),
            },
            Test::Compare {
                path,
                operator,
                value,
                as_text,
            } => match (self.path)(*path)? {
                Selection::One(one) => self.one(&one, *operator, value, *as_text)?,
                Selection::Many(each) => {
                    let test = compared(".", *operator, value, *as_text)?;
                    plain(format!("any({each}; {})", test.text))
                }
            },
            Test::All(tests) => match self.not_null(tests) {
                Some(condition) => condition,
                None => self.joined(tests, " and ", "true")?,
            },
            Test::Any(tests) => self.joined(tests, " or ", "false")?,
            Test::Not(test) => self.negated(test)?,
        })
    }

    fn one(
        &self,
        one: &One,
        operator: Comparison,
        value: &Data,
        as_text: bool,
    ) -> Option<Condition> {
        match operator {
            Comparison::Present => Some(plain(one.is_there(self.object, false))),
            Comparison::Null => Some(compound(one.is_there(self.object, true))),
            _ => compared(&one.or_null(self.object), operator, value, as_text),
        }
    }

    /// Present and not null, for expressions that can't be null themselves.
    fn not_null(&self, tests: &[Test]) -> Option<Condition> {
        let [present, Test::Not(null)] = tests else {
            return None;
        };
        let path = |test: &Test, wanted: Comparison| match test {
            Test::Compare { path, operator, .. } if *operator == wanted => Some(*path),
            _ => None,
        };
        let id = path(present, Comparison::Present)?;
        if path(null, Comparison::Null)? != id {
            return None;
        }
        match (self.path)(id)? {
            Selection::One(one) => Some(plain(format!("{} != null", one.or_null(self.object)))),
            Selection::Many(_) => None,
        }
    }

    fn joined(&self, tests: &[Test], join: &str, none: &str) -> Option<Condition> {
        let mut texts = Vec::with_capacity(tests.len());
        for test in tests {
            texts.push(self.written(test)?);
        }
        Some(match texts.as_slice() {
            [] => plain(none.to_owned()),
            [_] => texts.remove(0),
            _ => {
                let texts: Vec<String> = texts.iter().map(Condition::inner).collect();
                compound(texts.join(join))
            }
        })
    }

    fn negated(&self, test: &Test) -> Option<Condition> {
        let written = self.written(test)?;
        let equal = matches!(
            test,
            Test::Compare {
                operator: Comparison::Equal,
                ..
            }
        );
        if equal
            && written.plain
            && !written.text.starts_with("any(")
            && let Some((left, right)) = written.text.split_once(" == ")
        {
            return Some(plain(format!("{left} != {right}")));
        }
        Some(compound(format!("{} | not", written.inner())))
    }
}

fn compared(found: &str, operator: Comparison, value: &Data, as_text: bool) -> Option<Condition> {
    if value.is_null() && !matches!(operator, Comparison::Null | Comparison::Present) {
        return None;
    }
    let text = value.to_text();
    let quoted = Data::string(text.as_str()).to_string();
    let number = match as_text {
        true => None,
        false => number(&text)?,
    };
    let sign = match operator {
        Comparison::Present => return Some(plain("true".to_owned())),
        Comparison::Null => return Some(plain(format!("{found} == null"))),
        Comparison::Matches => {
            return Some(compound(format!(
                "{found} | . != null and (tostring | test({quoted}))"
            )));
        }
        Comparison::Equal => return Some(equals(found, &text, number.as_deref())),
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    };
    Some(compound(match number {
        None => format!("{found} | . != null and tostring {sign} {quoted}"),
        Some(number) => format!(
            "{found} | . != null and (try (tonumber {sign} {number}) catch (tostring {sign} {quoted}))"
        ),
    }))
}

fn equals(found: &str, text: &str, number: Option<&str>) -> Condition {
    let quoted = Data::string(text).to_string();
    if let Some(number) = number {
        return plain(format!("({found} | tonumber? // null) == {number}"));
    }
    if text == "null" {
        return compound(format!("{found} | . != null and tostring == {quoted}"));
    }
    // Only a text can be equal to a text that isn't JSON.
    match Data::parse(text.as_bytes()) {
        Ok(_) => plain(format!("({found} | tostring) == {quoted}")),
        Err(_) => plain(format!("{found} == {quoted}")),
    }
}

/// The number that a text looks like, in jq notation; `None` if jq has no such number.
#[expect(clippy::option_option, reason = "what isn't a number is fine, too")]
fn number(text: &str) -> Option<Option<String>> {
    let text = text.trim();
    let Ok(number) = text.parse::<f64>() else {
        return Some(None);
    };
    if number.is_nan() {
        return Some(None);
    }
    let json = Data::parse(text.as_bytes()).ok()?;
    json.as_str().is_none().then(|| Some(json.to_string()))
}

#[cfg(test)]
mod tests {
    use swirl_expr::{Env, Program};
    use swirl_model::data;

    use super::*;

    const A: ExprId = ExprId(0);
    const DEEP: ExprId = ExprId(1);
    const EACH: ExprId = ExprId(2);

    fn path(id: ExprId) -> Option<Selection> {
        Selection::parse(["$.a", "$.a.b", "$.a[*]"][id.0 as usize])
    }

    fn compare(path: ExprId, operator: Comparison, value: Data, as_text: bool) -> Test {
        Test::Compare {
            path,
            operator,
            value,
            as_text,
        }
    }

    fn holds(test: &Test, object: bool, data: &Data) -> (String, bool) {
        let conditions = Conditions {
            path: &path,
            object,
        };
        let text = conditions.written(test).unwrap().text;
        let program = Program::jq(&text, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
        let found = program.one(data, &[], &Env::default());
        let found = found.unwrap_or_else(|error| panic!("{text} on {data}: {error}"));
        let found = found.and_then(|found| found.as_bool());
        (
            text,
            found.unwrap_or_else(|| panic!("no boolean: on {data}")),
        )
    }

    #[test]
    fn comparisons() {
        use Comparison::{
            Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Matches, Null, Present,
        };
        let no = |test| Test::Not(Box::new(test));
        for (test, data, expected) in [
            (
                compare(A, Equal, data!("x"), false),
                data!({"a": "x"}),
                true,
            ),
            (compare(A, Equal, data!("x"), false), data!({}), false),
            (no(compare(A, Equal, data!("x"), false)), data!({}), true),
            (
                compare(A, Equal, data!("18"), false),
                data!({"a": 18.0}),
                true,
            ),
            (
                compare(A, Equal, data!(18), false),
                data!({"a": " 18 "}),
                true,
            ),
            (
                compare(A, Equal, data!("18"), false),
                data!({"a": null}),
                false,
            ),
            (compare(A, Equal, data!("18"), true), data!({"a": 18}), true),
            (
                compare(A, Equal, data!("018"), true),
                data!({"a": 18}),
                false,
            ),
            (
                compare(A, Equal, data!("true"), false),
                data!({"a": true}),
                true,
            ),
            (
                compare(A, Equal, data!("null"), false),
                data!({"a": null}),
                false,
            ),
            (
                compare(A, Equal, data!("null"), false),
                data!({"a": "null"}),
                true,
            ),
            (compare(A, Less, data!("10"), false), data!({"a": 9}), true),
            (compare(A, Less, data!("10"), true), data!({"a": 9}), false),
            (compare(A, Less, data!("10"), false), data!({}), false),
            (
                compare(A, LessOrEqual, data!(10), false),
                data!({"a": "1e1"}),
                true,
            ),
            (
                compare(A, Greater, data!(10), false),
                data!({"a": "b"}),
                true,
            ),
            (
                compare(A, GreaterOrEqual, data!("b"), false),
                data!({"a": "b"}),
                true,
            ),
            (
                compare(A, Matches, data!("^x+$"), false),
                data!({"a": "xx"}),
                true,
            ),
            (compare(A, Matches, data!(""), false), data!({}), false),
            (
                compare(A, Null, Data::NULL, false),
                data!({"a": null}),
                true,
            ),
            (compare(A, Null, Data::NULL, false), data!({}), false),
            (
                compare(A, Present, Data::NULL, false),
                data!({"a": null}),
                true,
            ),
            (compare(A, Present, Data::NULL, false), data!({}), false),
            (
                compare(DEEP, Equal, data!("x"), false),
                data!({"a": 1}),
                false,
            ),
            (
                compare(DEEP, Equal, data!("x"), false),
                data!({"a": {"b": "x"}}),
                true,
            ),
            (
                compare(DEEP, Present, Data::NULL, false),
                data!({"a": [1]}),
                false,
            ),
            (
                compare(DEEP, Present, Data::NULL, false),
                data!({"a": {"b": 1}}),
                true,
            ),
            (
                compare(EACH, Greater, data!(2), false),
                data!({"a": [1, 3]}),
                true,
            ),
            (
                compare(EACH, Greater, data!(2), false),
                data!({"a": [1, 2]}),
                false,
            ),
            (
                no(compare(EACH, Equal, data!("x"), false)),
                data!({"a": ["x"]}),
                false,
            ),
            (Test::Exists(A), data!({"a": []}), false),
            (Test::Exists(A), data!({"a": 0}), true),
            (Test::Exists(A), data!({}), false),
            (
                Test::All(vec![
                    compare(A, Present, Data::NULL, false),
                    no(compare(A, Null, Data::NULL, false)),
                ]),
                data!({"a": null}),
                false,
            ),
            (
                Test::Any(vec![
                    compare(A, Equal, data!(1), false),
                    compare(A, Less, data!(0), false),
                ]),
                data!({"a": -1}),
                true,
            ),
        ] {
            for object in [true, false] {
                let (text, found) = holds(&test, object, &data);
                assert_eq!(found, expected, "{text} on {data}");
            }
        }
        // The data may be something other than an object.
        let (text, found) = holds(
            &no(compare(A, Equal, data!("x"), false)),
            false,
            &data!([1]),
        );
        assert!(found, "{text}");
    }

    #[test]
    fn simple_conditions_stay_short() {
        let conditions = Conditions {
            path: &path,
            object: true,
        };
        let text = |test: &Test| conditions.written(test).unwrap().text;
        let equal = compare(A, Comparison::Equal, data!("x"), false);
        assert_eq!(text(&equal), ".a == \"x\"");
        assert_eq!(text(&Test::Not(Box::new(equal.clone()))), ".a != \"x\"");
        let adult = compare(A, Comparison::GreaterOrEqual, data!("18"), false);
        assert_eq!(
            text(&Test::All(vec![equal, adult])),
            ".a == \"x\" and (.a | . != null and (try (tonumber >= 18) catch (tostring >= \"18\")))"
        );
    }
}
