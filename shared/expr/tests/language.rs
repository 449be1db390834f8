//! The language, one line a fact: `give(input, filter, output)`.
#![allow(clippy::unwrap_used, reason = "a test")]

use swirl_expr::{Env, EvalError, PathError, PathExpr, Program};
use swirl_model::Data;

#[global_allocator]
static ALLOCATOR: swirl_expr::CountingAllocator = swirl_expr::CountingAllocator::system();

/// 2015-03-05T23:51:47.500Z
const ENV_MS: i64 = 1_425_599_507_500;

fn env() -> Env {
    Env {
        now_ms: ENV_MS,
        ..Env::default()
    }
}

fn json(text: &str) -> Data {
    Data::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn eval(input: &str, filter: &str) -> Result<Option<Data>, EvalError> {
    let program = Program::jq(filter, &["x", "obj"]).unwrap_or_else(|e| panic!("{filter}: {e}"));
    program.one(
        &json(input),
        &[Data::int(7), json(r#"{"a":{"b":1}}"#)],
        &env(),
    )
}

/// The one output. Compared as text, so that the order of keys counts.
#[track_caller]
fn give(input: &str, filter: &str, output: &str) {
    match eval(input, filter) {
        Ok(Some(data)) => assert_eq!(data.to_string(), output, "{input} | {filter}"),
        other => panic!("{input} | {filter}: {other:?}"),
    }
}

/// All outputs.
#[track_caller]
fn gives(input: &str, filter: &str, outputs: &str) {
    give(input, &format!("[{filter}]"), outputs);
}

#[track_caller]
fn fails(input: &str, filter: &str, message: &str) {
    match eval(input, filter) {
        Err(EvalError::Message(text)) => assert!(text.contains(message), "{filter}: {text}"),
        other => panic!("{input} | {filter}: {other:?}"),
    }
}

#[track_caller]
fn refused(filter: &str, message: &str) -> swirl_expr::CompileError {
    match Program::jq(filter, &["CONST", "SECRETS"]) {
        Err(error) => {
            assert!(error.message.contains(message), "{filter}: {error}");
            error
        }
        Ok(_) => panic!("{filter} compiles"),
    }
}

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

#[test]
fn arrays_and_objects() {
    give(r#"{"b":1,"a":2}"#, "keys", r#"["a","b"]"#);
    give(r#"{"b":1,"a":2}"#, "keys_unsorted", r#"["b","a"]"#);
    give("[5,6]", "keys", "[0,1]");
    give(r#"{"a":1}"#, "to_entries", r#"[{"key":"a","value":1}]"#);
    give(
        r#"[{"name":"a","value":1},{"k":"b","v":2},{"key":false},{"key":null}]"#,
        "from_entries",
        r#"{"a":1,"b":2,"false":null,"null":null}"#,
    );
    give(r#"{"a":1}"#, "with_entries(.value += 1)", r#"{"a":2}"#);
    give(
        "[3,1,2]",
        "[sort, reverse, min, max, add, length]",
        "[[1,2,3],[2,1,3],1,3,6,3]",
    );
    give("[]", "[min, max, add, first]", "[null,null,null,null]");
    give(
        r#"[{"a":2,"b":1},{"a":1,"b":2},{"a":2,"b":3}]"#,
        "[sort_by(.a)[].b]",
        "[2,1,3]",
    );
    give(
        r#"[{"a":2,"b":1},{"a":1,"b":2},{"a":2,"b":3}]"#,
        "[[group_by(.a)[] | length], [unique_by(.a)[].b], min_by(.b).b, max_by(.b).b]",
        "[[1,2],[2,1],1,3]",
    );
    give(
        "[1,[2,[3]],[]]",
        "[flatten, flatten(1)]",
        "[[1,2,3],[1,2,[3]]]",
    );
    fails("[1]", "flatten(-1)", "flatten depth must not be negative");
    give("[[1,2],[3]]", "transpose", "[[1,3],[2,null]]");
    give(
        r#"{"a":[1]}"#,
        "[has(\"a\"), has(\"b\"), (.a | has(0)), (\"a\" | in({a:1}))]",
        "[true,false,true,true]",
    );
}

#[test]
fn containment() {
    give(
        "null",
        "[(\"foobar\" | contains(\"bar\")), ([\"foobar\"] | contains([\"bar\"])), ({a:[1,{b:2}]} | contains({a:[{b:2}]})), (\"b\" | inside(\"abc\")), ([1] | contains([2]))]",
        "[true,true,true,true,false]",
    );
    fails(
        "null",
        "1 | contains(\"a\")",
        "cannot have their containment checked",
    );
    give(
        r#""a,b, cd, efg""#,
        "[index(\",\"), rindex(\",\"), indices(\", \"), index(\"x\")]",
        "[1,7,[3,7],null]",
    );
    give(
        "[0,1,2,1,3,1,2]",
        "[indices(1), indices([1,2]), index(1), rindex(1)]",
        "[[1,3,5],[1,5],1,5]",
    );
    give("[1,2,3]", "[bsearch(2), bsearch(0)]", "[1,-1]");
    gives("[[1,2],[3,4]]", "combinations", "[[1,3],[1,4],[2,3],[2,4]]");
    gives("[0,1]", "combinations(2)", "[[0,0],[0,1],[1,0],[1,1]]");
    give("[1,2,3,1]", ". - [1]", "[2,3]");
    give(
        r#"{"a":{"b":1},"c":1}"#,
        ". * {a:{d:2},c:null}",
        r#"{"a":{"b":1,"d":2},"c":null}"#,
    );
    give(r#"{"a":1}"#, ". + {b:2} + null", r#"{"a":1,"b":2}"#);
    give(
        "[1,[2]]",
        "walk(if type == \"number\" then . + 1 else . end)",
        "[2,[3]]",
    );
    give("[1,null,2]", "map(values)", "[1,2]");
    give(
        "[1,\"a\",null,[],{},true]",
        "[map(scalars), map(iterables), map(type)]",
        r#"[[1,"a",null,true],[[],{}],["number","string","null","array","object","boolean"]]"#,
    );
    give(r#"{"a":1}"#, "map_values(. + 1)", r#"{"a":2}"#);
    give("[1,2]", "map_values(empty)", "[]");
}

#[test]
fn places() {
    give("null", ".a.b = 1", r#"{"a":{"b":1}}"#);
    give("null", ".[2] = 1", "[null,null,1]");
    give("[1,2,3]", ".[-1] = 9", "[1,2,9]");
    fails("[1]", ".[-3] = 9", "Out of bounds negative array index");
    give("[1,2,3]", ".[1:] = [7]", "[1,7]");
    give(r#"{"a":1,"b":2,"c":3}"#, "del(.a)", r#"{"b":2,"c":3}"#);
    give("[1,2,3,4]", "del(.[1,2])", "[1,4]");
    give("[1,2,3,4]", "del(.[1:3])", "[1,4]");
    give(r#"{"a":[1,2]}"#, "del(.a[0], .x.y)", r#"{"a":[2]}"#);
    give("[1,2,3]", "del(.[] | select(. == 2))", "[1,3]");
    give(
        r#"{"a":1}"#,
        ".a |= . + 1 | .b += 5 | .c //= 3",
        r#"{"a":2,"b":5,"c":3}"#,
    );
    give("[1,2,3]", ".[] *= 2", "[2,4,6]");
    give("[[1],[2]]", ".[][0] |= . + 1", "[[2],[3]]");
    give(
        r#"{"a":[{"b":1}]}"#,
        "[paths]",
        r#"[["a"],["a",0],["a",0,"b"]]"#,
    );
    give(r#"{"a":[{"b":1}]}"#, "[leaf_paths]", r#"[["a",0,"b"]]"#);
    give(
        r#"{"a":[1,"x"]}"#,
        "[paths(type == \"number\")]",
        r#"[["a",0]]"#,
    );
    give(
        r#"{"a":{"b":1}}"#,
        "[getpath([\"a\",\"b\"]), getpath([\"x\",\"y\"]), getpath([])]",
        r#"[1,null,{"a":{"b":1}}]"#,
    );
    give("null", "setpath([\"a\",0]; 1)", r#"{"a":[1]}"#);
    give(
        r#"{"a":1,"b":[1,2]}"#,
        "delpaths([[\"a\"],[\"b\",0]])",
        r#"{"b":[2]}"#,
    );
    gives(
        "null",
        "path(.a[0].b), path(.a[1:])",
        r#"[["a",0,"b"],["a",{"start":1,"end":null}]]"#,
    );
    gives(
        r#"{"a":[1]}"#,
        "path(.. | select(type == \"number\"))",
        r#"[["a",0]]"#,
    );
    gives(
        r#"{"a":[1,{"b":2}]}"#,
        "tostream",
        r#"[[["a",0],1],[["a",1,"b"],2],[["a",1,"b"]],[["a",1]],[["a"]]]"#,
    );
    give(
        r#"{"a":[1,{"b":2}]}"#,
        "fromstream(tostream)",
        r#"{"a":[1,{"b":2}]}"#,
    );
}

#[test]
fn strings() {
    give(r#""a, b""#, "split(\", \")", r#"["a","b"]"#);
    give(r#""ab""#, ". / \"\"", r#"["a","b"]"#);
    give("[\"a\",1,null,true]", "join(\"-\")", r#""a-1--true""#);
    give("[]", "join(\"-\")", r#""""#);
    give(
        r#""aXb""#,
        "[ascii_downcase, ascii_upcase]",
        r#"["axb","AXB"]"#,
    );
    give(
        r#""foobar""#,
        "[ltrimstr(\"foo\"), rtrimstr(\"bar\"), ltrimstr(1), startswith(\"fo\"), endswith(\"x\")]",
        r#"["bar","foo","foobar",true,false]"#,
    );
    give("1", "ltrimstr(\"x\")", "1");
    fails(
        "1",
        "startswith(\"x\")",
        "startswith() requires string inputs",
    );
    give(r#""é""#, "[length, utf8bytelength, explode]", "[1,2,[233]]");
    give("[233,65]", "implode", r#""éA""#);
    give("65", "ascii", r#""A""#);
    give(r#""{\"a\":[1,2.50]}""#, "fromjson", r#"{"a":[1,2.5]}"#);
    fails(r#""{a""#, "fromjson", "while parsing");
    give(
        "[1,\"a\\\"b\",null,true]",
        "@csv",
        r#""1,\"a\"\"b\",,true""#,
    );
    give("[1,\"a\\tb\"]", "@tsv", r#""1\ta\\tb""#);
    give(r#""<&'\">""#, "@html", r#""&lt;&amp;&apos;&quot;&gt;""#);
    give(r#""a b&c""#, "@uri", r#""a%20b%26c""#);
    give(r#""it's""#, "@sh", r#""'it'\\''s'""#);
    give("[1,\"a b\"]", "@sh", r#""1 'a b'""#);
    give(
        r#""hello""#,
        "[@base64, (@base64 | @base64d)]",
        r#"["aGVsbG8=","hello"]"#,
    );
    give(r#""aGVsbG8""#, "@base64d", r#""hello""#);
    give("[1]", "@text", r#""[1]""#);
    give(r#"" a ""#, "[trim, ltrim, rtrim]", r#"["a","a "," a"]"#);
}

#[test]
fn regular_expressions() {
    give(
        r#""foo Bar""#,
        "[test(\"bar\"), test(\"bar\"; \"i\"), test([\"BAR\", \"i\"])]",
        "[false,true,true]",
    );
    give(
        r#""xéab""#,
        "match(\"(?<l>a)(z)?\")",
        r#"{"offset":2,"length":1,"string":"a","captures":[{"offset":2,"length":1,"string":"a","name":"l"},{"offset":-1,"length":0,"string":null,"name":null}]}"#,
    );
    gives(r#""abab""#, "match(\"a\"; \"g\").offset", "[0,2]");
    give(
        r#""2024-05""#,
        "capture(\"(?<y>\\\\d+)-(?<m>\\\\d+)\")",
        r#"{"y":"2024","m":"05"}"#,
    );
    gives(r#""a1b22""#, "scan(\"[0-9]+\")", r#"["1","22"]"#);
    gives(
        r#""a1b2""#,
        "scan(\"([a-z])([0-9])\")",
        r#"[["a","1"],["b","2"]]"#,
    );
    gives(r#""a1b22c""#, "splits(\"[0-9]+\")", r#"["a","b","c"]"#);
    give(r#""aXbxc""#, "split(\"x\"; \"i\")", r#"["a","b","c"]"#);
    give(
        r#""abcb""#,
        "[sub(\"b\"; \"X\"), gsub(\"b\"; \"X\"), gsub(\"(?<l>[a-c])\"; \"<\\(.l)>\")]",
        r#"["aXcb","aXcX","<a><b><c><b>"]"#,
    );
    give(r#""aB""#, "gsub(\"[a-z]\"; \"x\"; \"i\")", r#""xx""#);
    fails(r#""a""#, "test(\"(\")", "is not a valid regex");
    fails(
        "1",
        "test(\"a\")",
        "cannot be matched, as it is not a string",
    );
}

#[test]
fn dates() {
    give("null", "now", "1425599507.5");
    give("null", "now | floor | todate", r#""2015-03-05T23:51:47Z""#);
    give("null", "now | todate", r#""2015-03-05T23:51:47Z""#);
    give(r#""2015-03-05T23:51:47Z""#, "fromdate", "1425599507");
    give("1425599507", "gmtime", "[2015,2,5,23,51,47,4,63]");
    give("1425599507", "localtime == gmtime", "true");
    give("1425599507", "gmtime | mktime", "1425599507");
    give(
        "1425599507",
        "strftime(\"%A, %B %d, %Y\")",
        r#""Thursday, March 05, 2015""#,
    );
    give(
        r#""2015-03-05T23:51:47Z""#,
        "strptime(\"%Y-%m-%dT%H:%M:%SZ\") | mktime",
        "1425599507",
    );
}

#[test]
fn what_is_refused() {
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
        // An error or not, but an answer.
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
        PathError::Mismatch { kind: "number", .. }
    ));
    assert!(matches!(
        fails(r#"{"a":{}}"#, ".a[0]"),
        PathError::Mismatch { kind: "object", .. }
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
