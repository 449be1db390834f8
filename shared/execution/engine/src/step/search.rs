//! Search attributes: the values by which an instance can be found. They follow the data of the main flow, at its start
//! and after each of its states; changes in branches count when their state ends.

use swirl_model::Data;
use swirl_model::attribute::{ATTRIBUTE_BYTES_MAX, Attribute, AttributeKind, Attributes};
use swirl_model::event::{Command, Event};
use swirl_model::redact::Redactor;
use swirl_model::workflow::SearchAttribute;

use crate::scope::Ctx;

impl Ctx<'_> {
    /// Evaluates them at the end of a step, for the last state that ended in it. Errors in them don't affect the
    /// instance.
    pub fn index(&mut self) {
        let Some(data) = self.searched.take() else {
            return;
        };
        let def = self.def;
        let redactor = match self.env.secrets.is_null() {
            true => Redactor::default(),
            false => Redactor::of(&self.env.secrets),
        };
        let mut values = Attributes::new();
        let (mut left_out, mut news) = (Vec::new(), Vec::new());
        for attribute in &def.workflow.search {
            let name = &attribute.name;
            match self.value_of(attribute, &data, &redactor) {
                Ok(value) => values.extend(value.map(|value| (name.clone(), value))),
                Err(message) => {
                    left_out.push(name.clone());
                    if !self.scope.left_out.contains(name) {
                        news.push((name.clone(), message));
                    }
                }
            }
        }
        for (attribute, message) in news {
            self.emit(Event::AttributeLeftOut { attribute, message });
        }
        let is_new = values != self.scope.attributes;
        if is_new {
            self.command(Command::Index);
        }
        if is_new || left_out != self.scope.left_out {
            self.emit(Event::Indexed { values, left_out });
        }
    }

    /// Null means that there is no value yet. This isn't an error, because most values appear only while the instance
    /// runs.
    fn value_of(
        &self,
        attribute: &SearchAttribute,
        data: &Data,
        redactor: &Redactor,
    ) -> Result<Option<Attribute>, String> {
        let found = self.view().eval(attribute.value, data);
        let found = found.map_err(|mut error| {
            self.hide_secrets(&mut error);
            error.message
        })?;
        let Some(found) = found.filter(|found| !found.is_null()) else {
            return Ok(None);
        };
        let Some(value) = attribute.kind.read(&found) else {
            return Err(refusal(attribute.kind, &found));
        };
        let text = found.to_text();
        if redactor.text(&text) != text {
            return Err("its value contains a secret".to_owned());
        }
        Ok(Some(value))
    }
}

/// The value isn't quoted, because it may be anything.
fn refusal(kind: AttributeKind, found: &Data) -> String {
    let wanted = match kind {
        AttributeKind::Text => "a string",
        AttributeKind::Number => "a number",
        AttributeKind::Boolean => "true or false",
        AttributeKind::Time => "an instant such as '2024-01-31T09:00:00Z'",
    };
    match (kind, found.as_str()) {
        (AttributeKind::Text, Some(text)) => {
            let bytes = text.len();
            format!("its value has {bytes} bytes; at most {ATTRIBUTE_BYTES_MAX} are kept")
        }
        (AttributeKind::Time, Some(_)) => format!("its value is a string, not {wanted}"),
        _ => format!("its value is of type {}, not {wanted}", found.kind()),
    }
}
