//! `dataInputSchema` and `dataOutputSchema`.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::Schema;

use super::ctx::{Ctx, Obj};
use super::findings::is_fetched;

impl Ctx<'_> {
    pub fn schema(&mut self, obj: Obj<'_>, name: &str) -> Option<Schema> {
        let node = obj.get(name)?;
        if node.as_str().is_some() {
            return Some(Schema {
                schema: self.schema_content(node)?,
                fail: true,
            });
        }
        let what = format!("'{name}'");
        if node.members().is_none() {
            self.wrong_type(node, &what, "a URI or an object");
            return None;
        }
        // The most common mistake is to put the JSON Schema here directly. It is reported only once.
        if node.get("schema").is_none() {
            let message = format!("{what} needs 'schema'");
            let hint = "put the JSON Schema (or its URI) under 'schema'".to_owned();
            self.error(node, codes::MISSING_PROPERTY, message, hint);
            self.misspelt(node, &what, "schema");
            return None;
        }
        let obj = self.object(node, &what, &["schema", "failOnValidationErrors"])?;
        let fail = self.boolean(obj, "failOnValidationErrors", true);
        let schema = self.schema_content(obj.get("schema")?)?;
        Some(Schema { schema, fail })
    }

    /// The JSON Schema itself, or the one at a URI.
    pub fn schema_content(&mut self, node: &Node) -> Option<Data> {
        let (content, base) = match node.as_str() {
            Some(uri) => {
                self.warn_classpath(node, uri);
                let hint =
                    "a definition is deployed with everything that it refers to: check the URI";
                let Some((document, pointer)) = self.document(node, uri, hint.to_owned(), true)?
                else {
                    return Some(Data::bool(true));
                };
                let address = uri.split('#').next().unwrap_or(uri);
                (part(&document, &pointer)?, Some(address.to_owned()))
            }
            None => (node.to_data(), None),
        };
        let json = serde_json::Value::from(&content);
        if !json.is_object() && !json.is_boolean() {
            self.error(node, codes::BAD_SCHEMA, "a JSON Schema is an object", None);
            return None;
        }
        let json = self.with_other_documents(node, json, base)?;
        let patterns = swirl_expr::JsonSchema::weigh_patterns(&json);
        if let Ok(bytes) = patterns
            && !self.has_room_for_patterns(node, bytes)
        {
            return None;
        }
        if let Err(mut message) = swirl_expr::JsonSchema::compile(&json) {
            if let Some(uri) = node.as_str().filter(|uri| is_fetched(uri)) {
                message = format!("'{uri}' is not a valid JSON Schema");
            }
            self.error(node, codes::BAD_SCHEMA, message, None);
        }
        Some(Data::from(json))
    }
}

/// The address of the document inside a schema that is created from a part of it, unless the document has its own.
const DOCUMENT: &str = "swirl:/document";

/// A part of a document as a separate schema. If it refers to other parts, the whole document is included under its own
/// address, so that references keep their meaning.
fn part(document: &Node, pointer: &str) -> Option<Data> {
    let mut whole = document.to_data();
    if pointer.is_empty() {
        return Some(whole);
    }
    let mut part = document.at(pointer)?.to_data();
    let draft = whole.get("$schema");
    if whole.is_object() && refers(document.at(pointer)?) {
        let is_old = draft.as_ref().and_then(Data::as_str);
        let key = match is_old.is_some_and(|draft| draft.contains("draft-04")) {
            true => "id",
            false => "$id",
        };
        let own = whole.get(key);
        let own = own.as_ref().and_then(Data::as_str);
        let own = own.and_then(|id| id.split('#').next());
        let id = own
            .filter(|id| !id.is_empty())
            .unwrap_or(DOCUMENT)
            .to_owned();
        whole.set(key, Data::string(&*id));
        let mut reference = Data::object();
        reference.set("$ref", Data::string(format!("{id}#{}", escaped(pointer))));
        let mut definitions = Data::object();
        definitions.set("document", whole);
        part = Data::object();
        part.set("allOf", Data::array(vec![reference]));
        part.set("definitions", definitions);
    }
    if part.is_object()
        && part.get("$schema").is_none()
        && let Some(draft) = draft
    {
        part.set("$schema", draft);
    }
    Some(part)
}

/// Whether anything in it may be a reference.
fn refers(node: &Node) -> bool {
    let members = node.members().unwrap_or_default().iter();
    let mut members = members.map(|member| (member.key(), member.value()));
    members.any(|(key, value)| {
        matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef") || refers(value)
    }) || node.items().unwrap_or_default().iter().any(refers)
}

/// A JSON pointer as a fragment.
fn escaped(pointer: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte);
    let mut text = String::with_capacity(pointer.len());
    for byte in pointer.bytes() {
        match plain(byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
