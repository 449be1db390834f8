//! JSON output: one object with all findings.

use serde_json::{Value, json};

use crate::diagnostic::{Diagnostic, Severity};

/// `{"file", "valid", "diagnostics": [{"severity", "code", "message", "path", "line", "column", "hint"?,
/// "related"?}]}`. `path` is a JSON pointer; `valid` means that there is no error.
pub fn json(file: &str, diagnostics: &[Diagnostic]) -> String {
    let rows: Vec<Value> = diagnostics.iter().map(row).collect();
    let valid = diagnostics
        .iter()
        .all(|diagnostic| diagnostic.severity != Severity::Error);
    let document = json!({ "file": file, "valid": valid, "diagnostics": rows });
    format!("{document:#}\n")
}

fn row(diagnostic: &Diagnostic) -> Value {
    let mut row = json!({
        "severity": diagnostic.severity.as_str(),
        "code": diagnostic.code.as_str(),
        "message": diagnostic.message,
        "path": diagnostic.pointer,
        "line": diagnostic.line,
        "column": diagnostic.column,
    });
    if let Some(hint) = &diagnostic.hint {
        row["hint"] = json!(hint);
    }
    if let Some(related) = &diagnostic.related {
        row["related"] = json!({
            "message": related.message,
            "path": related.place.pointer,
            "line": related.place.line,
            "column": related.place.column,
        });
    }
    row
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;
    use super::*;

    #[test]
    fn all_members() {
        insta::assert_snapshot!(json("greet.yaml", &findings()), @r#"
        {
          "file": "greet.yaml",
          "valid": false,
          "diagnostics": [
            {
              "severity": "error",
              "code": "duplicate-key",
              "message": "the key 'name' appears twice",
              "path": "/states/0/name",
              "line": 4,
              "column": 5,
              "hint": "remove one of the two, or rename it",
              "related": {
                "message": "first here",
                "path": "/states/0/name",
                "line": 3,
                "column": 5
              }
            },
            {
              "severity": "warning",
              "code": "leading-zero",
              "message": "'012' is a decimal number in YAML 1.2, and loses its zeros",
              "path": "/year",
              "line": 5,
              "column": 7,
              "hint": "put it in quotes if it is a string, write 0o... if it is octal"
            }
          ]
        }
        "#);
    }

    #[test]
    fn warnings_do_not_make_it_invalid() {
        let warning = findings().pop().unwrap();
        let document: Value = serde_json::from_str(&json("a", &[warning])).unwrap();
        assert_eq!(document["valid"], true);
    }
}
