//! The OpenAPI document, `openapi.json`: what is described here comes from the types, everything else is still written
//! by hand in the document itself. The test compares; with `SWIRL_WRITE=1` it writes.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::endpoint::{Bodies, Endpoint, KEY_BYTES_MAX, Route};
use crate::problem::Problem;
use crate::{
    actions, audit, batches, changes, counts, dead_letters, definitions, diagrams, events,
    instance, overview, rehearsals, schedules, server, start, system, views,
};

/// All routes, in alphabetical order.
static ROUTES: &[&dyn Described] = &[
    &actions::CANCEL,
    &actions::MIGRATE,
    &actions::REMOVE,
    &actions::RERUN,
    &actions::RESUME,
    &actions::RETRY,
    &actions::SKIP,
    &actions::SUSPEND,
    &audit::LIST,
    &batches::CREATE,
    &batches::GET,
    &batches::LIST,
    &batches::PAUSE,
    &batches::RESULTS,
    &batches::RESUME,
    &batches::STOP,
    &changes::COMPARE,
    &counts::COUNT,
    &dead_letters::DROP,
    &dead_letters::GET,
    &dead_letters::LIST,
    &dead_letters::RETRY,
    &definitions::ACTIVATE,
    &definitions::DELETE,
    &definitions::DEPLOY,
    &definitions::GET,
    &definitions::LATEST,
    &definitions::LIST,
    &definitions::STATES,
    &diagrams::DEFINITION,
    &diagrams::INSTANCE,
    &events::EXPLAIN,
    &events::PUBLISH,
    &events::RECENT,
    &instance::GET,
    &instance::HISTORY,
    &instance::LIST,
    &overview::ME,
    &overview::OVERVIEW,
    &rehearsals::REHEARSE,
    &schedules::BACKFILL,
    &schedules::FIRE,
    &schedules::LIST,
    &schedules::PAUSE,
    &schedules::RESUME,
    &server::LIVE,
    &server::METRICS,
    &server::OPENAPI,
    &server::READY,
    &start::START,
    &system::CHECKS,
    &system::SYSTEM,
    &views::LIST,
    &views::REMOVE,
    &views::SAVE,
];

/// All routes, without their types.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().map(|endpoint| endpoint.route())
}

/// An endpoint without its types.
trait Described: Sync {
    fn route(&self) -> &Route;

    /// Its operation, whose schemas may refer to others.
    fn operation(&self, schemas: &mut Schemas) -> Value;
}

/// Types are described as they are sent: an answer has members that a request may leave out.
struct Schemas {
    sent: SchemaGenerator,
    taken: SchemaGenerator,
}

impl Schemas {
    fn new() -> Schemas {
        let generator = |contract| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.contract = contract;
            settings.definitions_path = "/components/schemas".into();
            settings.into_generator()
        };
        Schemas {
            sent: generator(Contract::Serialize),
            taken: generator(Contract::Deserialize),
        }
    }

    /// The parameters that are the members of a type.
    fn parameters<T: JsonSchema>(&mut self, place: &str, all: &mut Vec<Value>) {
        let mut schema = self.taken.subschema_for::<T>().to_value();
        tidy(&mut schema, false);
        let required = names(&schema);
        let Some(Value::Object(members)) = schema.get_mut("properties").map(Value::take) else {
            return;
        };
        for (name, mut schema) in members {
            let mut parameter = json!({"name": name, "in": place});
            if required.contains(&name) {
                parameter["required"] = json!(true);
            }
            let about = schema
                .as_object_mut()
                .and_then(|one| one.remove("description"));
            if let Some(about) = about {
                parameter["description"] = about;
            }
            parameter["schema"] = schema;
            all.push(parameter);
        }
    }
}

impl<P, Q, B, A> Described for Endpoint<P, Q, B, A>
where
    P: JsonSchema,
    Q: JsonSchema,
{
    fn route(&self) -> &Route {
        self
    }

    fn operation(&self, schemas: &mut Schemas) -> Value {
        let role = self
            .need
            .role()
            .map(|role| json!({"token": [role.as_str()]}));
        let mut operation = json!({
            "operationId": self.id,
            "summary": self.summary,
            "tags": [self.tag],
            "security": role.into_iter().collect::<Vec<_>>(),
        });
        if !self.description.is_empty() {
            operation["description"] = self.description.into();
        }
        let mut parameters = Vec::new();
        schemas.parameters::<P>("path", &mut parameters);
        let key = json!({"type": "string", "maxLength": KEY_BYTES_MAX});
        for (name, about, schema) in [
            ("Idempotency-Key", self.key, key),
            ("Prefer", self.prefer, json!({"type": "string"})),
        ] {
            let Some(about) = about else { continue };
            parameters.push(
                json!({"name": name, "in": "header", "description": about, "schema": schema}),
            );
        }
        schemas.parameters::<Q>("query", &mut parameters);
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some(body) = &self.takes {
            let content = content(body.bodies, &mut schemas.taken, false);
            operation["requestBody"] = json!({"required": body.required, "content": content});
            if !body.about.is_empty() {
                operation["requestBody"]["description"] = body.about.into();
            }
        }
        let mut responses = Map::new();
        for success in self.successes.iter().flatten() {
            let mut response = json!({"description": success.about});
            if !success.bodies.is_empty() {
                response["content"] = content(success.bodies, &mut schemas.sent, true);
            }
            if success.located {
                let location = json!({"description": "Its address.", "schema": {"type": "string"}});
                response["headers"] = json!({"Location": location});
            }
            responses.insert(success.status.to_string(), response);
        }
        let statuses = self.problems.iter().map(u16::to_string);
        for status in statuses.chain(["default".to_owned()]) {
            responses.insert(status, json!({"$ref": "#/components/responses/Problem"}));
        }
        operation["responses"] = responses.into();
        operation
    }
}

