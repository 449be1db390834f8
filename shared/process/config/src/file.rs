//! The configuration file in TOML, YAML or JSON, as settings with their locations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use swirl_documents::source::{self, Limits};
use swirl_documents::suggest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kind::{Raw, ValueKind};
use super::problem::{Problem, SettingSource};
use super::setting::Setting;
use super::table;

/// A setting in the file.
#[derive(Debug)]
pub struct FileSetting {
    pub setting: &'static Setting,
    pub raw: Raw,
    pub place: SettingSource,
}

/// All settings in a file, and its errors.
pub fn read(path: &Path, bytes: &[u8]) -> (Vec<FileSetting>, Vec<Problem>) {
    let mut reader = Reader {
        path: path.to_owned(),
        found: Vec::new(),
        problems: Vec::new(),
    };
    let extension = path.extension().and_then(|end| end.to_str());
    let tree = match extension {
        Some("toml") => reader.toml(bytes),
        Some("yaml" | "yml" | "json") => reader.yaml(bytes),
        _ => {
            let problem = Problem::new(
                SettingSource::file(path),
                "is not a .toml, .yaml or .json file",
            );
            reader.problems.push(problem);
            None
        }
    };
    if let Some(tree) = tree {
        reader.section("", tree);
    }
    (reader.found, reader.problems)
}

/// The common form of all formats.
struct Node {
    line: usize,
    column: usize,
    tree: Tree,
}

enum Tree {
    Null,
    Scalar(Json),
    List(Vec<Node>),
    Table(Vec<Member>),
}

struct Member {
    name: String,
    line: usize,
    column: usize,
    value: Node,
}

struct Reader {
    path: PathBuf,
    found: Vec<FileSetting>,
    problems: Vec<Problem>,
}

impl Reader {
    fn place(&self, line: usize, column: usize) -> SettingSource {
        SettingSource::File {
            path: self.path.clone(),
            line,
            column,
        }
    }

    fn wrong(&mut self, line: usize, column: usize, message: String) {
        let problem = Problem::new(self.place(line, column), message);
        self.problems.push(problem);
    }

    fn toml(&mut self, bytes: &[u8]) -> Option<Node> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            let problem = Problem::new(SettingSource::file(&self.path), "is not valid UTF-8");
            self.problems.push(problem);
            return None;
        };
        match DeTable::parse(text) {
            Ok(table) => {
                let start = table.span().start;
                Some(from_toml(text, start, &DeValue::Table(table.into_inner())))
            }
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                let (line, column) = line_and_column(text, at);
                self.wrong(line, column, error.message().to_owned());
                None
            }
        }
    }

    fn yaml(&mut self, bytes: &[u8]) -> Option<Node> {
        let parsed = source::read(bytes, &Limits::default());
        let only_comments = String::from_utf8_lossy(bytes)
            .lines()
            .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
        if only_comments {
            return None;
        }
        for finding in parsed.diagnostics.iter().filter(|found| found.is_error()) {
            let (line, column) = (finding.line, finding.column);
            let message = finding.message.clone();
            self.wrong(line, column, message);
        }
        if parsed.diagnostics.has_errors() {
            return None;
        }
        parsed.root.as_ref().map(from_yaml)
    }

    /// Reads the settings below `prefix` from a table.
    fn section(&mut self, prefix: &str, node: Node) {
        let members = match node.tree {
            Tree::Table(members) => members,
            Tree::Null => return,
            _ => {
                let message = match prefix {
                    "" => "the file must be a table of settings".to_owned(),
                    _ => format!("'{prefix}' must be a table of settings"),
                };
                return self.wrong(node.line, node.column, message);
            }
        };
        for member in members {
            let key = match prefix {
                "" => member.name.clone(),
                _ => format!("{prefix}.{}", member.name),
            };
            if let Some(setting) = table::find(&key) {
                self.setting(setting, member);
            } else if is_section(&key) {
                self.section(&key, member.value);
            } else {
                let problem = unknown(&key, self.place(member.line, member.column));
                self.problems.push(problem);
            }
        }
    }

    fn setting(&mut self, setting: &'static Setting, member: Member) {
        let key = setting.key;
        let (line, column) = (member.value.line, member.value.column);
        let raw = match (setting.kind, member.value.tree) {
            // A key without a value is ignored, because YAML users leave settings open in this way.
            (_, Tree::Null) => return,
            (ValueKind::Tokens, Tree::List(items)) => {
                Ok(Raw::Json(Json::Array(items.iter().map(json).collect())))
            }
            (_, Tree::Scalar(scalar)) => Ok(Raw::Text(text(&scalar))),
            (ValueKind::List(_), Tree::List(items)) => items
                .iter()
                .map(|item| scalar(item).ok_or("must be a list of plain values"))
                .collect::<Result<_, _>>()
                .map(Raw::List),
            (ValueKind::Map, Tree::Table(members)) => members
                .iter()
                .map(|member| {
                    let value = scalar(&member.value).ok_or("must be a table of plain values");
                    value.map(|value| (member.name.clone(), value))
                })
                .collect::<Result<BTreeMap<_, _>, _>>()
                .map(Raw::Map),
            (ValueKind::Map, _) => Err("must be a table of plain values"),
            (ValueKind::List(_), _) => Err("must be a list"),
            (ValueKind::Tokens, _) => Err("must be a list of tables"),
            (_, Tree::List(_)) => Err("must be one value, but is a list"),
            (_, Tree::Table(_)) => Err("must be one value, but is a table"),
        };
        match raw {
            Ok(raw) => {
                let place = self.place(line, column);
                self.found.push(FileSetting {
                    setting,
                    raw,
                    place,
                });
            }
            Err(message) => self.wrong(line, column, format!("{key} {message}")),
        }
    }
}

