//! Refused sources, variables, target locations, and differences from jq.

use super::*;

#[test]
fn invalid_sources_are_rejected() {
    for name in [
        "env",
        "$ENV",
        "input",
        "inputs",
        "input_filename",
        "$__prog_args",
        "halt",
        "halt_error",
        "debug",
        "stderr",
        "input_line_number",
        "get_search_list",
    ] {
        let error = refused(&format!("1 + {name}"), "is not available");
        assert_eq!(error.span, Some(4..4 + name.len()), "{name}");
    }
    refused("import \"a\" as a; 1", "modules are not available");
    refused("include \"a\"; 1", "modules are not available");
    refused("a::b", "modules are not available");
    let error = refused(".a | foo(1)", "there is no function `foo` of one argument");
    assert_eq!(error.span, Some(5..8));
    refused("tonumbr", "did you mean `tonumber`?");
    refused("$CONTS", "did you mean `$CONST`?");
    let error = refused(
        "1 + $nope",
        "there is no variable `$nope` here, only $CONST, $SECRETS",
    );
    assert_eq!(error.span, Some(4..9));
    refused("break $x", "label");
    let error = refused("(.a", "");
    assert!(error.span.is_some());
    refused("", "the expression ends");
    refused(".a ]", "`]`");
    refused("1 +", "the expression ends where a term is expected");
    refused("if 1 then 2", "where `else` or `end` is expected");
    refused("{a b}", "`b`");
}

#[test]
fn sources_nested_as_deeply_as_they_are_long() {
    let n = 32 << 10;
    for (open, inner, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("-", "1", ""),
        (". |", "1", ""),
        ("{a:", "1", "}"),
        ("try ", "1", ""),
        ("1,", "1", ""),
        ("1+", "1", ""),
        ("1 and ", "1", ""),
        ("1 == ", "1", ""),
        ("(1 == ", "1", ")"),
        ("def f: 1;", "1", ""),
        ("1 as $x|", "1", ""),
        ("if 1 then ", "1", " end"),
        ("\"\\(", "1", ")\""),
        (".[", "1", "]"),
    ] {
        let times = (n / (open.len() + close.len())).min(10_000);
        let source = format!("{}{inner}{}", open.repeat(times), close.repeat(times));
        // It may be an error, but there must be a result.
        if let Ok(program) = Program::jq(&source, &[]) {
            let _ = program.one(&Data::NULL, &[], &env());
        }
    }
    let source = "(".repeat(100_000);
    assert!(refused(&source, "bytes").message.contains("65536"));
}

#[test]
fn variables_and_secrets() {
    let vars = ["CONST", "SECRETS", "WORKFLOW", "args", "item"];
    let program =
        |source: &str| Program::jq(source, &vars).unwrap_or_else(|e| panic!("{source}: {e}"));
    let names = |source: &str| program(source).secrets().clone();
    assert_eq!(
        names("$SECRETS.A + $SECRETS[\"B\"].c + $SECRETS.A").names,
        ["A", "B"]
    );
    assert!(!names("$SECRETS.A").other);
    for other in [
        "$SECRETS",
        "$SECRETS[.x]",
        "$SECRETS[]",
        "{$SECRETS}",
        "$SECRETS | .A",
        "$SECRETS.A[$SECRETS]",
        "[.[] as {(\"\\($SECRETS)\"): $a} | $a]",
    ] {
        assert!(names(other).other, "{other}");
    }
    assert!(!names("$CONST.SECRETS").other);
    assert!(program("$item.a").uses_var("item"));
    assert!(program("{$item}").uses_var("item"));
    assert!(program("\"\\($item)\"").uses_var("item"));
    assert!(!program(".item").uses_var("item"));
    let values = [json("1"), json("2"), json("3"), json("4"), json("5")];
    let sum = program("[$item, $CONST, $args]").one(&Data::NULL, &values, &env());
    assert_eq!(sum, Ok(Some(json("[5,1,4]"))));
}

fn place(source: &str) -> PathExpr {
    PathExpr::jq(source, &["i", "WORKFLOW"]).unwrap_or_else(|e| panic!("{source}: {e}"))
}

#[track_caller]
fn put(data: &str, source: &str, result: &str) {
    let mut changed = json(data);
    let vars = [json("1"), json(r#"{"key":"k"}"#)];
    place(source)
        .set(&mut changed, json("\"new\""), &vars, &env())
        .unwrap();
    assert_eq!(changed.to_string(), result, "{data} {source}");
    assert_eq!(
        place(source).get(&changed, &vars, &env()),
        Ok(json("\"new\""))
    );
}

#[test]
fn one_place() {
    put("{}", ".a.b[0].c", r#"{"a":{"b":[{"c":"new"}]}}"#);
    put("{\"a\":1}", ".", "\"new\"");
    put(r#"{"a":null}"#, ".a[\"x y\"]", r#"{"a":{"x y":"new"}}"#);
    put(r#"{"a":[1,2]}"#, ".a[-1]", r#"{"a":[1,"new"]}"#);
    put(r#"{"a":[1,2]}"#, ".a[$i]", r#"{"a":[1,"new"]}"#);
    put(r#"{"a":[1,2]}"#, ".a | .[3]", r#"{"a":[1,2,null,"new"]}"#);
    put("{}", ".[$WORKFLOW.key]", r#"{"k":"new"}"#);
    let fails = |data: &str, source: &str| {
        let mut changed = json(data);
        let error = place(source).set(&mut changed, json("1"), &[json("1.5")], &env());
        assert_eq!(changed, json(data));
        error.unwrap_err()
    };
    assert!(matches!(
        fails(r#"{"a":5}"#, ".a.b"),
        PathError::Mismatch {
            kind: "a number",
            ..
        }
    ));
    assert!(matches!(
        fails(r#"{"a":{}}"#, ".a[0]"),
        PathError::Mismatch {
            kind: "an object",
            ..
        }
    ));
    assert!(matches!(
        fails(r#"{"a":[]}"#, ".a[-1]"),
        PathError::OutOfBounds { index: -1, .. }
    ));
    assert!(matches!(
        fails("{}", ".a[1000000000]"),
        PathError::OutOfBounds { .. }
    ));
    assert!(matches!(
        fails("{}", ".a[$i]"),
        PathError::Index("a fraction")
    ));
    for source in [
        ".a[]",
        ".a?",
        ".a, .b",
        "..",
        ".a[1:2]",
        "1",
        "$i",
        ".a + 1",
        ".[.b]",
        "getpath([\"a\"])",
        ".a | select(.b)",
        "",
    ] {
        assert!(PathExpr::jq(source, &["i"]).is_err(), "{source}");
    }
}

/// The differences that `docs/expressions.md` lists.
#[test]
fn differences_from_jq() {
    give(r#"{"a":2}"#, ".a? |= 1", r#"{"a":1}"#);
    fails("[1]", "first(.[]) = 2", "invalid path expression");
    fails("[1]", "(try .[0] catch 1) = 2", "invalid path expression");
    gives("null", "pow(2, 3; 1, 2)", "[2,4,3,9]");
    gives("[1,2]", "reduce .[] as $x (0; . + $x, 9)", "[3,9,11,9]");
    give("null", "9007199254740992 + 1 == 9007199254740992", "false");
    give("[[1],2]", "[.[] as [$a] ?// $a | $a]", "[1,2]");
}
