//! The values that the reader accepts at a location.

use serde_json::{Value, json};

use swirl_documents::codes;

use super::ask::{Reader, STAND_IN, TrialLocation};

/// The values that are valid at a location. If all fields are false or empty, none is valid.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Shape {
    /// Any value is valid, and the other fields are unused.
    pub(super) anything: bool,
    pub(super) null: bool,
    pub(super) boolean: bool,
    pub(super) number: Option<Number>,
    pub(super) text: Option<Text>,
    pub(super) list: Option<List>,
    pub(super) objects: Vec<Object>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    pub(super) whole: bool,
    pub(super) least: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Text {
    Any,
    Words {
        words: Vec<String>,
        any_case: bool,
    },
    /// Texts that match one of these patterns.
    Fitting(Vec<&'static str>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct List {
    pub(super) items: Box<Shape>,
    pub(super) may_be_empty: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    /// The reader doesn't compare its properties with anything.
    Free,
    /// An object by its index.
    Known(usize),
}

/// Texts with a meaning for readers that refuse all others, and the pattern for each kind.
const FORMS: [(&str, &str); 9] = [
    ("true", "^([tT]rue|TRUE)$"),
    ("false", "^([fF]alse|FALSE)$"),
    ("2", "^\\s*[0-9]+\\s*$"),
    ("2.5", "^\\s*[-+.0-9eE]+\\s*$"),
    ("PT1S", "^\\s*[-+]?[pP]"),
    ("${ .a }", "\\$\\{"),
    ("{{ $.a }}", "\\{\\{"),
    ("R/PT1H", "^\\s*[rR]"),
    ("2030-01-01T00:00:00Z", "^\\s*[0-9]{4}-"),
];

/// The values that are tried, except objects and lists, which contain others.
pub(super) fn scalars(reader: &Reader, place: &TrialLocation) -> (Shape, bool) {
    let mut is_silent = true;
    let mut accepts = |value: Value| {
        let said = reader.try_value(place, value);
        is_silent &= said.at(&place.pointer).next().is_none();
        said.refusal(place).is_none()
    };
    let null = accepts(Value::Null);
    let boolean = accepts(json!(true));
    let number = number(&mut accepts);
    let (text, is_free) = text(reader, place, boolean || number.is_some());
    let shape = Shape {
        null,
        boolean,
        number,
        text,
        ..Shape::default()
    };
    (shape, is_silent && is_free)
}

/// The valid numbers. Most readers take none, or all, so most places need few questions.
fn number(mut accepts: impl FnMut(Value) -> bool) -> Option<Number> {
    let is_any = accepts(json!(-1));
    let least = match !is_any && accepts(json!(1)) {
        true => Some(i64::from(!accepts(json!(0)))),
        false => Some(2).filter(|_| !is_any && accepts(json!(2))),
    };
    let fraction = accepts(json!(1.5)) || accepts(json!(0.5));
    (is_any || least.is_some() || fraction).then_some(Number {
        whole: !fraction,
        least,
    })
}

/// The valid texts, and whether the reader accepts every text. `has_others`: whether it accepts other scalars.
fn text(reader: &Reader, place: &TrialLocation, has_others: bool) -> (Option<Text>, bool) {
    let said = reader.try_value(place, json!(STAND_IN));
    let is_silent = said.at(&place.pointer).next().is_none();
    let Some(refusal) = said.refusal(place) else {
        return (Some(Text::Any), is_silent);
    };
    let accepts = |text: &str| {
        let said = reader.try_value(place, json!(text));
        said.refusal(place).is_none()
    };
    if refusal.code == codes::UNKNOWN_VALUE {
        let words = reader.words(place, refusal);
        if !words.is_empty() {
            let any_case = words.iter().all(|word| accepts(&word.to_uppercase()));
            return (Some(Text::Words { words, any_case }), false);
        }
    }
    // A place that takes no other scalar takes a text only as an expression.
    let is_likely =
        |text: &str| has_others || refusal.code != codes::WRONG_TYPE || text.contains('{');
    let fitting = FORMS
        .iter()
        .filter(|(text, _)| is_likely(text) && accepts(text));
    let fitting: Vec<&str> = fitting.map(|(_, pattern)| *pattern).collect();
    let text = Some(fitting).filter(|fitting| !fitting.is_empty());
    (text.map(Text::Fitting), false)
}

impl Shape {
    pub(super) fn anything() -> Shape {
        Shape {
            anything: true,
            ..Shape::default()
        }
    }

    /// The words that it accepts, if it accepts no other text.
    pub(super) fn words(&self) -> &[String] {
        match &self.text {
            Some(Text::Words { words, .. }) => words,
            _ => &[],
        }
    }

    /// The shape of values that have one shape or the other.
    pub(super) fn or(self, other: Shape) -> Shape {
        if self.anything || other.anything {
            return Shape::anything();
        }
        let number = match (self.number, other.number) {
            (Some(one), Some(other)) => Some(Number {
                whole: one.whole && other.whole,
                least: match (one.least, other.least) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    _ => None,
                },
            }),
            (one, other) => one.or(other),
        };
        let text = match (self.text, other.text) {
            (Some(one), Some(other)) if one == other => Some(one),
            (Some(_), Some(_)) => Some(Text::Any),
            (one, other) => one.or(other),
        };
        let list = match (self.list, other.list) {
            (Some(one), Some(other)) => Some(List {
                items: Box::new(one.items.or(*other.items)),
                may_be_empty: one.may_be_empty || other.may_be_empty,
            }),
            (one, other) => one.or(other),
        };
        let mut objects = self.objects;
        for object in other.objects {
            if !objects.contains(&object) {
                objects.push(object);
            }
        }
        Shape {
            anything: false,
            null: self.null || other.null,
            boolean: self.boolean || other.boolean,
            number,
            text,
            list,
            objects,
        }
    }

    /// Some valid values.
    pub(super) fn samples(&self, of_object: &dyn Fn(usize) -> Value) -> Vec<Value> {
        if self.anything {
            return vec![json!({})];
        }
        let mut all = Vec::new();
        if let Some(text) = &self.text {
            all.push(match text {
                Text::Any => json!(STAND_IN),
                Text::Words { words, .. } => json!(words.first()),
                Text::Fitting(patterns) => {
                    let form = FORMS.iter().find(|(_, pattern)| patterns.contains(pattern));
                    json!(form.map(|(text, _)| *text))
                }
            });
        }
        if self.boolean {
            all.extend([json!(true), json!(false)]);
        }
        if let Some(number) = &self.number {
            all.push(json!(number.least.unwrap_or(0)));
        }
        if let Some(list) = &self.list {
            let items = list.items.samples(of_object);
            all.push(match (list.may_be_empty, items.into_iter().next()) {
                (false, Some(item)) => json!([item]),
                _ => json!([]),
            });
        }
        all.extend(self.objects.iter().map(|object| match object {
            Object::Known(index) => of_object(*index),
            Object::Free => json!({}),
        }));
        all
    }
}
