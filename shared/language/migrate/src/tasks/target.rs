//! The ids and versions of documents of DSL 1.0.

use swirl_model::Data;
use swirl_model::workflow::Version;

/// Where the documents of DSL 1.0 belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub namespace: String,
}

impl Default for Target {
    fn default() -> Target {
        Target {
            namespace: "default".to_owned(),
        }
    }
}

impl Target {
    /// The id of a migrated definition.
    #[must_use]
    pub fn id_of(&self, old: &str) -> String {
        format!("{}.{}", self.namespace, label(old))
    }

    /// A reference to it, without its version.
    pub(super) fn workflow(&self, old: &str) -> Data {
        let mut data = Data::object();
        data.set("namespace", Data::string(self.namespace.as_str()));
        data.set("name", Data::string(label(old)));
        data
    }
}

/// At most 63 letters, digits and dashes, without a dash at either end.
pub(super) fn label(text: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c,
        false => '-',
    };
    let label: String = text.chars().map(plain).collect();
    let label = label.trim_matches('-');
    let label = label.get(..63.min(label.len())).unwrap_or(label);
    match label.trim_end_matches('-') {
        "" => "workflow".to_owned(),
        label => label.to_owned(),
    }
}

/// A version as DSL 1.0 needs it, if it can be read as a semantic one.
#[must_use]
pub fn task_version(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return Some("1.0.0".to_owned());
    }
    if text == Version::LATEST || semver::Version::parse(text).is_ok() {
        return Some(text.to_owned());
    }
    let plain = text.trim_start_matches(['v', 'V']);
    let longer = ["", ".0", ".0.0"].map(|end| format!("{plain}{end}"));
    longer
        .into_iter()
        .find(|longer| semver::Version::parse(longer).is_ok())
}
