//! Expressions, paths, and values that contain them.

use swirl_model::Data;
use swirl_model::workflow::{Count, ExprId, ExprSource, Language, PathId, Template, TextPart};

use super::writer::Writer;

impl Writer<'_> {
    pub fn expression(&mut self, id: ExprId) -> Data {
        let source = self.workflow[id].clone();
        Data::string(self.marked(&source))
    }

    pub fn count(&mut self, count: Count) -> Data {
        match count {
            Count::Fixed(count) => Data::int(count.into()),
            Count::Expression(id) => self.expression(id),
        }
    }

    pub fn path(&mut self, id: PathId) -> Data {
        let source = self.workflow[id].clone();
        Data::string(self.marked(&source))
    }

    fn marked(&mut self, source: &ExprSource) -> String {
        match source.language {
            language if language == self.language => {}
            Language::JsonPath => self.cannot(format!(
                "other parts need jq, and '{}' is not rewritten in jq: only paths to one value, '[*]' and simple filters are",
                source.text
            )),
            Language::Jq => self.cannot(format!(
                "'{}' is in another expression language than the rest; a document of 0.8 has one",
                source.text
            )),
            language => self.cannot(format!(
                "'{}' is an expression in {}; 0.8 has jq and JSONPath here",
                source.text,
                name(language)
            )),
        }
        format!("${{ {} }}", source.text)
    }

    /// The action's data itself, for a call without arguments.
    pub fn whole_data(&self) -> Data {
        Data::string(match self.language {
            Language::JsonPath => "${ $ }",
            _ => "${ . }",
        })
    }

    pub fn template(&mut self, template: &Template) -> Data {
        match template {
            Template::Literal(data) => literal(data),
            Template::Expression(id) | Template::Loose(id, _) => self.expression(*id),
            Template::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        TextPart::Text(plain) => text.push_str(&escaped(plain)),
                        TextPart::Expression(id) => {
                            let source = self.workflow[*id].clone();
                            text.push_str(&self.marked(&source));
                        }
                    }
                }
                Data::string(text)
            }
            Template::Array(items) => Data::array(
                items
                    .iter()
                    .map(|item| self.template(item))
                    .collect::<Vec<_>>(),
            ),
            Template::Object(members) => {
                let mut data = Data::object();
                for (key, value) in members {
                    data.set(key, self.template(value));
                }
                data
            }
        }
    }
}

fn name(language: Language) -> &'static str {
    match language {
        Language::Cel => "CEL",
        Language::Jexl => "JEXL",
        Language::Jq => "jq",
        Language::JsonPath => "JSONPath",
        Language::Spel => "SpEL",
    }
}

/// Data at a location where `${` would begin an expression.
pub(super) fn literal(data: &Data) -> Data {
    if let Some(text) = data.as_str() {
        return Data::string(escaped(text));
    }
    if let Some(items) = data.as_array() {
        let items = items.iter().map(|item| literal(&Data(item.clone())));
        return Data::array(items.collect());
    }
    if let Some(members) = data.as_object() {
        let mut found = Data::object();
        for (key, value) in members.iter() {
            found.set(&Data(key.clone()).to_text(), literal(&Data(value.clone())));
        }
        return found;
    }
    data.clone()
}

pub(super) fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}