/// The forms of a body. The schema of a whole body has no description besides the body's, and is not null.
fn content(bodies: Bodies, schemas: &mut SchemaGenerator, is_sent: bool) -> Value {
    let forms = bodies.iter().map(|(media, schema)| {
        let mut schema = match schema(schemas).to_value() {
            Value::Bool(_) => json!({}),
            schema => schema,
        };
        tidy(&mut schema, is_sent);
        if !is_sent {
            not_null(&mut schema);
        }
        if let Some(members) = schema.as_object_mut() {
            members.remove("description");
        }
        ((*media).to_owned(), json!({"schema": schema}))
    });
    Value::Object(forms.collect())
}

fn names(schema: &Value) -> Vec<String> {
    let names = schema["required"].as_array().into_iter().flatten();
    names
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

/// Marks a member that is null if there is nothing, though it may be absent, too.
const NULL: &str = "x-null";

/// Brings a schema into the form of the document: a member that may be absent is not null instead, integers have no
/// size, and descriptions have no line breaks of the source. `is_sent`: only requests have defaults.
fn tidy(schema: &mut Value, is_sent: bool) {
    let required = names(schema);
    match schema {
        Value::Array(all) => all.iter_mut().for_each(|one| tidy(one, is_sent)),
        Value::Object(members) => {
            if members
                .get("type")
                .is_some_and(|kind| kind == "integer" || kind == &json!(["integer", "null"]))
            {
                members.remove("format");
            }
            if is_sent {
                members.remove("default");
            }
            if let Some(Value::String(about)) = members.get_mut("description") {
                *about = about.replace('\n', " ");
            }
            for (name, member) in members.iter_mut() {
                match (name.as_str(), member) {
                    ("properties", Value::Object(properties)) => {
                        for (name, property) in properties {
                            if property == &Value::Bool(true) {
                                *property = json!({});
                            }
                            tidy(property, is_sent);
                            let marks = property.as_object_mut();
                            let is_null = marks.is_some_and(|one| one.remove(NULL).is_some());
                            if !required.contains(name) && !is_null {
                                not_null(property);
                            }
                        }
                    }
                    ("items", member @ Value::Bool(true)) => *member = json!({}),
                    // Values, which may look like schemas.
                    ("const" | "default" | "enum" | "examples" | "required", _) => {}
                    (_, member) => tidy(member, is_sent),
                }
            }
        }
        _ => {}
    }
}

/// Takes `null` out of what a schema allows.
fn not_null(schema: &mut Value) {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = &kinds[..] {
            schema["type"] = kind.clone();
        }
    }
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(words)) = members.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    if let Some(Value::Array(all)) = members.get_mut("anyOf") {
        all.retain(|one| one["type"] != "null");
        if let [Value::Object(one)] = &all[..] {
            let one = one.clone();
            members.remove("anyOf");
            members.extend(one);
        }
    }
}

/// The document, made from the one before: routes and schemas with types are derived, the others stay.
///
/// # Errors
/// The one before is not JSON.
pub fn derived(before: &str) -> serde_json::Result<String> {
    let mut document: Value = serde_json::from_str(before)?;
    let mut schemas = Schemas::new();
    schemas.sent.subschema_for::<Problem>();
    for endpoint in ROUTES {
        let route = endpoint.route();
        let method = route.method.as_str().to_ascii_lowercase();
        document["paths"][route.path][method] = endpoint.operation(&mut schemas);
    }
    for (generator, is_sent) in [(&mut schemas.sent, true), (&mut schemas.taken, false)] {
        for (name, mut schema) in generator.take_definitions(true) {
            tidy(&mut schema, is_sent);
            document["components"]["schemas"][name] = schema;
        }
    }
    Ok(written(&document))
}

/// JSON with as much on a line as there is room for.
fn written(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, 0, &mut text);
    text.push('\n');
    text
}

