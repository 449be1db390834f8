//! SpEL, JEXL and CEL: the subset that conditions of workflows use.

use swirl_expr::{CompileError, Env, EvalError, Limits, Program};
use swirl_model::Data;

const DATA: &str = r#"{
    "name": "order", "age": 42, "price": 9.5, "empty": "", "none": null, "yes": true, "no": false,
    "tags": ["a", "b"], "numbers": [3, 1, 2], "nothing": [],
    "customer": {"name": "Ann", "mail": "ann@example.com", "address": {"zip": "12345"}},
    "items": [{"sku": "x", "price": 5, "count": 2}, {"sku": "y", "price": 20, "count": 0}],
    "users": [{"user": {"title": "CLERK"}}, {"user": {"title": "MANAGER"}}],
    "type": "big", "text": "12", "order-id": 7,
    "error": {"name": "FunctionExecutionError", "message": "failed", "code": "500"}
}"#;

type Compile = fn(&str, &[&str]) -> Result<Program, CompileError>;

fn give(compile: Compile, source: &str) -> Result<String, EvalError> {
    let program =
        compile(source, &["CONST", "SECRETS", "limit"]).unwrap_or_else(|e| panic!("{source}: {e}"));
    let vars = [
        Data::parse(br#"{"adult": 18}"#).unwrap(),
        Data::parse(br#"{"KEY": "k"}"#).unwrap(),
        Data::int(10),
    ];
    let input = Data::parse(DATA.as_bytes()).unwrap();
    let value = program.one(&input, &vars, &Env::default())?;
    Ok(value.unwrap_or_default().to_string())
}

fn all(compile: Compile, cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        let found = match give(compile, source) {
            Ok(value) => value,
            Err(error) => format!("! {error}"),
        };
        let right = match expected.strip_prefix("! ") {
            Some(part) => found.starts_with('!') && found.contains(part),
            None => found == *expected,
        };
        assert!(right, "{source}: {found}, not {expected}");
    }
}

fn refused(compile: Compile, cases: &[(&str, usize, &str)]) {
    for (source, at, part) in cases {
        let error = match compile(source, &["CONST"]) {
            Ok(_) => panic!("{source}: not refused"),
            Err(error) => error,
        };
        assert!(error.message.contains(part), "{source}: {error}");
        assert_eq!(
            error.span.clone().map(|span| span.start),
            Some(*at),
            "{source}: {error}"
        );
        assert!(
            error.message.contains(&format!("offset {at}")),
            "{source}: {error}"
        );
    }
}

#[test]
fn spel() {
    all(
        Program::spel,
        &[
            // As in the texts of the language.
            (
                "#jsonPath(taskOutputData,'$..user.title') eq 'MANAGER'",
                "true",
            ),
            (
                "#jsonPath(stateOutputData,'$..user.title') eq 'DIRECTOR'",
                "false",
            ),
            ("$.error.name eq 'FunctionExecutionError'", "true"),
            ("$.error.name ne 'FunctionExecutionError'", "false"),
            ("name eq 'order'", "true"),
            // Literals.
            ("'it''s'", "\"it's\""),
            ("\"say \"\"hi\"\"\"", "\"say \\\"hi\\\"\""),
            ("0x1F + 1L", "32"),
            ("1.5e1", "15"),
            ("{1, 2, {3}}", "[1,2,[3]]"),
            ("{a: 1, 'b c': name}", "{\"a\":1,\"b c\":\"order\"}"),
            ("{:}", "{}"),
            ("null", "null"),
            ("TRUE", "true"),
            // Comparison.
            ("age == 42 and price < 10 or no", "true"),
            ("age GE 42 AND age LE 42", "true"),
            ("age gt 42 || age lt 42", "false"),
            ("1 == 1.0", "true"),
            ("'1' == 1", "false"),
            ("not yes", "false"),
            ("!no && !!yes", "true"),
            ("none == null", "true"),
            ("missing == null", "true"),
            ("missing.deeper.still == null", "true"),
            ("null < 1", "true"),
            ("age between {40, 45}", "true"),
            ("tags == {'a', 'b'}", "true"),
            ("'a' < 1", "! cannot be compared"),
            ("name and yes", "! neither true nor false"),
            ("1 < 2 == true", "true"),
            // Arithmetic.
            ("1 + 2 * 3 - 4 / 2", "5"),
            ("7 / 2", "3"),
            ("7 / 2.0", "3.5"),
            ("7 % 4 + 7 mod 4", "6"),
            ("2 ^ 10", "1024"),
            ("-age + 2", "-40"),
            ("- -1", "1"),
            ("'a' + 1 + null", "\"a1null\""),
            ("1 / 0", "! zero"),
            ("9223372036854775807 + 1", "9.223372036854776e+18"),
            ("name * 2", "! not both numbers"),
            // Choices.
            ("age >= 18 ? 'adult' : 'child'", "\"adult\""),
            ("no ? 1 : yes ? 2 : 3", "2"),
            ("missing ?: 'other'", "\"other\""),
            ("empty ?: none ?: 3", "3"),
            ("customer?.name", "\"Ann\""),
            ("missing?.name.length()", "null"),
            ("missing.length()", "! null"),
            // Paths.
            ("customer.address.zip", "\"12345\""),
            ("customer['name']", "\"Ann\""),
            ("customer[name]", "\"Ann\""),
            ("items[1].sku", "\"y\""),
            ("items[7].sku", "null"),
            ("$.items[0].price + 1", "6"),
            ("$.items[*].price", "[5,20]"),
            ("$..price", "[9.5,5,20]"),
            ("$.items[?(@.price > 10)].sku", "[\"y\"]"),
            ("$.items[?(@.price > 100)] ? 1 : 2", "2"),
            ("$['order-id']", "7"),
            ("$.age-2", "40"),
            ("#root.age == $.age", "true"),
            ("#limit + #CONST.adult", "28"),
            ("type eq 'big'", "true"),
            ("stateData.name", "\"order\""),
            // Texts.
            ("name.length() + name.size()", "10"),
            ("name.toUpperCase().toLowerCase()", "\"order\""),
            ("' x '.trim()", "\"x\""),
            (
                "name.contains('rde') && name.startsWith('or') && name.endsWith('er')",
                "true",
            ),
            ("name.indexOf('d') + name.lastIndexOf('r')", "6"),
            ("name.substring(1, 3) + name.substring(4)", "\"rdr\""),
            ("name.substring(9)", "! beyond"),
            (
                "name.equals('order') and name.equalsIgnoreCase('ORDER')",
                "true",
            ),
            ("name.matches('o.*') and !name.matches('o')", "true"),
            ("name matches 'ord[a-z]+'", "true"),
            ("'a,b,,'.split(',')", "[\"a\",\"b\"]"),
            ("name.charAt(0) + name[1]", "\"or\""),
            ("name.concat('!').replace('r', 'RR')", "\"oRRdeRR!\""),
            ("empty.isEmpty() and ' '.isBlank()", "true"),
            ("name.compareTo('a') > 0", "true"),
            ("age.toString()", "\"42\""),
            ("age.length()", "! no size"),
            // Lists and maps.
            (
                "tags.contains('a') and tags.size() == 2 and tags.length == 2",
                "true",
            ),
            ("nothing.isEmpty() and nothing.empty", "true"),
            ("customer.containsKey('mail')", "true"),
            ("customer.containsValue('Ann')", "true"),
            ("customer.keySet().size()", "3"),
            ("customer.get('name')", "\"Ann\""),
            ("customer.getOrDefault('x', 5)", "5"),
            ("tags.indexOf('b')", "1"),
            ("items.?[price > 10].![sku]", "[\"y\"]"),
            (
                "items.^[count >= 0].sku + items.$[count >= 0].sku",
                "\"xy\"",
            ),
            ("items.![price * count]", "[10,0]"),
            ("numbers.?[#this > 1]", "[3,2]"),
            ("items.?[price > #root.age]", "[]"),
            (
                "customer.address.?[value == '12345']",
                "{\"zip\":\"12345\"}",
            ),
            ("missing?.![x]", "null"),
        ],
    );
}

#[test]
fn jexl() {
    all(
        Program::jexl,
        &[
            ("name eq 'order' and age ge 42", "true"),
            ("$.error.name == 'FunctionExecutionError'", "true"),
            ("name =~ 'ord.*'", "true"),
            ("name !~ 'ord'", "true"),
            ("name =~ ~/o.*r/", "true"),
            ("name =~ ['x', 'order']", "true"),
            ("age =~ [1, 42]", "true"),
            ("'mail' =~ customer", "true"),
            ("name =^ 'or' && name =$ 'er'", "true"),
            ("name !^ 'or' || name !$ 'er'", "false"),
            (
                "empty(missing) and empty nothing and not empty(name)",
                "true",
            ),
            ("empty", "\"\""),
            ("size(tags) + size name", "7"),
            ("size(missing)", "0"),
            ("missing.a.b.c", "null"),
            ("missing.length()", "null"),
            ("text == 12 and 12 == text", "true"),
            ("text > 5", "true"),
            ("name > 5", "! cannot be compared"),
            ("missing > 5", "false"),
            ("'1' + 1", "2"),
            ("'a' + 1", "\"a1\""),
            ("'1' + '1'", "\"11\""),
            ("missing + 1", "1"),
            ("7 div 2 + 7 mod 2", "4"),
            ("7 / 2", "3"),
            ("3.0b / 2", "1.5"),
            ("missing ?: 'x'", "\"x\""),
            ("0 ?: 5", "5"),
            ("0 ?? 5", "0"),
            ("missing ?? none ?? 5", "5"),
            ("age > 18 ? 'a' : 'b'", "\"a\""),
            ("items.0.sku + items[1].sku", "\"xy\""),
            ("customer.'name'", "\"Ann\""),
            ("[1, 2].size() + {1, 2, 3}.size()", "5"),
            ("{'a': 1}.a", "1"),
            ("{:}.size()", "0"),
            ("customer?.name", "\"Ann\""),
            ("yes == 'true'", "true"),
            ("name ? 1 : 2", "1"),
            ("'it\\'s' ## a comment", "\"it's\""),
            ("1 < 2 == true", "true"),
            ("name.toUpperCase().matches('OR.*')", "true"),
            ("$..price =~ [5]", "true"),
            ("CONST.adult", "18"),
        ],
    );
}

#[test]
fn cel() {
    all(
        Program::cel,
        &[
            ("name == 'order' && age >= 42", "true"),
            ("$.error.name == 'FunctionExecutionError'", "true"),
            ("error.name == \"FunctionExecutionError\"", "true"),
            ("has(customer.name) && !has(customer.phone)", "true"),
            ("has(customer.a.b.c)", "false"),
            ("has($.customer)", "true"),
            ("customer.phone == 1", "! no member"),
            ("missing == 1", "! no `missing`"),
            ("missing == 1 || yes", "true"),
            ("missing == 1 && no", "false"),
            ("yes || missing", "true"),
            ("'a' in tags && !('x' in tags)", "true"),
            ("'mail' in customer", "true"),
            ("size(tags) + tags.size() + size('äö')", "6"),
            ("items.all(i, i.price > 1)", "true"),
            ("items.exists(i, i.price > 10)", "true"),
            ("items.exists_one(i, i.price > 10)", "true"),
            ("items.exists(i, i.price > 100)", "false"),
            ("items.filter(i, i.count > 0).map(i, i.sku)", "[\"x\"]"),
            ("items.map(i, i.count > 0, i.sku)", "[\"x\"]"),
            ("items.all(i, items.exists(j, j.sku == i.sku))", "true"),
            ("customer.exists(k, k == 'mail')", "true"),
            ("items.all(i, i.nope > 1)", "! no member"),
            ("name.matches('rd')", "true"),
            ("matches(name, '^rd')", "false"),
            (
                "name.startsWith('or') && name.endsWith('er') && name.contains('rde')",
                "true",
            ),
            ("int('12') + int(3.9)", "15"),
            ("double('1.5')", "1.5"),
            ("string(12) + string(true)", "\"12true\""),
            ("bool('true')", "true"),
            ("int('x')", "! not a number"),
            ("7 / 2 + 7 % 2", "4"),
            ("1 / 0", "! zero"),
            ("9223372036854775807 + 1", "! beyond"),
            ("1 + 'a'", "! cannot be added"),
            ("[1] + [2]", "[1,2]"),
            ("{'a': 1, 'b': [2]}.b[0]", "2"),
            ("[1, 2][5]", "! no element"),
            ("1 < 'a'", "! cannot be compared"),
            ("1 ? 2 : 3", "! neither true nor false"),
            ("age > 18 ? 'a' : 'b'", "\"a\""),
            (r#"r'\d' + "\u00e4\n" + '''a'b'''"#, "\"\\\\dä\\na'b\""),
            ("0x10 + 5u // a comment", "21"),
            ("-age", "-42"),
            ("type == 'big'", "true"),
        ],
    );
}

#[test]
fn conditions_over_errors() {
    let vars = ["CONST", "error"];
    let error = Data::parse(br#"{"name": "FunctionError", "message": "m"}"#).unwrap();
    let input = Data::parse(br#"{"name": "data", "age": 3}"#).unwrap();
    for compile in [Program::spel, Program::jexl, Program::cel] as [Compile; 3] {
        for source in [
            "name == 'FunctionError'",
            "$.error.name == 'FunctionError'",
            "error.message == 'm'",
            "$.name == 'data' && age == 3",
        ] {
            let program = compile(source, &vars).unwrap();
            let value = program.one(&input, &[Data::NULL, error.clone()], &Env::default());
            assert_eq!(value, Ok(Some(Data::bool(true))), "{source}");
        }
    }
}

#[test]
fn unavailable_parts_are_rejected_with_their_position() {
    refused(
        Program::spel,
        &[
            ("T(java.lang.Runtime).getRuntime()", 0, "types"),
            ("1 == T(Math).PI", 5, "types"),
            ("new String('a')", 0, "cannot be made"),
            ("name instanceof T(String)", 5, "instanceof"),
            ("name = 'x'", 5, "assignments"),
            ("@bean.run()", 0, "beans"),
            ("name.getClass()", 5, "types"),
            ("name.class", 5, "types"),
            ("name.foo()", 5, "no method `foo`"),
            ("name.startWith('x')", 5, "did you mean `startsWith`"),
            ("foo(1)", 0, "no function `foo`"),
            ("#foo(1)", 0, "#foo"),
            ("#other == 1", 0, "no variable `other`"),
            ("name.length(1)", 5, "takes 0 arguments and gets 1"),
            ("1 +", 3, "ends"),
            ("1 2", 2, "where the end is expected"),
            ("(1", 2, "`)`"),
            ("'a", 0, "no `'`"),
            ("a && ", 5, "ends"),
            ("name matches '('", 13, "regex"),
            ("#jsonPath(taskData, '$[')", 20, "not a JSONPath"),
            ("#jsonPath(taskData, name)", 20, "must be a string"),
            ("count++", 5, "where the end"),
            ("a ~ b", 2, "no `~`"),
            ("12abc", 0, "not a number"),
        ],
    );
    refused(
        Program::jexl,
        &[
            ("new('java.lang.String')", 0, "cannot be made"),
            ("x = 1", 2, "assignments"),
            ("if (x) y", 0, "statements"),
            ("for(x : y) z", 0, "statements"),
            ("var x", 0, "declared"),
            ("a; b", 1, "where the end"),
            ("x -> x", 2, "where the end"),
            ("1..5", 1, "where the end"),
            ("a & b", 2, "where the end"),
            ("ns:fn(1)", 2, "where the end"),
            ("foo(1)", 0, "no function"),
            ("`a`", 0, "no ``` in JEXL"),
        ],
    );
    refused(
        Program::cel,
        &[
            ("timestamp('2020-01-01T00:00:00Z')", 0, "timestamps"),
            ("duration('1s')", 0, "durations"),
            ("type(a)", 0, "types"),
            ("a.getFullYear()", 2, "no method"),
            ("a.all(x)", 7, "`,`"),
            ("a.all(1, true)", 6, "name of a variable"),
            ("has(a)", 0, "asks for a member"),
            ("a and b", 2, "where the end"),
            ("a = b", 2, "where the end"),
            ("M{a: 1}", 1, "where the end"),
            ("b'abc'", 1, "where the end"),
            ("a.b.c.foo(1)", 6, "no method"),
        ],
    );
}

#[test]
fn arbitrary_sources_are_parsed_within_bounds() {
    let n = 60_000;
    let long = [
        format!("1{}", "+1".repeat(n / 2)),
        format!("true{}", "&&true".repeat(n / 6)),
        format!("a{}", ".b".repeat(n / 2)),
        format!("a{}", "[0]".repeat(n / 3)),
        format!("{}true", "!".repeat(n)),
        format!("$.a{}", ".a".repeat(n / 2)),
        format!("1{}", " == 1".repeat(n / 5)),
        format!("$.a{}", "+$.a".repeat(n / 4)),
    ];
    let deep = [
        format!("{}1{}", "(".repeat(n / 2), ")".repeat(n / 2)),
        format!("{}1{}", "{".repeat(n / 2), "}".repeat(n / 2)),
        format!("{}1{}", "a[".repeat(n / 3), "]".repeat(n / 3)),
        "(".repeat(n),
        "1?".repeat(n / 2),
        "1?1:".repeat(n / 4),
        "$[".repeat(n / 2),
        "a.?[".repeat(n / 4),
        "a.b(".repeat(n / 4),
        "empty ".repeat(n / 6),
        "- ".repeat(n / 2),
        "'".repeat(n - 1),
    ];
    let input = Data::parse(DATA.as_bytes()).unwrap();
    for compile in [Program::spel, Program::jexl, Program::cel] as [Compile; 3] {
        for source in &long {
            if let Ok(program) = compile(source, &[]) {
                let _ = program.one(&input, &[], &Env::default());
            }
        }
        for source in &deep {
            assert!(compile(source, &[]).is_err());
        }
    }
    let sum = Program::spel(&long[0], &[]).unwrap();
    assert_eq!(
        sum.one(&input, &[], &Env::default()),
        Ok(Some(Data::int(30_001)))
    );
}

#[test]
fn loops_are_bounded() {
    let numbers: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let input = Data::parse(format!("{{\"n\": [{}]}}", numbers.join(",")).as_bytes()).unwrap();
    let env = Env {
        limits: Limits {
            steps: 500_000,
            time: std::time::Duration::from_secs(600),
            memory_bytes: 8 << 20,
            ..Limits::default()
        },
        ..Env::default()
    };
    let nested = "n.all(a, n.all(b, n.all(c, n.all(d, a + b + c + d >= 0))))";
    let program = Program::cel(nested, &[]).unwrap();
    assert_eq!(program.one(&input, &[], &env), Err(EvalError::StepLimit));
    let grown = "n.map(a, n.map(b, n.map(c, a + b + c)))";
    let program = Program::cel(grown, &[]).unwrap();
    let found = program.one(&input, &[], &env);
    assert!(
        matches!(found, Err(EvalError::MemoryLimit | EvalError::StepLimit)),
        "{found:?}"
    );
    let doubled = format!("'xxxxxxxx'{}", ".replace('x', 'xxxxxxxx')".repeat(20));
    let program = Program::spel(&doubled, &[]).unwrap();
    assert_eq!(program.one(&input, &[], &env), Err(EvalError::MemoryLimit));
}

#[test]
fn uses_of_variables_and_secrets_are_recorded() {
    let vars = ["CONST", "SECRETS"];
    let program = Program::spel("#SECRETS.KEY == #CONST.x", &vars).unwrap();
    assert!(program.uses_var("CONST") && program.uses_var("SECRETS"));
    assert_eq!(program.secrets().names, ["KEY"]);
    assert!(!program.secrets().other);
    for source in [
        "#SECRETS == null",
        "#SECRETS[#CONST.x]",
        "#jsonPath(#SECRETS, '$.KEY')",
        "$SECRETS.size()",
    ] {
        let program = Program::spel(source, &vars).unwrap();
        assert!(
            program.secrets().other || !program.secrets().names.is_empty(),
            "{source}"
        );
    }
    let program = Program::cel("SECRETS.KEY == 'a'", &vars).unwrap();
    assert_eq!(program.secrets().names, ["KEY"]);
}
