//! Arrays, objects, texts and dates.

use super::*;

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
