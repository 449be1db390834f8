//! Expressions that never end or grow without bound. Each must end with the right error, and the thread must continue.

use std::time::Duration;

use swirl_expr::{Env, EvalError, Limits, Program, spent};
use swirl_model::Data;

/// Few steps and much time, so that evaluations end because of their work and not because of the machine's speed.
fn env(steps: u64) -> Env {
    Env {
        limits: Limits {
            steps,
            time: Duration::from_secs(600),
            ..Limits::default()
        },
        ..Env::default()
    }
}

fn run(source: &str, steps: u64) -> Result<Option<Data>, EvalError> {
    let input =
        Data::parse(br#"{"a":[1,2,3],"s":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#).unwrap();
    let program = Program::jq(source, &[]).unwrap_or_else(|e| panic!("{source}: {e}"));
    let result = program.one(&input, &[], &env(steps));
    // The thread continues.
    let normal = Program::jq("[.a[] | . * 2] | add", &[]).unwrap();
    assert_eq!(
        normal.one(&input, &[], &Env::default()),
        Ok(Some(Data::int(12))),
        "after {source}"
    );
    result
}

/// The second limit is for expressions that exceed another limit late.
const STEPS: [u64; 2] = [1_000_000, 40_000_000];

fn check(name: &str, source: &str, expected: &[&str]) {
    let mut found = String::new();
    for steps in STEPS {
        found = match &run(source, steps) {
            Err(error) => format!("{error:?}"),
            Ok(_) => "Ok".to_owned(),
        };
        if expected.iter().any(|expected| found.starts_with(expected)) {
            return;
        }
        if !found.starts_with(TIME) {
            break;
        }
    }
    panic!("{name}: {source}: {found}");
}

macro_rules! cases {
    ($($name:ident: $source:expr => $expected:expr;)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), &$source, &$expected);
        })*

        const ALL: &[(&str, fn())] = &[$((stringify!($name), $name)),*];
    };
}

const TIME: &str = "StepLimit";
const MEMORY: &str = "MemoryLimit";
const STACK: &str = "StackLimit";
const DEPTH: &str = "DepthLimit";
const OUTPUT: &str = "OutputLimit";
const MESSAGE: &str = "Message";
const OK: &str = "Ok";

