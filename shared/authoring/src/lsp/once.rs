//! Completions for a text that no editor's session has open, such as a draft in a browser.

use std::sync::Arc;

use serde_json::{Value, json};
use swirl_spec::resource::{MapResources, Resources};

use super::text::Position;
use super::{Session, Source};

/// Longer texts get no completions, since each request reads the whole text.
pub const COMPLETED_BYTES_MAX: usize = 512 << 10;

/// The files that come with the text.
struct Given(Vec<(String, String)>);

impl Source for Given {
    fn beside(&self, _: &str) -> Box<dyn Resources> {
        let mut all = MapResources::default();
        for (name, content) in &self.0 {
            all.insert(name.clone(), content.clone());
        }
        Box::new(all)
    }
}

/// The completions at a position, counted as in the protocol, as its items. `files`: what the text refers to, by name.
pub fn completions(
    text: &str,
    line: usize,
    character: usize,
    files: Vec<(String, String)>,
) -> Value {
    const URI: &str = "draft";
    if text.len() > COMPLETED_BYTES_MAX {
        return json!([]);
    }
    let mut session = Session::new(Arc::new(Given(files)));
    let document = json!({"textDocument": {"uri": URI, "version": 1, "text": text}});
    session.notify("textDocument/didOpen", &document);
    let asked = json!({
        "textDocument": {"uri": URI},
        "position": Position { line, character },
    });
    let found = session.answer("textDocument/completion", &asked);
    found.unwrap_or_else(|_| json!([]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAFT: &str = "id: w
version: '1'
specVersion: '0.8'
functions:
  - {name: pay, operation: 'shop.json#payOrder'}
states:
  - name: Pay
    type: operation
    actions:
      - functionRef: pay
    transition: Done
  - {name: Done, type: inject, data: {}, end: true}
";

    fn labels(text: &str, before: &str) -> Vec<String> {
        let line = text.lines().position(|line| line.starts_with(before));
        let found = completions(text, line.unwrap(), before.len(), Vec::new());
        let labels = found.as_array().unwrap().iter();
        labels
            .map(|item| item["label"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_draft_gets_kinds_names_and_properties() {
        let kinds = labels(DRAFT, "    type: ");
        assert!(kinds.contains(&"switch".to_owned()), "{kinds:?}");
        assert_eq!(labels(DRAFT, "    transition: "), ["Pay", "Done"]);
        assert_eq!(labels(DRAFT, "      - functionRef: "), ["pay"]);
        let unfinished = DRAFT.replace("    transition: Done\n", "    tr\n");
        let properties = labels(&unfinished, "    tr");
        assert!(
            properties.contains(&"transition".to_owned()),
            "{properties:?}"
        );
    }

    #[test]
    fn a_long_text_gets_none() {
        let long = format!("{DRAFT}{}", "#".repeat(COMPLETED_BYTES_MAX));
        assert_eq!(labels(&long, "    type: "), [""; 0]);
    }
}
