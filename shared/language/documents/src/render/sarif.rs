//! SARIF 2.1.0 (OASIS), for code scanners.

use serde_json::{Value, json};

use crate::codes;
use crate::diagnostic::{Diagnostic, Severity};

/// A file and its findings.
#[derive(Debug, Clone, Copy)]
pub struct SarifFile<'a> {
    /// A path. Separators and characters that a URI can't contain are escaped.
    pub name: &'a str,
    pub diagnostics: &'a [Diagnostic],
}

/// A single run over all files.
pub fn sarif(version: &str, files: &[SarifFile<'_>]) -> String {
    let rules: Vec<&codes::CodeEntry> = codes::TABLE
        .iter()
        .filter(|entry| {
            files
                .iter()
                .any(|file| file.diagnostics.iter().any(|d| d.code == entry.code))
        })
        .collect();
    let results: Vec<Value> = files
        .iter()
        .flat_map(|file| {
            file.diagnostics
                .iter()
                .map(|d| result(&uri(file.name), d, &rules))
        })
        .collect();
    let rules: Vec<Value> = rules
        .iter()
        .map(|entry| {
            json!({
                "id": entry.code.as_str(),
                "shortDescription": { "text": entry.summary },
                "help": { "text": entry.page, "markdown": entry.page },
            })
        })
        .collect();
    let document = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "swirl", "version": version, "rules": rules } },
            // Columns count characters, not UTF-16 units.
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{document:#}\n")
}

fn result(uri: &str, diagnostic: &Diagnostic, rules: &[&codes::CodeEntry]) -> Value {
    let text = match &diagnostic.hint {
        Some(hint) => format!("{} ({hint})", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let mut result = json!({
        "ruleId": diagnostic.code.as_str(),
        "level": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "note",
        },
        "message": { "text": text },
        "locations": [location(uri, diagnostic.line, diagnostic.column, &diagnostic.pointer)],
    });
    if let Some(index) = rules.iter().position(|entry| entry.code == diagnostic.code) {
        result["ruleIndex"] = json!(index);
    }
    if let Some(related) = &diagnostic.related {
        let place = &related.place;
        let mut location = location(uri, place.line, place.column, &place.pointer);
        location["message"] = json!({ "text": related.message });
        result["relatedLocations"] = json!([location]);
    }
    result
}

fn location(uri: &str, line: usize, column: usize, pointer: &str) -> Value {
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri },
            "region": { "startLine": line.max(1), "startColumn": column.max(1) },
        },
        "logicalLocations": [{ "fullyQualifiedName": pointer, "kind": "value" }],
    })
}

/// A path as a URI reference. A colon in its first segment would look like a scheme.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'\\' => uri.push('/'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    match path.starts_with('/') {
        true => format!("file://{uri}"),
        false => uri,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;
    use super::*;

    #[test]
    fn a_run() {
        let findings = findings();
        let files = [SarifFile {
            name: "my flows/greet.yaml",
            diagnostics: &findings,
        }];
        let mut document: Value = serde_json::from_str(&sarif("0.1.0", &files)).unwrap();
        for rule in document["runs"][0]["tool"]["driver"]["rules"]
            .as_array_mut()
            .unwrap()
        {
            let help = rule["help"]["text"].take();
            assert!(help.as_str().is_some_and(|text| text.starts_with("# ")));
            rule["help"] = json!("...");
        }
        insta::assert_snapshot!(format!("{document:#}"), @r#"
        {
          "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json",
          "version": "2.1.0",
          "runs": [
            {
              "tool": {
                "driver": {
                  "name": "swirl",
                  "version": "0.1.0",
                  "rules": [
                    {
                      "id": "duplicate-key",
                      "shortDescription": {
                        "text": "An object has the same key twice."
                      },
                      "help": "..."
                    },
                    {
                      "id": "leading-zero",
                      "shortDescription": {
                        "text": "A YAML number begins with a zero."
                      },
                      "help": "..."
                    }
                  ]
                }
              },
              "columnKind": "unicodeCodePoints",
              "results": [
                {
                  "ruleId": "duplicate-key",
                  "level": "error",
                  "message": {
                    "text": "the key 'name' appears twice (remove one of the two, or rename it)"
                  },
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "my%20flows/greet.yaml"
                        },
                        "region": {
                          "startLine": 4,
                          "startColumn": 5
                        }
                      },
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "/states/0/name",
                          "kind": "value"
                        }
                      ]
                    }
                  ],
                  "ruleIndex": 0,
                  "relatedLocations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "my%20flows/greet.yaml"
                        },
                        "region": {
                          "startLine": 3,
                          "startColumn": 5
                        }
                      },
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "/states/0/name",
                          "kind": "value"
                        }
                      ],
                      "message": {
                        "text": "first here"
                      }
                    }
                  ]
                },
                {
                  "ruleId": "leading-zero",
                  "level": "warning",
                  "message": {
                    "text": "'012' is a decimal number in YAML 1.2, and loses its zeros (put it in quotes if it is a string, write 0o... if it is octal)"
                  },
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "my%20flows/greet.yaml"
                        },
                        "region": {
                          "startLine": 5,
                          "startColumn": 7
                        }
                      },
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "/year",
                          "kind": "value"
                        }
                      ]
                    }
                  ],
                  "ruleIndex": 1
                }
              ]
            }
          ]
        }
        "#);
    }

    #[test]
    fn uris() {
        assert_eq!(uri("a b\\c:d%.yaml"), "a%20b/c%3Ad%25.yaml");
        assert_eq!(uri("/x/\u{e9}"), "file:///x/%C3%A9");
    }
}