/// `used`: what stands on the line before the value and behind it.
fn write(value: &Value, indent: usize, used: usize, text: &mut String) {
    const WIDTH: usize = 120;
    let line = one_line(value);
    let is_small = indent + used + line.chars().count() <= WIDTH;
    let (open, close, parts): (_, _, Vec<(String, &Value)>) = match value {
        Value::Object(all) if !is_small => {
            let parts = all
                .iter()
                .map(|(name, part)| (format!("{}: ", json!(name)), part));
            ("{", "}", parts.collect())
        }
        Value::Array(all) if !is_small => (
            "[",
            "]",
            all.iter().map(|part| (String::new(), part)).collect(),
        ),
        _ => return text.push_str(&line),
    };
    text.push_str(open);
    for (place, (name, part)) in parts.iter().enumerate() {
        let (comma, indent) = (if place == 0 { "" } else { "," }, indent + 2);
        text.push_str(&format!("{comma}\n{:indent$}{name}", ""));
        write(part, indent, name.chars().count() + 1, text);
    }
    text.push_str(&format!("\n{:indent$}{close}", ""));
}

fn one_line(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Object(all) => {
            let parts = all
                .iter()
                .map(|(name, part)| format!("{}: {}", json!(name), one_line(part)));
            format!("{{{}}}", joined(parts.collect()))
        }
        Value::Array(all) => format!("[{}]", joined(all.iter().map(one_line).collect())),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use swirl_access::Need;

    use super::*;
    use crate::audited::Action;
    use crate::endpoint::Method;

    #[test]
    fn the_document_says_what_the_types_say() {
        let document = derived(crate::OPENAPI).unwrap();
        if std::env::var_os("SWIRL_WRITE").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
            return std::fs::write(path, document).unwrap();
        }
        let lines = crate::OPENAPI.lines().zip(document.lines()).enumerate();
        let differing = lines.into_iter().find(|(_, (is, should))| is != should);
        assert!(
            crate::OPENAPI == document,
            "openapi.json is not what the types say: write it with SWIRL_WRITE=1, and look at what changed; {differing:?}"
        );
    }

    #[test]
    fn each_action_is_of_a_route_that_only_some_may_use() {
        let audits = || routes().filter_map(|route| Some((route, route.audit?)));
        for word in Action::WORDS {
            let mut all = audits().flat_map(|(_, audit)| audit.actions);
            assert!(all.any(|action| action.as_str() == *word), "{word}");
        }
        for (route, _) in audits() {
            let needs = [Need::Operate, Need::Deploy];
            assert!(needs.contains(&route.need), "{}", route.path);
            assert_ne!(route.method, Method::Get, "{}", route.path);
        }
        for route in routes().filter(|route| route.method != Method::Get) {
            let (path, need) = (route.path, route.need);
            let is_by_hand = matches!(need, Need::Operate | Need::Deploy);
            assert_eq!(route.audit.is_some(), is_by_hand, "{path}");
            assert_ne!(need, Need::Nothing, "{path}");
        }
    }

    /// The rows of the table of roles.
    fn roles() -> String {
        use Need::{Deploy, Nothing, Operate, Read};
        let mut rows = String::new();
        for role in [Read, Operate, Deploy, Nothing].map(Need::role) {
            let mut all: Vec<&Route> = routes().filter(|one| one.need.role() == role).collect();
            all.sort_by_key(|route| (route.path, route.method.as_str()));
            let all = all.iter().map(|Route { method, path, .. }| {
                let path = path.trim_start_matches("/api/v1");
                format!("`{} {path}`", method.as_str())
            });
            let all: Vec<String> = all.collect();
            let role = role.map_or("nothing".to_owned(), |role| format!("`{}`", role.as_str()));
            rows.push_str(&format!("| {role} | {} |\n", all.join(", ")));
        }
        rows
    }

    #[test]
    fn the_page_about_security_has_the_roles_that_routes_need() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/security.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page
            .split_once("| need | requests |\n| --- | --- |\n")
            .unwrap();
        let (table, after) = rest.split_once("\n\n").unwrap();
        let rows = roles();
        if std::env::var_os("SWIRL_WRITE").is_some() {
            let page = format!("{before}| need | requests |\n| --- | --- |\n{rows}\n{after}");
            return std::fs::write(path, page).unwrap();
        }
        assert_eq!(format!("{table}\n"), rows, "write it with SWIRL_WRITE=1");
    }

    #[test]
    fn each_schema_is_used() {
        let document: Value = serde_json::from_str(crate::OPENAPI).unwrap();
        for name in document["components"]["schemas"]
            .as_object()
            .unwrap()
            .keys()
        {
            let place = format!("\"#/components/schemas/{name}\"");
            assert!(crate::OPENAPI.contains(&place), "{name}");
        }
    }
}
