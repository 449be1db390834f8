//! Subjects of produced events.

use swirl_model::CloudEvent;

/// A subject that contains parts of the event: `swirl.events.{type}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Type,
    Source,
    Attribute(String),
}

/// Why a text is not a valid template of a subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("a '{{' in '{0}' has no '}}'")]
    Unclosed(String),
    #[error(
        "'{{{0}}}' names no attribute; '{{type}}', '{{source}}' or '{{an attribute's name}}' are allowed in a subject"
    )]
    Name(String),
    #[error(
        "'{0}' is not a subject to publish to: white space, '*', '>' and empty parts between dots are not allowed"
    )]
    Subject(String),
}

impl Template {
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| TemplateError::Unclosed(text.to_owned()))?;
            if !before.is_empty() {
                parts.push(TemplatePart::Text(before.to_owned()));
            }
            parts.push(match name {
                "type" => TemplatePart::Type,
                "source" => TemplatePart::Source,
                _ if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                    TemplatePart::Attribute(name.to_ascii_lowercase())
                }
                _ => return Err(TemplateError::Name(name.to_owned())),
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Text(rest.to_owned()));
        }
        let template = Template { parts };
        let sample = template.with(|_| "x".to_owned());
        let bad = |token: &str| {
            token.is_empty()
                || token
                    .chars()
                    .any(|c| c.is_whitespace() || c.is_control() || matches!(c, '*' | '>'))
        };
        if sample.split('.').any(bad) {
            return Err(TemplateError::Subject(text.to_owned()));
        }
        Ok(template)
    }

    /// Returns the subject of an event. Dots of a type stay; characters that a subject can't contain become `_`.
    pub fn subject(&self, event: &CloudEvent) -> String {
        self.with(|part| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Type => tokens(&event.kind),
            TemplatePart::Source => tokens(&event.source).replace('/', "_"),
            TemplatePart::Attribute(name) => {
                tokens(&event.attribute(name).unwrap_or_default()).replace('.', "_")
            }
        })
    }

    fn with(&self, show: impl Fn(&TemplatePart) -> String) -> String {
        let parts = self.parts.iter().map(|part| match part {
            TemplatePart::Text(text) => text.clone(),
            other => show(other),
        });
        parts.collect()
    }
}

/// Turns a text into tokens of a subject: none is empty or has special characters.
pub(crate) fn tokens(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|c| {
            if c.is_whitespace() || c.is_control() || matches!(c, '*' | '>') {
                '_'
            } else {
                c
            }
        })
        .collect();
    let parts: Vec<&str> = clean
        .split('.')
        .map(|part| if part.is_empty() { "_" } else { part })
        .collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str) -> CloudEvent {
        let text = serde_json::json!({
            "specversion": "1.0", "id": "1", "source": "/shop", "type": kind, "orderid": "a.b",
        });
        serde_json::from_value(text).expect("an event")
    }

    #[test]
    fn subjects_of_events() {
        for (template, kind, subject) in [
            (
                "swirl.events.{type}",
                "org.example.paid",
                "swirl.events.org.example.paid",
            ),
            ("swirl.events.{type}", "a b..*", "swirl.events.a_b._._"),
            ("x.{source}.{orderid}.{none}y", "t", "x._shop.a_b._y"),
            ("all", "t", "all"),
        ] {
            let template = Template::parse(template).expect("a template");
            assert_eq!(template.subject(&event(kind)), subject);
        }
    }

    #[test]
    fn invalid_templates_are_rejected() {
        for text in [
            "a.{type",
            "a.{}",
            "a.{my-name}",
            "a..b",
            "a.*",
            "a.>",
            "",
            "a b",
            ".{type}",
        ] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}