/// An unknown name, with the most similar setting.
pub fn unknown(key: &str, place: SettingSource) -> Problem {
    let known: Vec<&str> = table::settings().map(|setting| setting.key).collect();
    let problem = Problem::new(place, format!("there is no setting '{key}'"));
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let siblings = table::settings().filter(|setting| setting.section() == section);
    let near = suggest::did_you_mean(key, known.iter().copied())
        .map(str::to_owned)
        .or_else(|| {
            // A wrong section with a right name, or a right section with a wrong name.
            let named = table::settings().find(|setting| setting.name() == name);
            let sibling = suggest::did_you_mean(name, siblings.map(Setting::name));
            match sibling {
                Some(sibling) => Some(format!("{section}.{sibling}")),
                None => named.map(|setting| setting.key.to_owned()),
            }
        })
        .or_else(|| {
            let sections = known.iter().filter_map(|key| key.rsplit_once('.'));
            suggest::did_you_mean(key, sections.map(|(section, _)| section)).map(str::to_owned)
        });
    match near {
        Some(near) => problem.hint(format!("did you mean '{near}'?")),
        None => problem.hint("'swirl config default' lists all settings"),
    }
}

fn is_section(key: &str) -> bool {
    table::settings().any(|setting| {
        let rest = setting.key.strip_prefix(key);
        rest.is_some_and(|rest| rest.starts_with('.'))
    })
}

fn scalar(node: &Node) -> Option<String> {
    match &node.tree {
        Tree::Scalar(value) => Some(text(value)),
        _ => None,
    }
}

/// A plain value in the form that a variable would have.
fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn json(node: &Node) -> Json {
    match &node.tree {
        Tree::Null => Json::Null,
        Tree::Scalar(value) => value.clone(),
        Tree::List(items) => Json::Array(items.iter().map(json).collect()),
        Tree::Table(members) => members
            .iter()
            .map(|member| (member.name.clone(), json(&member.value)))
            .collect(),
    }
}

fn from_yaml(node: &source::Node) -> Node {
    let tree = if let Some(members) = node.members() {
        let members = members.iter().map(|member| Member {
            name: member.key().to_owned(),
            line: member.key_line(),
            column: member.key_column(),
            value: from_yaml(member.value()),
        });
        Tree::Table(members.collect())
    } else if let Some(items) = node.items() {
        Tree::List(items.iter().map(from_yaml).collect())
    } else if node.is_null() {
        Tree::Null
    } else {
        Tree::Scalar(match (node.as_bool(), node.as_str()) {
            (Some(flag), _) => Json::Bool(flag),
            (None, Some(text)) => Json::String(text.to_owned()),
            // The text as written, so that a number keeps its form.
            (None, None) => Json::String(node.raw().to_owned()),
        })
    };
    Node {
        line: node.line(),
        column: node.column(),
        tree,
    }
}

fn from_toml(text: &str, at: usize, value: &DeValue<'_>) -> Node {
    let nested =
        |value: &Spanned<DeValue<'_>>| from_toml(text, value.span().start, value.get_ref());
    let tree = match value {
        DeValue::String(string) => Tree::Scalar(Json::String(string.to_string())),
        DeValue::Boolean(flag) => Tree::Scalar(Json::Bool(*flag)),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            Tree::Scalar(match parsed {
                Ok(number) => number.into(),
                Err(_) => Json::String(number.as_str().to_owned()),
            })
        }
        DeValue::Float(number) => Tree::Scalar(Json::String(number.as_str().to_owned())),
        DeValue::Datetime(instant) => Tree::Scalar(Json::String(instant.to_string())),
        DeValue::Array(items) => Tree::List(items.iter().map(nested).collect()),
        DeValue::Table(table) => {
            let mut members: Vec<Member> = table
                .iter()
                .map(|(key, value)| {
                    let (line, column) = line_and_column(text, key.span().start);
                    Member {
                        name: key.get_ref().to_string(),
                        line,
                        column,
                        value: nested(value),
                    }
                })
                .collect();
            members.sort_by_key(|member| (member.line, member.column));
            Tree::Table(members)
        }
    };
    let (line, column) = line_and_column(text, at);
    Node { line, column, tree }
}