cases! {
    tail_call: "def f: f; f" => [TIME];
    double_tail_call: "def f: f | f; f" => [STACK];
    recursion: "def f: 1 + f; f" => [STACK];
    recursion_in_array: "def f: [f]; f" => [STACK];
    recursion_in_object: "def f: {a: f}; f" => [STACK];
    recursion_in_condition: "def f: if f then 1 else 2 end; f" => [STACK];
    recursion_in_string: r#"def f: "\(f)"; f"# => [STACK];
    recursion_in_try: "def f: try f catch .; f" => [STACK];
    recursion_in_reduce: "def f: reduce f as $x (0; 1); f" => [STACK];
    recursion_in_binding: "def f: f as $x | 1; f" => [STACK];
    recursion_in_argument: "def f($x): f(f($x)); f(1)" => [STACK, TIME];
    recursion_in_path: "null | path(def f: .a | f | .b; f)" => [STACK];
    recursion_in_update: "null | (def f: .a | f; f) |= 1" => [STACK];
    recursion_in_alternative: "def f: f // 1; f" => [STACK];
    recursion_in_negation: "def f: -f; f" => [STACK];
    functions_of_functions: "def f(g): f(g | g); f(.)" => [STACK];
    functions_of_functions_called: "def f(g): g | f(g | g); f(.)" => [STACK, TIME];
    functions_passed_on: "def f(g): f(g); f(.)" => [STACK];
    functions_passed_on_within: "def f(g): def h(k): f(k); h(g | g); f(.)" => [STACK];
    functions_in_path: "null | path(def f(g): .a | f(g | g); f(.))" => [STACK];
    ever_longer_path: "null | path(def f: .a | f; f)" => [STACK];
    ever_longer_path_of_slices: "[] | path(def f: .[0:] | f; f)" => [STACK];
    ever_longer_path_repeated: "null | [path(repeat(.a))]" => [STACK, TIME, MEMORY];
    last_path: "null | last(path(recurse(.a)))" => [STACK, TIME];
    slices_of_slices: "[range(10)] | until(false; .[0:])" => [STACK, TIME];
    backtracking: "def f: (1, 2) | f; f" => [TIME, MEMORY];
    branching: "def f: f, f; f" => [TIME, MEMORY, STACK];
    range_collected: "[range(1e12)]" => [MEMORY, TIME];
    range_last: "last(range(1e12))" => [TIME];
    range_reduced: "reduce range(1e12) as $i (0; . + 1)" => [TIME];
    range_foreach: "[foreach range(1e12) as $i (0; . + 1)]" => [MEMORY, TIME];
    range_limited: "[limit(1e12; range(1e12))]" => [MEMORY, TIME];
    range_skipped: "nth(1e12; range(1e13))" => [TIME];
    range_nothing_selected: "first(range(1e12) | select(. < 0))" => [TIME];
    range_of_floats: "[range(0; 1; 1e-12)]" => [MEMORY, TIME];
    repeat_collected: "[repeat(1)]" => [MEMORY, TIME];
    repeat_limited: "[limit(1e12; repeat(1))]" => [MEMORY, TIME];
    repeat_last: "last(repeat(1))" => [TIME];
    until_false: "until(false; .)" => [TIME];
    while_true: "[while(true; .)]" => [MEMORY, TIME];
    recurse_identity: "[recurse(.)]" => [MEMORY, TIME];
    recurse_with_condition: "last(recurse(.; true))" => [TIME];
    isempty_of_nothing: "isempty(repeat(1) | select(false))" => [TIME];
    any_of_nothing: "any(repeat(1); false)" => [TIME];
    label_never_broken: "label $out | repeat(1) | select(false) | ., break $out" => [TIME];
    error_caught_again: "def f: try error(1) catch f; f" => [STACK, TIME];
    limits_cannot_be_caught: "try repeat(1) catch 2 | select(false)" => [TIME];
    limits_cannot_be_caught_in_a_loop: "def f: (try [range(1e12)] catch 1) | f; f" => [MEMORY, TIME];
    nested_loops: "[range(100000)] | [.[] as $a | .[] as $b | $a + $b] | length" => [MEMORY, TIME];
    nested_loops_without_memory: "[range(30000)] | reduce (.[] as $a | .[] as $b | $a) as $x (0; . + $x)" => [TIME];
    cartesian: "[range(30000)] | last(.[] + .[])" => [TIME];
    cartesian_objects: "[range(10000)] | last({a: .[], b: .[], c: .[]})" => [TIME];
    cartesian_indexes: "[range(10000)] | last(.[.[], .[]])" => [TIME, OK];
    combinations: "[[range(100)] | [., ., ., ., ., .] | combinations]" => [MEMORY, TIME];
    combinations_counted: "last([range(100)] | combinations(6))" => [TIME, MEMORY];
    string_times_number: r#""x" * 1e12"# => [MEMORY, TIME];
    string_times_number_again: r#""x" * 1e6 | . * 1e6"# => [MEMORY, TIME];
    strings_doubled: r#"def f: . + . | f; "x" | f"# => [MEMORY, TIME];
    strings_doubled_by_reduce: r#"reduce range(1000) as $i ("x"; . + .)"# => [MEMORY, TIME];
    strings_kept: r#"[range(1e6) | "x" * 1e6]"# => [MEMORY, TIME];
    strings_made: r#"last(range(1e9) | "x" * 1e6)"# => [TIME, MEMORY];
    string_grown: r#"reduce range(1e12) as $i (""; . + "xxxxxxxxxx")"# => [TIME, MEMORY];
    string_grown_by_interpolation: r#"reduce range(1e12) as $i (""; "\(.)\(.)y")"# => [MEMORY, TIME];
    string_joined: r#"[range(1000) | "x" * 1000000] | join("")"# => [MEMORY, TIME];
    string_escaped: r#""<" * 16e6 | @html | @html | @html | @uri"# => [MEMORY, TIME];
    string_as_json_of_json: "def f: tojson | f; \"\\\"\" | f" => [MEMORY, TIME];
    string_exploded: r#""x" * 16e6 | explode"# => [MEMORY, TIME];
    string_split: r#""x" * 16e6 | split("")"# => [MEMORY, TIME];
    string_indices: r#""a" * 4e6 | indices("a" * 2e6)"# => [TIME, MEMORY];
    string_replaced: r#""a" * 1e6 | gsub("a"; "b" * 1000)"# => [TIME, MEMORY];
    arrays_doubled: "reduce range(1000) as $i ([1]; . + .)" => [MEMORY, TIME];
    arrays_grown: "reduce range(1e12) as $i ([]; . + [$i])" => [MEMORY, TIME];
    arrays_copied: "[range(100000)] | reduce range(1e9) as $i ([]; . + [[$i] + [range(1000)]])" => [MEMORY, TIME];
    array_copied_at_each_step: "[range(100000)] as $a | last(range(1e9) | $a | .[0] = 1)" => [TIME, MEMORY];
    huge_index: "null | .[1e9] = 1" => [MEMORY, TIME];
    huger_index: "null | .[1e18] = 1" => [MEMORY, TIME];
    infinite_index: "null | .[infinite] = 1" => [MEMORY, TIME];
    huge_index_by_setpath: "null | setpath([1e9]; 1)" => [MEMORY, TIME];
    huge_index_read: "null | getpath([1e9, 1e9])" => [OK];
    huge_indexes: "reduce range(1e6) as $i (null; .[$i * 1000] = 1)" => [MEMORY, TIME];
    objects_grown: "reduce range(1e12) as $i ({}; .[\"k\\($i)\"] = $i)" => [MEMORY, TIME];
    nested_arrays: "reduce range(1e6) as $i (null; [.])" => [DEPTH];
    nested_objects: "reduce range(1e6) as $i (null; {a: .})" => [DEPTH];
    nested_by_update: "reduce range(1e6) as $i (null; .a = .)" => [DEPTH, TIME, MEMORY];
    nested_by_path: "null | setpath([range(100000) | \"a\"]; 1)" => [DEPTH, STACK];
    nested_by_getpath: "null | getpath([range(10000) | \"a\"])" => [OK];
    nested_by_tail_call: "def f: [.] | f; f" => [DEPTH];
    nested_by_addition: "reduce range(1e6) as $i ([]; [] + [.])" => [DEPTH];
    nested_by_product: "reduce range(1e6) as $i ({}; {a: .} * {a: {b: .}})" => [DEPTH, TIME, MEMORY];
    nested_by_group: "reduce range(1e6) as $i ([1]; group_by(.))" => [DEPTH, TIME];
    nested_by_map: "reduce range(1e6) as $i ([1]; .[0] |= [.])" => [DEPTH, TIME];
    nested_json: r#"("[" * 100000) + ("]" * 100000) | fromjson"# => [MESSAGE];
    nested_output: "reduce range(200) as $i (null; [.])" => [DEPTH];
    deep_text: "reduce range(400) as $i (null; [.]) | tojson | length" => [OK];
    shared_output: "reduce range(60) as $i ([]; [., .])" => [OUTPUT, TIME];
    shared_text: "reduce range(60) as $i ([]; [., .]) | tojson" => [MEMORY, TIME];
    shared_compared: "def f: reduce range(60) as $i ([]; [., .]); f == f" => [TIME, MEMORY];
    shared_sorted: "def f: reduce range(60) as $i ([]; [., .]); [f, f] | sort" => [TIME, MEMORY, OUTPUT];
    shared_key: "reduce range(60) as $i ([]; [., .]) | {(.): 1}" => [MESSAGE];
    shared_error: "reduce range(60) as $i ([]; [., .]) | error" => [MESSAGE];
    shared_type_error: "reduce range(60) as $i ([]; [., .]) | . + 1" => [MESSAGE];
    shared_contains: "def f: reduce range(60) as $i ([]; [., .]); f | contains([f])" => [TIME, MEMORY, OK];
    shared_walked: "reduce range(60) as $i ([]; [., .]) | [..] | length" => [MEMORY, TIME];
    shared_flattened: "reduce range(60) as $i ([1]; [., .]) | flatten" => [MEMORY, TIME];
    shared_paths: "reduce range(60) as $i ([1]; [., .]) | last(paths)" => [MEMORY, TIME];
    shared_leafs: "reduce range(60) as $i ([1]; [., .]) | walk(1)" => [MEMORY, TIME];
    shared_streamed: "reduce range(60) as $i ([1]; [., .]) | last(tostream)" => [MEMORY, TIME];
    shared_index: "reduce range(60) as $i ([]; [., .]) as $k | {} | .[$k]" => [MESSAGE];
    big_output: "[range(1e6)] | [., ., ., ., ., ., ., .]" => [OUTPUT];
    contains_all: "[range(30000)] | contains([range(30000) | . + 30000])" => [TIME, OK];
    indices_of_array: "[range(1e6) | 0] | indices([range(300000) | 0] + [1])" => [TIME, MEMORY];
    subtraction: "[range(300000)] - [range(300000)] | length" => [TIME, OK, MEMORY];
    sorted: "[range(1e6)] | sort_by(-.) | length" => [TIME, OK, MEMORY];
    grouped: "[range(1e6)] | group_by(. % 10) | length" => [TIME, OK, MEMORY];
    sort_endlessly: "[1, 2] | sort_by(repeat(1))" => [MEMORY, TIME];
    integers_squared: "reduce range(1000) as $i (2; . * .)" => [OK];
    integers_squared_as_text: "reduce range(1000) as $i (2; . * .) | tostring | length" => [OK];
    factorial: "reduce range(1; 1e12) as $i (1; . * $i)" => [TIME];
    big_number: "1e999999" => [OK];
    big_literal: "9".repeat(60_000) => [OK];
    big_number_parsed: r#""9" * 10e6 | tonumber"# => [OK, TIME];
    big_number_in_json: r#""9" * 10e6 | fromjson"# => [OK, TIME, MESSAGE];
    powers: "[pow(10; 1e9), exp10, (1e9 | exp2)] | length" => [OK, MESSAGE];
    power_tower: "reduce range(1e12) as $i (2; pow(.; 1.0001))" => [TIME];
    scaled: "[ldexp(1; 1000000000), scalbln(1; 1000000000)] | length" => [OK];
    imploded: "[range(1e7) | 65] | implode" => [MEMORY, TIME];
    regex_nested: r#".s + "b" | test("(a+)+$")"# => [OK];
    regex_long_text: r#""a" * 1e7 | test("(a*)*b")"# => [TIME, MESSAGE, OK];
    regex_repeated: r#"test("((a{1000}){1000}){1000}")"# => [MESSAGE];
    regex_of_number: "test(\"a\")" => [MESSAGE];
    regex_repeated_unicode: r#".s | test("(\\w{100}){100}")"# => [MESSAGE];
    regex_of_everything: r#""a" * 1e6 | [match(""; "g")] | length"# => [MEMORY, TIME];
    regex_quadratic: r#""a" * 1e6 | [match(".*[^A-Z]b|a"; "g")] | length"# => [MEMORY, TIME, MESSAGE];
    regex_nested_groups: format!(".s | test(\"{}a{}\")", "(".repeat(2000), ")".repeat(2000)) => [MESSAGE];
    regexes_without_end: r#"last(range(1e9) | tostring | test("a\(.)+b{100}"))"# => [TIME];
    date_format: "now | strftime(\"%c\" * 1e6)" => [MEMORY, TIME, OK, MESSAGE];
    date_of_nothing: "1e300 | todate" => [MESSAGE];
    date_far_away: "1425599625599621 | todate" => [MESSAGE];
    date_far_away_in_parts: "-1425599625599621 | gmtime" => [MESSAGE];
    split_by_regex: r#""a" * 1e6 | [splits("")] | length"# => [MEMORY, TIME];
    base64: r#""x" * 16e6 | @base64 | @base64"# => [MEMORY, TIME];
    base64_of_nothing: r#""=" * 1e6 | @base64d"# => [MESSAGE];
    csv: "[range(1e6)] | @csv | length" => [OK, TIME, MEMORY];
    formats: "[range(1e9)] | @sh" => [MEMORY, TIME];
    transposed: "[range(3000)] | map([range(3000)]) | transpose" => [MEMORY, TIME];
    flattened: "[range(3e5)] | [., ., ., .] | flatten(1e9) | length" => [TIME, MEMORY, OK];
    entries: "[range(1e6)] | to_entries | from_entries" => [MEMORY, TIME, MESSAGE];
    walked: "[range(1e6)] | walk(.) | length" => [TIME, OK, MEMORY];
    updated: "[range(1e6)] | .[] |= . + 1 | length" => [TIME, OK, MEMORY];
    updated_endlessly: ".a[] |= (repeat(1) | select(false))" => [TIME];
    updated_by_reduce: "(reduce range(1e9) as $i (.; .)) |= 1" => [STACK, TIME];
    updated_by_recursion: "(.. | select(false)) |= 1" => [OK];
    deleted: "[range(100000)] | del(.[]) | length" => [TIME, OK, MEMORY];
    deleted_half: "[range(100000)] | del(.[range(50000)]) | length" => [TIME, OK, MEMORY];
    stream_of_paths: "[range(1e5)] | last(path(..))" => [OK, TIME];
    streams: "fromstream(range(1e9) | [[0], 1])" => [TIME];
    index_of_all: "INDEX(range(1e9); .)" => [MEMORY, TIME];
    until_a_string_is_long: r#""x" | until(length > 1e12; . + .)"# => [MEMORY, TIME];
    slice_by_slice: r#""x" * 1e6 | until(length == 0; .[1:])"# => [TIME, STACK];
    first_of_nothing: "first(repeat(1) | empty)" => [TIME];
    alternative_of_nothing: "[repeat(null)] // 1" => [MEMORY, TIME];
    destructured: ". as [$a] | def f: f; f" => [TIME, MESSAGE];
    errors_made: "[range(1e9) | try error([range(1000)]) catch .]" => [MEMORY, TIME];
    message_long: r#"error("x" * 10e6)"# => [MESSAGE];
}

