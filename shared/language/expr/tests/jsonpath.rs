//! JSONPath, one fact per line: `give(input, expression, output)`.

use std::time::Duration;

use swirl_expr::{Env, EvalError, Limits, PathError, PathExpr, Program};
use swirl_model::Data;

/// The classic example document of JSONPath.
const STORE: &str = r#"{"store":{"book":[
    {"category":"reference","author":"Nigel Rees","title":"Sayings of the Century","price":8.95},
    {"category":"fiction","author":"Evelyn Waugh","title":"Sword of Honour","price":12.99},
    {"category":"fiction","author":"Herman Melville","title":"Moby Dick","isbn":"0-553-21311-3","price":8.99},
    {"category":"fiction","author":"J. R. R. Tolkien","title":"The Lord of the Rings","isbn":"0-395-19395-8","price":22.99}],
    "bicycle":{"color":"red","price":399}}}"#;

fn json(text: &str) -> Data {
    Data::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn eval(input: &str, source: &str) -> Result<Option<Data>, EvalError> {
    let program = Program::jsonpath(source, &["CONST", "i", "name"]);
    let program = program.unwrap_or_else(|e| panic!("{source}: {e}"));
    let vars = [
        json(r#"{"LIMITS":{"adult":18},"codes":["a","b"]}"#),
        Data::int(1),
        Data::string("b"),
    ];
    program.one(&json(input), &vars, &Env::default())
}

#[track_caller]
fn give(input: &str, source: &str, output: &str) {
    match eval(input, source) {
        Ok(Some(data)) => assert_eq!(data.to_string(), output, "{input}: {source}"),
        Ok(None) => assert_eq!("nothing", output, "{input}: {source}"),
        Err(error) => panic!("{input}: {source}: {error}"),
    }
}

#[track_caller]
fn refused(source: &str, message: &str) {
    match Program::jsonpath(source, &["CONST", "SECRETS"]) {
        Err(error) => assert!(error.message.contains(message), "{source}: {error}"),
        Ok(_) => panic!("{source} is taken"),
    }
}

#[test]
fn one_place_is_its_value() {
    let data = r#"{"a":{"b":[1,{"c":null}]},"x y":2,"order-id":3,"ü":4,"_1":5}"#;
    give(data, "$.a.b[0]", "1");
    give(data, "$['a'][\"b\"][1]", r#"{"c":null}"#);
    give(data, "$.a.b[-1].c", "null");
    give(data, "$.a.b[7]", "nothing");
    give(data, "$.a.b.c", "nothing");
    give(data, "$.a.b[0].c.d", "nothing");
    give(data, "$['x y']", "2");
    give(data, "$.order-id", "3");
    give(data, "$.ü", "4");
    give(data, "$._1", "5");
    give(data, " $ .a ['b'] [0] ", "1");
    give("[1]", "$", "[1]");
    give("[1]", "$.", "[1]");
    give("[[7]]", "$.[0].[0]", "7");
    give(r#"{"'":1,"\"":2,"☺":3,"𝄞":4,"\\":5}"#, r"$['\'']", "1");
    give(r#"{"'":1,"\"":2,"☺":3,"𝄞":4,"\\":5}"#, r#"$["\""]"#, "2");
    give(r#"{"☺":3,"𝄞":4}"#, r"$['\u263a']", "3");
    give(r#"{"☺":3,"𝄞":4}"#, r"$['\ud834\uDD1E']", "4");
    give(r#"{"\\":5}"#, r"$['\\']", "5");
}

#[test]
fn many_places_are_a_list() {
    give(
        STORE,
        "$.store.book[*].author",
        r#"["Nigel Rees","Evelyn Waugh","Herman Melville","J. R. R. Tolkien"]"#,
    );
    give(
        STORE,
        "$..author",
        r#"["Nigel Rees","Evelyn Waugh","Herman Melville","J. R. R. Tolkien"]"#,
    );
    give(STORE, "$.store..price", "[8.95,12.99,8.99,22.99,399]");
    give(STORE, "$..book[2].title", r#"["Moby Dick"]"#);
    give(STORE, "$..book[-1].title", r#"["The Lord of the Rings"]"#);
    give(
        STORE,
        "$..book[(@.length-1)].title",
        r#"["The Lord of the Rings"]"#,
    );
    give(
        STORE,
        "$..book[( @.length() - 2 )].title",
        r#"["Moby Dick"]"#,
    );
    give(STORE, "$..book[0,1].price", "[8.95,12.99]");
    give(STORE, "$..book[:2].price", "[8.95,12.99]");
    give(STORE, "$..book[?@.isbn].price", "[8.99,22.99]");
    give(
        STORE,
        "$..book[?(@.price < 10)].title",
        r#"["Sayings of the Century","Moby Dick"]"#,
    );
    give(STORE, "$.store['book','bicycle'][1].price", "[12.99]");
    give(STORE, "$.nobody[*]", "[]");
    give(STORE, "$..nobody", "[]");
    give(
        r#"{"o":{"j":1,"k":2},"a":[5,3]}"#,
        "$.*",
        r#"[{"j":1,"k":2},[5,3]]"#,
    );
    give(r#"{"o":{"j":1,"k":2},"a":[5,3]}"#, "$.o[*,*]", "[1,2,1,2]");
    give(r#"{"o":{"j":1},"a":[5,[{"j":4}]]}"#, "$..j", "[1,4]");
    give(
        r#"{"o":[{"j":1}],"a":5}"#,
        "$..*",
        r#"[[{"j":1}],5,{"j":1},1]"#,
    );
    give(r#"{"o":[{"j":1}],"a":5}"#, "$..[0]", r#"[{"j":1}]"#);
}

#[test]
fn slices() {
    let data = r#"["a","b","c","d","e","f","g"]"#;
    give(data, "$[1:3]", r#"["b","c"]"#);
    give(data, "$[5:]", r#"["f","g"]"#);
    give(data, "$[1:5:2]", r#"["b","d"]"#);
    give(data, "$[5:1:-2]", r#"["f","d"]"#);
    give(data, "$[::-1]", r#"["g","f","e","d","c","b","a"]"#);
    give(data, "$[-2:]", r#"["f","g"]"#);
    give(data, "$[ 0 : 1 ]", r#"["a"]"#);
    give(data, "$[1:3:0]", "[]");
    give(data, "$[9:0]", "[]");
    give(r#"{"a":1}"#, "$[0:1]", "[]");
}

/// As in the texts of the language.
#[test]
fn forms_of_the_older_editions() {
    let data = r#"{"people":[{"name":"A","age":30},{"name":"B","age":50}],
        "vegetables":[{"name":"potato","veggieLike":true},{"name":"broccoli","veggieLike":false},{"name":"beans"}],
        "orders":[{"id":1,"completed":true},{"id":2,"completed":false}],
        "users":[{"title":"MANAGER","id":4}],"phoneNumbers":["1","2"]}"#;
    give(
        data,
        "$.people[?(@.age < 40)]",
        r#"[{"name":"A","age":30}]"#,
    );
    give(
        data,
        "$.vegetables.[?(@.veggieLike)]",
        r#"[{"name":"potato","veggieLike":true}]"#,
    );
    give(data, "$.orders[?(@.completed == true)].id", "[1]");
    give(data, "$.users[?(@.title == 'MANAGER')].id", "[4]");
    give(data, "$..title", r#"["MANAGER"]"#);
    give(data, "$.phoneNumbers.length()", "2");
    give(
        r#"[{"veggieLike":true,"n":1},{"n":2}]"#,
        "$.[?(@.veggieLike)]",
        r#"[{"veggieLike":true,"n":1}]"#,
    );
}

#[test]
fn comparisons_as_in_the_rfc() {
    let data = r#"{"obj":{"x":"y"},"arr":[2,3],"n":null}"#;
    for (source, output) in [
        ("$.absent1 == $.absent2", "true"),
        ("$.absent1 <= $.absent2", "true"),
        ("$.absent == 'g'", "false"),
        ("$.absent1 != $.absent2", "false"),
        ("$.absent != 'g'", "true"),
        ("$.absent == $.n", "false"),
        ("$.n == null", "true"),
        ("1 <= 2", "true"),
        ("1 > 2", "false"),
        ("13 == '13'", "false"),
        ("'a' <= 'b'", "true"),
        ("'a' > 'b'", "false"),
        ("$.obj == $.arr", "false"),
        ("$.obj == $.obj", "true"),
        ("$.arr == [2, 3.0]", "true"),
        ("$.obj <= $.obj", "true"),
        ("$.obj < $.obj", "false"),
        ("1 <= $.arr", "false"),
        ("true <= true", "true"),
        ("true > true", "false"),
        ("1 == 1.0", "true"),
        ("-1.5e2 == -150", "true"),
    ] {
        give(data, source, output);
    }
}

#[test]
fn conditions() {
    let data = r#"{"age":20,"ok":true,"no":false,"nil":null,"zero":0,"empty":"","tags":["x","y"],"name":"Bob"}"#;
    for (source, output) in [
        ("$.age >= 18 && $.ok", "true"),
        ("$.age < 18 || $.no", "false"),
        ("!$.no && !$.nil && !$.absent", "true"),
        ("$.zero && $.empty && true", "true"),
        ("$.no || $.ok && $.age == 20", "true"),
        ("($.ok || $.ok) && $.no", "false"),
        ("!($.age == 20)", "false"),
        ("!!$.ok", "true"),
        ("$.name in ['Bob', \"Ann\"]", "true"),
        ("$.name nin ['Bob']", "false"),
        ("$.name in $.tags", "false"),
        ("'x' in $.tags", "true"),
        ("'x' in $.tags[*]", "true"),
        ("$.tags contains 'y'", "true"),
        ("$.name contains 'ob'", "true"),
        ("$.tags size 2", "true"),
        ("$.tags empty false", "true"),
        ("$.empty empty true", "true"),
        ("$.tags anyof ['y', 'z']", "true"),
        ("$.tags noneof ['z']", "true"),
        ("$.tags subsetof ['x', 'y', 'z']", "true"),
        ("$.tags[*] && $.ok", "true"),
        ("$.absent[*] || $.no", "false"),
        ("$.name =~ /b.b/i", "true"),
        ("$.name =~ /b/i", "false"),
        ("$.name =~ 'B.*'", "true"),
        ("$.age =~ /.*/", "false"),
        ("match($.name, 'B.b')", "true"),
        ("match($.name, 'o')", "false"),
        ("search($.name, 'o')", "true"),
        ("true", "true"),
        ("'text'", r#""text""#),
    ] {
        give(data, source, output);
    }
}

#[test]
fn functions_may_be_written_before_and_after() {
    let data = r#"{"n":[3,1,2.5],"o":{"a":1,"b":2},"s":"äbc","e":[],"many":[{"p":4},{"p":6}]}"#;
    for (source, output) in [
        ("length($.n)", "3"),
        ("$.s.length()", "3"),
        ("$.o.length()", "2"),
        ("$.many[*].p.length()", "2"),
        // The list of matches has one element, which is a list.
        ("$..n.length()", "1"),
        ("$..n[*].length()", "3"),
        ("length($.absent)", "nothing"),
        ("count($.n[*])", "3"),
        ("count($.absent)", "0"),
        ("value($..p)", "nothing"),
        ("value($..a)", "1"),
        ("$.n.max()", "3"),
        ("$.n.min()", "1"),
        ("$.n.sum()", "6.5"),
        ("$.many[*].p.avg()", "5"),
        ("$.many[*].p.sum()", "10"),
        ("$.many[*].p.stddev()", "1"),
        ("$.e.sum()", "0"),
        ("$.e.max()", "nothing"),
        ("$.s.max()", "nothing"),
        ("$.o.keys()", r#"["a","b"]"#),
        ("$.o.keys().length()", "2"),
        ("$.n.first()", "3"),
        ("$..p.last()", "6"),
        ("$.n.index(-2)", "1"),
        ("$.n.index(9)", "nothing"),
        ("$.many[?length(@) == 1].p", "[4,6]"),
    ] {
        give(data, source, output);
    }
}

/// Every JSONPath in the older texts that isn't a plain path.
#[test]
fn expressions_of_the_older_texts() {
    let people = r#"{"people":[{"name":"a","age":30},{"name":"b","age":40}],
        "applicants":[{"age":17},{"age":18}],"users":[{"title":"CLERK"},{"title":"MANAGER"}],
        "orders":[{"n":1,"completed":true},{"n":2,"completed":false}],"phoneNumbers":["1","2"],
        "vegetables":[{"n":"carrot","veggieLike":true},{"n":"fries","veggieLike":false}],
        "team":{"user":{"title":"MANAGER"},"others":[{"user":{"title":"CLERK"}}]}}"#;
    give(
        people,
        "$.people[?(@.age < 40)]",
        r#"[{"name":"a","age":30}]"#,
    );
    give(people, "$.applicants[?(@.age >= 18)]", r#"[{"age":18}]"#);
    give(people, "$.applicants[?(@.age < 18)]", r#"[{"age":17}]"#);
    give(
        people,
        "$.users[?(@.title == 'MANAGER')]",
        r#"[{"title":"MANAGER"}]"#,
    );
    give(people, "$.users[?(@.title == 'BOSS')]", "[]");
    give(
        people,
        "$.orders[?(@.completed == true)]",
        r#"[{"n":1,"completed":true}]"#,
    );
    give(people, "$.phoneNumbers.length()", "2");
    let carrot = r#"[{"n":"carrot","veggieLike":true}]"#;
    give(people, "$.vegetables.[?(@.veggieLike)]", carrot);
    give(
        r#"[{"n":"carrot","veggieLike":true},{"veggieLike":false}]"#,
        "$.[?(@.veggieLike)]",
        carrot,
    );
    give(people, "$..user.title", r#"["MANAGER","CLERK"]"#);
    give(people, "$.", &json(people).to_string());
}

/// docs/language.md#decision-83.
#[test]
fn a_filter_tests_an_object_itself_and_the_elements_of_an_array() {
    let data = r#"{"a":{"n":1,"in":{"n":9}},"list":[{"n":1},{"n":2,"sub":{"n":1}},3,[4]]}"#;
    give(data, "$.a[?(@.n == 1)]", r#"[{"n":1,"in":{"n":9}}]"#);
    give(data, "$.a[?(@.n == 9)]", "[]");
    give(data, "$.a[?(@.n == 1)].in.n", "[9]");
    give(data, "$.list[?(@.n == 1)]", r#"[{"n":1}]"#);
    give(data, "$.list[?(@ == 3)]", "[3]");
    give(data, "$.a.n[?(@ == 1)]", "[]");
    give(data, "$[?(@.a.n == 1)].a.n", "[1]");
    // Each once, even if everything in the data is traversed.
    give(
        data,
        "$..[?(@.n == 1)]",
        r#"[{"n":1,"in":{"n":9}},{"n":1},{"n":1}]"#,
    );
    give(data, "$..[?(@ == 3 || @ == 4)]", "[3,4]");
}

#[test]
fn operators_of_older_implementations() {
    let data = r#"{"items":[{"n":"a","tags":["x","y"],"size":"M"},{"n":"b","tags":[],"size":"S"},{"n":"c","tags":["z"]}]}"#;
    for (condition, output) in [
        ("@.size in ['S', 'M']", r#"["a","b"]"#),
        ("@.size nin ['S']", r#"["a","c"]"#),
        ("@.tags subsetof ['x', 'y', 'z']", r#"["a","b","c"]"#),
        ("@.tags anyof ['x', 'z']", r#"["a","c"]"#),
        ("@.tags noneof ['x']", r#"["b","c"]"#),
        ("@.tags size 2", r#"["a"]"#),
        ("@.tags empty true", r#"["b"]"#),
        ("@.tags empty false", r#"["a","c"]"#),
        ("@.tags contains 'x'", r#"["a"]"#),
        ("'x' in @.tags", r#"["a"]"#),
        ("@.n =~ /[AB]/i", r#"["a","b"]"#),
        ("!(@.size)", r#"["c"]"#),
        ("@.size && !(@.size == 'M')", r#"["b"]"#),
        ("@.size == 'S' || @.n == 'c'", r#"["b","c"]"#),
        ("@.tags.length() > 1", r#"["a"]"#),
        ("@['n'] != 'a'", r#"["b","c"]"#),
        ("@.n == $.items[(@.length-1)].n", r#"["c"]"#),
    ] {
        give(data, &format!("$.items[?({condition})].n"), output);
    }
}

#[test]
fn functions_of_older_implementations() {
    let data = r#"{"n":[1,2,3,6],"t":["a","b"],"name":"x","m":5,"o":{"k":1},"mixed":["a",1,null]}"#;
    give(data, "$.n.min()", "1");
    give(data, "$.n.max()", "6");
    give(data, "$.n.avg()", "3");
    give(data, "$.n.sum()", "12");
    give(data, "$.n.stddev()", "1.8708286933869707");
    give(data, "$.sum($.m, 3)", "8");
    give(data, "$.n.max($.m, 7)", "7");
    give(data, "$.o.keys()", r#"["k"]"#);
    give(data, "$.t.append('c')", r#"["a","b","c"]"#);
    give(data, "$.t.append($.m, 'd').length()", "4");
    give(data, "$.name.append('c')", "\"x\"");
    give(data, "$.concat($.name, '-', $.m)", "\"x-5\"");
    give(data, "$.t.concat('c')", "\"abc\"");
    give(data, "concat($.mixed)", "\"a1\"");
    give(data, "$.t.first()", "\"a\"");
    give(data, "$.t.last()", "\"b\"");
    give(data, "$.t.index(-1)", "\"b\"");
}

#[test]
fn variables() {
    let data = r#"{"people":[{"age":17},{"age":40}],"rows":["x","y"],"by":{"a":1,"b":2},"k":"x"}"#;
    give(data, "$CONST.LIMITS.adult", "18");
    give(data, "$CONST['codes'][1]", r#""b""#);
    give(data, "$CONST..adult", "[18]");
    give(
        data,
        "$.people[?(@.age >= $CONST.LIMITS.adult)]",
        r#"[{"age":40}]"#,
    );
    give(data, "$.rows[$i]", r#""y""#);
    give(data, "$.by[$name]", "2");
    give(data, "$.by[$CONST.codes[0]]", "1");
    give(data, "$.by[$i]", "nothing");
    give(data, "$.rows[?(@ == $.k)]", r#"["x"]"#);
    give(data, "$CONST.codes[?(@ == $name)]", r#"["b"]"#);
}

#[test]
fn errors_are_reported() {
    refused("", "the expression ends");
    refused(".a.b", "did you mean `$.a.b`?");
    refused("a.b", "a path, which begins with `$`");
    refused(
        "$a.b",
        "there is no variable `$a` (there are $CONST, $SECRETS); for a member write `$.a`",
    );
    refused("$.a[", "the expression ends");
    refused("$.a[0", "`,` or `]`");
    refused("$.a[b]", "a name in quotes");
    refused("$.a['b]", "no closing `'`");
    refused("$.a..", "after `..`");
    refused("$.a.", "a name, `*` or `[`");
    refused("$.a b", "where the end is expected");
    refused("@.a", "only something inside of a filter");
    refused("$.a[?(@.b = 1)]", "write `==`");
    refused("$.a[?(@.b eq 1)]", "write `==`");
    refused("$.a and $.b", "write `&&`");
    refused("$.a[?(@.b =~ /x)]", "no closing `/`");
    refused("$.a[?(@.b =~ /(/)]", "not a valid regex");
    refused("$.a[?match(@.b, '[')]", "not a valid regex");
    refused("$.a[?(@.b =~ /x/q)]", "no flag `q`");
    refused("$.a[?length(@.b)]", "compare it with something");
    refused("$.a[?('x')]", "compare it with something");
    refused("$.a[*] == 1", "one value on each side");
    refused("1 == $..a", "one value on each side");
    refused("!$.a == 1", "put parentheses");
    refused(
        "$.a.size()",
        "there is no function `size`, only append, avg, concat",
    );
    refused("$.a.length(1)", "takes 1 argument, and gets 2");
    refused("length()", "takes 1 argument, and gets 0");
    refused("$.a[(@.length)]", "write a number, as `[-1]`");
    refused("$.a[($.n + 1)]", "write a number, as `[-1]`");
    refused("$.a[$.b]", "or a variable");
    refused("$.a[01x]", "`,` or `]`");
    refused("$.a[99999999999999999999]", "a whole number");
    refused(r"$['\x']", "no escape `\\x`");
    refused(r"$['\ud834']", "four hexadecimal digits");
    refused("$.a[?[$.b] == 1]", "may only hold literals");
    refused(
        &format!("$[?{}@{}]", "(".repeat(500), ")".repeat(500)),
        "levels deep",
    );
    refused(&format!("${}", "[?@".repeat(500)), "levels deep");
    refused(&format!("{}true", "!".repeat(500)), "levels deep");
    refused(&format!("{}[]", "[".repeat(500)), "levels deep");
    refused(&"$.a && ".repeat(500), "too many conditions");
    refused(&format!("$.{}", "a".repeat(70_000)), "at most");
}

#[test]
fn the_position_of_an_error() {
    let error = Program::jsonpath("$.a[0", &[]).unwrap_err();
    assert_eq!(error.span, Some(5..5));
    let error = Program::jsonpath("$.a[?(@.b ~ 1)]", &[]).unwrap_err();
    assert_eq!(error.span.map(|span| span.start), Some(10));
}

#[test]
fn uses_of_secrets_are_recorded() {
    let program = |source: &str| Program::jsonpath(source, &["SECRETS", "i"]).unwrap();
    let plain = program("$.a[?(@.k == $SECRETS.KEY || @.k == $SECRETS['two'])]");
    assert_eq!(plain.secrets().names, ["KEY", "two"]);
    assert!(!plain.secrets().other);
    for whole in [
        "$SECRETS",
        "$SECRETS.*",
        "$SECRETS..x",
        "$SECRETS[$i]",
        "$SECRETS['a','b']",
    ] {
        assert!(program(whole).secrets().other, "{whole}");
    }
    assert!(program("$.a[$SECRETS.KEY]").uses_var("SECRETS"));
    assert!(!program("$.a").uses_var("SECRETS"));
}

#[test]
fn only_paths_that_may_select_many_are_lists() {
    let lists = |source: &str| Program::jsonpath(source, &["i"]).unwrap().yields_list();
    for source in [
        "$.a[*]",
        "$..a",
        "$.a[?(@.b)]",
        "$.a[0:1]",
        "$.a[0,1]",
        "$[?(@.a)].b",
    ] {
        assert!(lists(source), "{source}");
    }
    for source in [
        "$.a",
        "$.a[0]",
        "$.a[$i]",
        "$.a[*].length()",
        "$..a && true",
        "1",
    ] {
        assert!(!lists(source), "{source}");
    }
}

#[test]
fn paths_name_one_place() {
    let set = |source: &str, data: &str| {
        let path = PathExpr::jsonpath(source, &["i"]).unwrap_or_else(|e| panic!("{source}: {e}"));
        let mut data = json(data);
        path.set(&mut data, Data::int(9), &[Data::int(1)], &Env::default())
            .map(|()| data.to_string())
    };
    assert_eq!(set("$.a.b[0]", "{}").unwrap(), r#"{"a":{"b":[9]}}"#);
    assert_eq!(set("$['x y']", "{}").unwrap(), r#"{"x y":9}"#);
    assert_eq!(set("$.a[-1]", r#"{"a":[1,2]}"#).unwrap(), r#"{"a":[1,9]}"#);
    assert_eq!(set("$.a[$i]", r#"{"a":[1,2]}"#).unwrap(), r#"{"a":[1,9]}"#);
    assert_eq!(set("$", r#"{"a":1}"#).unwrap(), "9");
    assert!(matches!(
        set("$.a.b", r#"{"a":1}"#),
        Err(PathError::Mismatch { .. })
    ));
    for (source, message) in [
        ("$.a[*]", "many places"),
        ("$..a", "many places"),
        ("$.a[?(@.b)]", "many places"),
        ("$.a[0:2]", "a slice"),
        ("$['a','b']", "a list of names"),
        ("$i.a", "a variable is not a place"),
        ("$.a.length()", "not a path"),
        ("'a'", "not a path"),
    ] {
        let error = PathExpr::jsonpath(source, &["i"]).unwrap_err();
        assert!(error.message.contains(message), "{source}: {error}");
    }
}

/// A runaway evaluation ends with an error in time.
#[test]
fn evaluations_are_bounded() {
    let wide = format!("[{}]", vec![r#"{"a":[{"a":1},{"a":2}]}"#; 3_000].join(","));
    let env = Env {
        limits: Limits {
            steps: 1_000_000,
            time: Duration::from_secs(600),
            memory_bytes: 8 << 20,
            output_bytes: 1 << 20,
            ..Limits::default()
        },
        ..Env::default()
    };
    for source in [
        "$[?($[?($[?($[?(@.b == 1)])])])]",
        "$..[*,*,*,*,*]..[*,*,*,*,*,*,*,*]",
        "$[*,*,*,*,*,*][*,*,*,*,*,*]..*[*,*,*]..*",
        "$[?($..a.length() == 1)]",
    ] {
        let program = Program::jsonpath(source, &[]).unwrap();
        let done = program.one(&json(&wide), &[], &env);
        assert!(
            matches!(
                done,
                Err(EvalError::StepLimit | EvalError::MemoryLimit | EvalError::OutputLimit)
            ),
            "{source}: {:?}",
            done.map(|found| found.map(|found| found.to_string().len()))
        );
    }
    let program = Program::jsonpath("$..a", &[]).unwrap();
    assert!(program.one(&json(&wide), &[], &env).is_ok());
}