/// Both count from 1, in characters.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before[start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, text: &str) -> Vec<String> {
        let (found, problems) = read(Path::new(name), text.as_bytes());
        let found = found
            .iter()
            .map(|found| format!("{} {} {:?}", found.place, found.setting.key, found.raw));
        found
            .chain(problems.iter().map(ToString::to_string))
            .collect()
    }

    #[test]
    fn toml_and_yaml_are_equivalent() {
        let toml = "namespace = \"a\"\n[redis]\nurl = [\"redis://h\"]\nshards = 0x10\n\
                    [telemetry.resource_attributes]\n\"a.b\" = 1\n\
                    [[auth.tokens]]\nname = \"x\"\nroles = [\"viewer\"]\n";
        let yaml = "namespace: a\nredis:\n  url: [redis://h]\n  shards: 16\ntelemetry:\n  \
                    resource_attributes:\n    a.b: 1\nauth:\n  tokens:\n  - name: x\n    roles: [viewer]\n";
        let without_place = |lines: Vec<String>| -> Vec<String> {
            let mut lines: Vec<String> = lines
                .iter()
                .map(|line| line.split_once(' ').unwrap().1.to_owned())
                .collect();
            lines.sort();
            lines
        };
        let from_toml = without_place(lines("a.toml", toml));
        assert_eq!(from_toml, without_place(lines("a.yaml", yaml)));
        assert_eq!(
            from_toml,
            [
                r#"auth.tokens Json(Array [Object {"name": String("x"), "roles": Array [String("viewer")]}])"#,
                r#"namespace Text("a")"#,
                r#"redis.shards Text("16")"#,
                r#"redis.url List(["redis://h"])"#,
                r#"telemetry.resource_attributes Map({"a.b": "1"})"#,
            ]
        );
    }

    #[test]
    fn places() {
        assert_eq!(
            lines("a.toml", "# é\n[redis]\n  url = 'redis://h'\n"),
            ["a.toml:3:9 redis.url Text(\"redis://h\")"]
        );
        assert_eq!(
            lines("a.yaml", "redis:\n  url: redis://h\n"),
            ["a.yaml:2:8 redis.url Text(\"redis://h\")"]
        );
    }

    #[test]
    fn unknown_settings_are_rejected_with_a_hint() {
        for (text, expected) in [
            (
                "[redis]\nulr = 1",
                "a.toml:2:1: there is no setting 'redis.ulr'\n  = hint: did you mean 'redis.url'?",
            ),
            (
                "[rediss]\nx = 1",
                "a.toml:1:2: there is no setting 'rediss'\n  = hint: did you mean 'redis'?",
            ),
            (
                "[nats]\nshards = 1",
                "a.toml:2:1: there is no setting 'nats.shards'\n  = hint: did you mean 'redis.shards'?",
            ),
            (
                "colour = 1",
                "a.toml:1:1: there is no setting 'colour'\n  = hint: 'swirl config default' lists all settings",
            ),
            (
                "redis = 1",
                "a.toml:1:9: 'redis' must be a table of settings",
            ),
            (
                "namespace = []",
                "a.toml:1:13: namespace must be one value, but is a list",
            ),
            (
                "[redis]\nurl = [[]]",
                "a.toml:2:7: redis.url must be a list of plain values",
            ),
            (
                "[auth]\ntokens = { a = 1 }",
                "a.toml:2:10: auth.tokens must be a list of tables",
            ),
            ("a = ", "a.toml:1:5: "),
        ] {
            let found = lines("a.toml", text);
            assert!(
                found.len() == 1 && found[0].starts_with(expected),
                "{found:?}"
            );
        }
        assert_eq!(
            lines("a.ini", ""),
            ["a.ini: is not a .toml, .yaml or .json file"]
        );
        let found = lines("a.yaml", "namespace: [\n");
        assert!(
            found.len() == 1 && found[0].starts_with("a.yaml:"),
            "{found:?}"
        );
        let found = lines("a.yaml", "namespace: a\nnamespace: b\n");
        assert!(
            found.len() == 1 && found[0].starts_with("a.yaml:2:1: "),
            "{found:?}"
        );
    }

    #[test]
    fn empty_values_are_ignored() {
        for (name, text) in [
            ("a.toml", ""),
            ("a.yaml", ""),
            ("a.yaml", "# only this\n"),
            ("a.yaml", "redis:\nnamespace:\n"),
        ] {
            assert_eq!(lines(name, text), [""; 0], "{name} {text:?}");
        }
    }
}