#[test]
fn in_one_thread() {
    for (name, case) in ALL
        .iter()
        .filter(|(name, _)| name.contains("recursion") || name.contains("nested_"))
    {
        println!("{name}");
        case();
    }
}

#[test]
fn in_threads_with_small_stacks() {
    let cases = [
        "recursion",
        "functions_of_functions",
        "ever_longer_path",
        "nested_arrays",
        "shared_compared",
        "recursion_in_update",
    ];
    for (name, case) in ALL.iter().filter(|(name, _)| cases.contains(name)) {
        println!("{name}");
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        thread.spawn(case).unwrap().join().unwrap();
    }
}

#[test]
fn in_several_threads_at_once() {
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let cases = [
                "recursion",
                "range_collected",
                "tail_call",
                "strings_doubled",
            ];
            std::thread::Builder::new()
                .stack_size(2 << 20)
                .spawn(move || {
                    for _ in 0..3 {
                        ALL.iter().find(|(name, _)| *name == cases[n]).unwrap().1();
                    }
                })
                .unwrap()
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

/// A caller that evaluates several expressions can limit their total work, whatever their time.
#[test]
fn the_total_work_of_a_thread_is_limited() {
    let long = Program::jq("[range(300000)] | length", &[]).unwrap();
    let short = Program::jq("1 + 1", &[]).unwrap();
    let most = |spent_max| {
        let limits = Limits {
            steps: u64::MAX,
            time: Duration::from_secs(600),
            spent_max: Some(spent_max),
            ..Limits::default()
        };
        Env {
            limits,
            ..Env::default()
        }
    };
    let input = Data::int(0);
    let before = spent();
    let found = long.one(&input, &[], &most(before + 30_000_000));
    assert_eq!(found, Ok(Some(Data::int(300_000))));
    let cost = spent() - before;
    assert!(cost > 300_000, "{cost}");
    // The same work costs the same.
    let again = long.one(&input, &[], &most(spent() + cost));
    assert_eq!(again, Ok(Some(Data::int(300_000))));
    let found = long
        .one(&input, &[], &most(spent() + cost / 2))
        .unwrap_err();
    assert_eq!(found, EvalError::TimeLimit);
    // Earlier work counts too, even for a cheap expression.
    let found = short.one(&input, &[], &most(spent() - 1)).unwrap_err();
    assert_eq!(found, EvalError::TimeLimit);
    assert_eq!(
        short.one(&input, &[], &most(spent() + 100)),
        Ok(Some(Data::int(2)))
    );
}
