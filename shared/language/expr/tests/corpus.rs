//! Expressions with the values that jq 1.6 returns for them (`corpus/regenerate.py`).

use swirl_expr::{Env, Program};
use swirl_model::Data;

const CORPUS: &str = include_str!("corpus/jq-1.6.jsonl");

/// Intended differences from jq 1.6, all of which are in `docs/expressions.md`.
const DIFFERENT: &[&str] = &[
    r#"9007199254740993"#,
    r#"1 / 0"#,
    r#"0 / 0"#,
    r#"[limit(0; 1, 2)]"#,
    r#"try error catch ."#,
    r#"error(null)"#,
    r#"error"#,
    r#"[{"k": "a", "v": 1}, {"name": "b", "value": 2}, {"Name": "c", "Value": 3}, {"Key": "d", "V": 4}] | from_entries"#,
    r#"[{"key": null, "value": 1}, {"key": false}, {"key": 1}] | from_entries"#,
    r#"[1, 2, 3] | map_values(empty)"#,
    r#"[path(1, 2 | empty)]"#,
    r#"try path(1) catch ."#,
    r#""aaa" | gsub("^a"; "b")"#,
    r#""test\n" | test("t$")"#,
    r#""aXxb" | ascii"#,
    r#""foo" | [match("";"g").offset]"#,
    r#"[pow(2, 3; 1, 2)]"#,
    r#"[1, "a"] | map(isvalid(. + 1))"#,
    r#"input_line_number"#,
    r#"{$__loc__}"#,
    r#"{a: 1 + 2}"#,
    r#"env | type"#,
    r#""2015-03-05T23:51:47Z" | fromdateiso8601, dateadd("seconds"; 10)?"#,
    r#"1700000000 | strftime("%E")"#,
    r#"253402300799 | todate"#,
    r#"-62135596800 | todate"#,
    r#"[[10, 20], [30, 40]] | [.[0, 1][0, 1]]"#,
    r#"ascii(65)"#,
    r#"[65, 1114112] | implode"#,
    r#"input_filename"#,
    r#"$ENV | type"#,
    r#""test" | ascii"#,
    r#"halt_error"#,
    r#"get_search_list"#,
    r#"[1, 2, 3, 4, 5] | del(.[1:3], .[4])"#,
    r#""a" | format("base32")"#,
];

fn ours(input: &Data, expression: &str) -> String {
    match Program::jq(&format!("[{expression}\n]"), &[]) {
        Err(error) => format!("refused: {error}"),
        Ok(program) => match program.one(input, &[], &Env::default()) {
            Ok(value) => value.unwrap_or_default().to_string(),
            Err(error) => format!("error: {error}"),
        },
    }
}

#[test]
fn values_are_those_of_jq_1_6() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in CORPUS.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| row[name].as_str();
        let (input, expression) = (text("input").unwrap(), text("expression").unwrap());
        let found = ours(&Data::parse(input.as_bytes()).unwrap(), expression);
        let right = match (text("outputs"), text("error")) {
            (Some(expected), _) => {
                let parsed = |text: &str| Data::parse(text.as_bytes()).ok();
                found == expected
                    || (parsed(&found).is_some() && parsed(&found) == parsed(expected))
            }
            (None, Some(_)) => found.starts_with("error"),
            (None, None) => found.starts_with("refused"),
        };
        count += 1;
        let different = DIFFERENT.contains(&expression);
        if right == different {
            let expected = text("outputs").or(text("error")).unwrap_or("refused");
            wrong.push(format!(
                "{input} | {expression}\n   here {found}\n   jq   {expected}"
            ));
        }
    }
    assert!(count > 400, "{count}");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
