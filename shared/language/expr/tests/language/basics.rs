//! Paths, values, logic, errors and control flow.

use super::*;

#[test]
fn paths() {
    give(r#"{"a":{"b":1}}"#, ".", r#"{"a":{"b":1}}"#);
    give(r#"{"a":{"b":1}}"#, ".a.b", "1");
    give(r#"{"a":{"b":1}}"#, r#".["a"]."b""#, "1");
    give(r#"{"a":{"b":1}}"#, ".a.c.d", "null");
    give("null", ".a.b", "null");
    give("null", ".[3]", "null");
    give("null", "length", "0");
    fails("1", ".a", "Cannot index number with string \"a\"");
    fails("[1]", ".a", "Cannot index array with string \"a\"");
    fails("[1]", ".a | 1", "Cannot index array with string \"a\"");
    fails("{}", ".[0]", "Cannot index object with number");
    gives("1", ".a?", "[]");
    give("[1,2,3,4]", ".[-1]", "4");
    give("[1,2,3,4]", ".[1.7]", "null");
    give("[1,2,3,4]", ".[9]", "null");
    give("[1,2,3,4]", ".[2:4]", "[3,4]");
    give("[1,2,3,4]", ".[:-1]", "[1,2,3]");
    give("[1,2,3,4]", ".[-2:]", "[3,4]");
    give(r#""añb""#, ".[1:2]", r#""ñ""#);
    give("null", ".[1:2]", "null");
    give("[1,2,1]", ".[[1]]", "[0,2]");
    gives(r#"{"b":1,"a":2}"#, ".[]", "[1,2]");
    gives("1", ".[]?", "[]");
    fails("null", ".[]", "Cannot iterate over null");
    fails("5", ".[]", "Cannot iterate over number (5)");
    gives("[[1,[2]]]", "..", "[[[1,[2]]],[1,[2]],1,[2],2]");
    gives(r#"{"a":1,"b":2}"#, r#".["a","b"]"#, "[1,2]");
    gives(r#"[{"a":1},{"a":2}]"#, ".[].a", "[1,2]");
}

#[test]
fn construction() {
    give(
        r#"{"hello":1,"customerInfo":2}"#,
        "{hello, customerInfo}",
        r#"{"hello":1,"customerInfo":2}"#,
    );
    give(
        "null",
        "{a: 1, \"b c\": 2, (\"d\" + \"e\"): 3, $x}",
        r#"{"a":1,"b c":2,"de":3,"x":7}"#,
    );
    gives("null", "{a: (1,2)}", r#"[{"a":1},{"a":2}]"#);
    gives(r#"{"k":"z"}"#, "{(.k): 1}", r#"[{"z":1}]"#);
    fails("null", "{(1): 2}", "Object keys must be strings");
    give("null", "[]", "[]");
    give("3", "\"a\\(. + 1)b\\(\"x\")\"", r#""a4bx""#);
    give(
        r#"{"a":"<&>"}"#,
        "@html \"x\\(.a)<\"",
        r#""x&lt;&amp;&gt;<""#,
    );
    give("[1,\"a\"]", "@json \"v=\\(.)\"", r#""v=[1,\"a\"]""#);
    give("[1,[2]]", "tojson", r#""[1,[2]]""#);
    give("1", "1 # comment\n + 1", "2");
    give("null", "$obj.a.b", "1");
    give("null", "$__loc__", r#"{"file":"<top-level>","line":1}"#);
    give("null", "\n{$__loc__}.__loc__.line", "2");
    give(
        "null",
        "try error(\"\\($__loc__)\") catch .",
        r#""{\"file\":\"<top-level>\",\"line\":1}""#,
    );
}

#[test]
fn numbers() {
    give("null", "9007199254740993", "9007199254740993");
    give("9223372036854775807", ". - 1", "9223372036854775806");
    give("null", "1.0", "1");
    give("null", "3 / 1.5", "2");
    give("null", "7 / 2", "3.5");
    give("null", "6 / 2", "3");
    give("[1,2,3,4]", ".[length / 2]", "3");
    give("null", "5 * 7 % 3", "2");
    give("null", "1 + 10 / 2 % 3", "3");
    give("null", "5 * (7 % 3)", "5");
    give("null", "if true then 1 else 2 end * 7 % 3", "1");
    give("null", "\"\\(2 * 5 % 3)\"", r#""1""#);
    give("null", "-5 % 3", "-2");
    give("null", "5.9 % 2", "1");
    fails(
        "null",
        "1 / 0",
        "cannot be divided because the divisor is zero",
    );
    fails(
        "null",
        "1 % 0",
        "cannot be divided because the divisor is zero",
    );
    fails("{}", "1 + .", "number (1) and object ({}) cannot be added");
    give("null", "[nan] | tojson", "\"[null]\"");
    give("null", "nan", "null");
    give("null", "1e1000", "1.7976931348623157e+308");
    give("null", "infinite", "1.7976931348623157e+308");
    give("null", "-infinite | isinfinite", "true");
    give("null", "[nan | isnan, (1 | isnan)]", "[true,false]");
    give("null", "nan < nan", "true");
    give("null", "1e1000 | isinfinite", "true");
    give("null", "[3.7, -3.2 | floor]", "[3,-4]");
    give("null", "[16 | sqrt, pow(2; 10), log2]", "[4,1024,4]");
    give("null", "[1.5 | round, ceil]", "[2,2]");
    give(r#""12""#, "tonumber", "12");
    give(r#"" 1.5e2""#, "tonumber", "150");
    fails(r#""x""#, "tonumber", "cannot be parsed as a number");
    give("1", "tostring", r#""1""#);
    give(r#""a""#, "tostring", r#""a""#);
    give("[1]", "tostring", r#""[1]""#);
    give("-3", "length", "3");
    give("null", "\"abc\" * 2", r#""abcabc""#);
    give("null", "\"abc\" * 0", "null");
    give("-1", "abs", "1");
}

#[test]
fn logic() {
    give("null", ".a // 5", "5");
    give("false", ". // 5", "5");
    gives("[null,1,false,2]", ".[] // 9", "[1,2]");
    give("null", "empty // 3", "3");
    give("null", "error(\"x\")? // 4", "4");
    give("null", "[true, false | not]", "[false,true]");
    give("null", "null and error(\"no\")", "false");
    give("null", "1 or error(\"no\")", "true");
    give(
        "5",
        "if . > 3 then \"big\" elif . > 1 then \"mid\" else \"small\" end",
        r#""big""#,
    );
    give("5", "if . > 9 then 1 end", "5");
    give(
        "null",
        "[null < false, false < true, true < 0, 0 < \"\", \"\" < [], [] < {}]",
        "[true,true,true,true,true,true]",
    );
    give("null", "1 == 1.0", "true");
    give(
        r#"{"n":5,"s":"ok"}"#,
        ".n >= 5 and .s == \"ok\" and (.x | not) or $x < 3",
        "true",
    );
    give(r#"{"n":5}"#, ".n > $x or .n == null", "false");
    fails(
        r#"{"n":5}"#,
        ".n.m == 1 and true",
        "Cannot index number with string \"m\"",
    );
    give("null", "{a:1,b:2} == {b:2,a:1}", "true");
    give("null", "[1,[2]] != [1,[2]]", "false");
}

#[test]
fn errors() {
    give("null", "try error(\"x\") catch .", r#""x""#);
    give("null", "try error({a:1}) catch .a", "1");
    give("null", "try error(null) catch .", "null");
    give("null", "[.[]?, (1, error(\"x\"))?]", "[1]");
    fails("null", "error(\"boom\")", "boom");
    fails("null", "{a:1} | error", "{\"a\":1} (not a string)");
    give("1", "isvalid(error(\"x\"))", "false");
    assert_eq!(eval("null", "1, 2"), Err(EvalError::ManyOutputs));
    assert_eq!(eval("null", "empty"), Ok(None));
    fails("null", "1, error(\"late\")", "late");
}

#[test]
fn control() {
    give("[1,2,3]", "reduce .[] as $x (0; . + $x)", "6");
    gives("[1,2,3]", "foreach .[] as $x (0; . + $x)", "[1,3,6]");
    gives(
        "[1,2,3]",
        "foreach .[] as $x (0; . + $x; [$x, .])",
        "[[1,1],[2,3],[3,6]]",
    );
    give("[[1,2],[3,4]]", "[.[] as [$a, $b] | $a * $b]", "[2,12]");
    give(r#"{"b":{"c":[5]}}"#, ". as {b: {c: [$z]}} | $z", "5");
    give(r#"{"b":1}"#, ". as {$b} | $b", "1");
    gives("null", "label $out | 1, 2, break $out, 3", "[1,2]");
    gives("null", "limit(3; range(10))", "[0,1,2]");
    gives("null", "limit(0; 1, 2)", "[]");
    give("null", "first(range(5; 10))", "5");
    give("null", "last(range(5))", "4");
    give("null", "nth(2; range(5))", "2");
    give("[5,6,7]", "nth(1)", "6");
    gives("null", "range(3)", "[0,1,2]");
    gives("null", "range(1; 3)", "[1,2]");
    gives("null", "range(5; 0; -2)", "[5,3,1]");
    give("1", "[limit(4; repeat(. * 2))]", "[2,2,2,2]");
    give("1", "until(. > 50; . * 2)", "64");
    gives("1", "while(. < 10; . * 2)", "[1,2,4,8]");
    gives(
        "2",
        "recurse(if . < 20 then . * . else empty end)",
        "[2,4,16,256]",
    );
    gives("2", "recurse(. * .; . < 20)", "[2,4,16]");
    give(
        "5",
        "def fac: if . <= 1 then 1 else . * (. - 1 | fac) end; fac",
        "120",
    );
    give("null", "def f(g; $y): [g, $y]; f(1, 2; 3)", "[1,2,3]");
    give(
        "5",
        "def down(c): if . > 0 then . - 1 | down(c) else c end; down(. + 9)",
        "9",
    );
    gives("null", "isempty(empty), isempty(1)", "[true,false]");
    give(
        "[1,2]",
        "[any(. > 1), all(. > 1), any, all]",
        "[true,false,true,true]",
    );
    give("[]", "[any, all]", "[false,true]");
    give(
        "null",
        "[IN(1, null), (2 | IN(1, 2)), IN(1, 2; 3, 2)]",
        "[true,true,true]",
    );
    give(
        r#"[{"id":1},{"id":2}]"#,
        "INDEX(.id)",
        r#"{"1":{"id":1},"2":{"id":2}}"#,
    );
}
