//! The order of several outputs, and differences of jq 1.6 from later versions.

use swirl_expr::{Env, EvalError, Program};
use swirl_model::Data;

fn eval(input: &str, filter: &str) -> Result<Option<Data>, EvalError> {
    let program = Program::jq(filter, &[]).unwrap_or_else(|e| panic!("{filter}: {e}"));
    program.one(
        &Data::parse(input.as_bytes()).unwrap(),
        &[],
        &Env::default(),
    )
}

#[track_caller]
fn give(input: &str, filter: &str, output: &str) {
    match eval(input, filter) {
        Ok(Some(data)) => assert_eq!(data.to_string(), output, "{input} | {filter}"),
        other => panic!("{input} | {filter}: {other:?}"),
    }
}

/// The answers of jq 1.6 itself.
#[test]
fn several_outputs_come_in_the_order_of_jq() {
    let cases = [
        ("null", "(1,2) * (3,4)", "[3,6,4,8]"),
        ("null", "(1,2) == (1,2)", "[true,false,false,true]"),
        ("null", "(1,2) < (2,1)", "[true,false,false,false]"),
        (r#"{"x":[1,2],"y":[10,20]}"#, ".x[] + .y[]", "[11,12,21,22]"),
        (r#"{"x":[1,2],"y":10}"#, ".x[] + .y", "[11,12]"),
        ("null", r#""\(1,2)-\(3,4)""#, r#"["1-3","2-3","1-4","2-4"]"#),
        (
            "null",
            r#""\(1,2)\("x")\(3,4)\(5,6)""#,
            r#"["1x35","2x35","1x45","2x45","1x36","2x36","1x46","2x46"]"#,
        ),
        (
            "null",
            r#"@base64 "\(1,2)-\("b")""#,
            r#"["MQ==-Yg==","Mg==-Yg=="]"#,
        ),
        (
            "null",
            "((1,2) + (10,20)) * (1,2)",
            "[11,12,21,22,22,24,42,44]",
        ),
        (
            "null",
            "(1,2) * ((1,2) + (10,20))",
            "[11,22,12,24,21,42,22,44]",
        ),
        ("[1,2]", ".[] - (.[] | . * 10)", "[-9,-8,-19,-18]"),
        ("[1,2]", "first(.[] * .[])", "[1]"),
        ("null", "(1, error(\"e\")) * (2, 3) | . // 0", ""),
    ];
    for (input, filter, outputs) in cases {
        match outputs {
            "" => assert!(eval(input, &format!("[{filter}]")).is_err(), "{filter}"),
            outputs => give(input, &format!("[{filter}]"), outputs),
        }
    }
    let nine = r#""\(1,2)"#.to_owned() + &r"\(1,2)".repeat(8) + "\"";
    give("null", &format!("[{nine}] | length"), "512");
}

/// The analysis doesn't notice that each of these has a single value.
#[test]
fn a_string_may_have_many_parts() {
    for parts in [10, 64, 65, 66, 500] {
        let text = r#""\(0 | todate)"#.to_owned() + &r"\(0 | todate)".repeat(parts - 1) + "\"";
        give(
            "null",
            &format!("{text} | length"),
            &(20 * parts).to_string(),
        );
    }
}

#[test]
fn differences_of_jq_1_6() {
    give("null", "reverse", "[]");
    give("[1,2]", "reverse", "[2,1]");
    give(
        r#""a b!*'()-_.~/ü""#,
        "@uri",
        r#""a%20b!*'()-_.~%2F%C3%BC""#,
    );
}
