//! CloudEvents 1.0, as the engine sees them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Data;

/// An event. Serialized in the CloudEvents JSON format (attributes flat).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CloudEvent {
    #[serde(default = "specversion")]
    pub specversion: String,
    pub id: String,
    pub source: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// `time`, `subject`, `datacontenttype`, `dataschema` and extension attributes.
    #[serde(flatten)]
    pub attributes: BTreeMap<String, Data>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub data: Option<Data>,
}

fn specversion() -> String {
    CloudEvent::SPECVERSION.to_owned()
}

/// A `data` of null counts as present, unlike a missing one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Data>, D::Error> {
    Data::deserialize(deserializer).map(Some)
}

/// How data of a media type is kept, since workflow data is JSON (docs/language.md#decision-94).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataForm {
    /// As a value.
    Json,
    /// As a string.
    Text,
    /// As a string in Base64, whatever the bytes look like.
    Base64,
}

impl DataForm {
    /// `media`: a media type in lower case, without parameters.
    pub fn of(media: &str) -> DataForm {
        let (major, minor) = media.split_once('/').unwrap_or_default();
        match minor.rsplit('+').next().unwrap_or(minor) {
            "json" => DataForm::Json,
            "xml" | "yaml" | "x-yaml" => DataForm::Text,
            _ if major == "text" => DataForm::Text,
            _ => DataForm::Base64,
        }
    }
}

impl CloudEvent {
    /// The version of CloudEvents.
    pub const SPECVERSION: &'static str = "1.0";

    /// The attributes that CloudEvents defines as texts.
    pub const TEXTS: [&'static str; 7] = [
        "id",
        "source",
        "type",
        "time",
        "subject",
        "datacontenttype",
        "dataschema",
    ];

    /// The value of a context attribute as text; names are compared without regard to case.
    /// Correlation values are compared as strings (docs/language.md#decision-40).
    pub fn attribute(&self, name: &str) -> Option<String> {
        match name {
            "id" => return Some(self.id.clone()),
            "source" => return Some(self.source.clone()),
            "type" => return Some(self.kind.clone()),
            _ => {}
        }
        let found = self.attributes.get(name).or_else(|| {
            let mut attributes = self.attributes.iter();
            attributes
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
        })?;
        (!found.is_null()).then(|| found.to_text())
    }

    /// How the data is kept. Without a `datacontenttype` it is JSON.
    pub fn data_form(&self) -> DataForm {
        match self.attribute("datacontenttype") {
            Some(kind) if !kind.trim().is_empty() => {
                let media = kind.split(';').next().unwrap_or_default();
                DataForm::of(&media.trim().to_ascii_lowercase())
            }
            _ => DataForm::Json,
        }
    }

    /// The key of an event: the same `source` and `id` are the same event.
    pub fn key(&self) -> String {
        format!("{}\n{}", self.source, self.id)
    }

    /// The whole event as JSON, as expressions see it where `dataOnly` is false.
    pub fn to_data(&self) -> Data {
        let mut data = Data::object();
        data.set("specversion", Data::string(&*self.specversion));
        data.set("id", Data::string(&*self.id));
        data.set("source", Data::string(&*self.source));
        data.set("type", Data::string(&*self.kind));
        for (name, value) in &self.attributes {
            data.set(name, value.clone());
        }
        if let Some(payload) = &self.data {
            data.set("data", payload.clone());
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_format() {
        let text =
            r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","patientId":7,"data":null}"#;
        let event: CloudEvent = serde_json::from_str(text).unwrap();
        assert_eq!(event.attribute("patientid").as_deref(), Some("7"));
        assert_eq!(event.data, Some(Data::NULL));
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
    }
}
