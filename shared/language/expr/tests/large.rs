//! Large sources of every form: they are compiled in linear time, and evaluated without a stack overflow on the stack
//! of a server's thread.

use swirl_expr::{Env, Limits, PathExpr, Program};
use swirl_model::Data;

const BYTES: usize = 32_000;

/// `head`, then as many `unit`s as fit, then `tail`.
fn row(head: &str, unit: &str, tail: &str) -> String {
    let times = (BYTES - head.len() - tail.len()) / unit.len();
    format!("{head}{}{tail}", unit.repeat(times))
}

/// `middle` inside of as many `open` and `close` as fit.
fn nested(open: &str, middle: &str, close: &str) -> String {
    let times = (BYTES - middle.len()) / (open.len() + close.len());
    format!("{}{middle}{}", open.repeat(times), close.repeat(times))
}

fn sources() -> Vec<String> {
    vec![
        row("1", "+1", ""),
        row("1", "-1", ""),
        row("1", "*1%1", ""),
        row("1", "+1==1", ""),
        row("[1,1", "+(1,1)", "]"),
        row("{}", "+{}", ""),
        row(".", "|.", ""),
        row(".", "|.[0]", ""),
        row("length", "|length", ""),
        row("", "..|", "."),
        row("", "recurse|", "."),
        row("1", ",1", ""),
        row("true", " and true", ""),
        row(".a", "//.a", ""),
        row(".a", "|=.a", ""),
        row(".a", "=.a", ""),
        row(".", "?", ""),
        row("", "-", "1"),
        row("", "try ", "1"),
        row("", "1 as $x|", "1"),
        row("", "1 as [$a] ?// $a|", "1"),
        row("1 as $a", "?//$a", "|1"),
        row("", ".1+", "1."),
        row("", "label $x|", "1"),
        row("", "def f:1;", "1"),
        row("", "def f:", "1;"),
        row("{a:1", ",a:1", "}"),
        row("\"", "\\(1)", "\""),
        row("if . then 1", " elif . then 1", " end"),
        row("a", "|a", ""),
        nested("[", "1", "]"),
        nested("{a:", "1", "}"),
        nested("(", "1", ")"),
        nested("\"\\(", "1", ")\""),
        nested("if . then ", "1", " end"),
        nested("if ", "1", " then 1 else 2 end"),
        nested("reduce 1 as $x (0;", "1", ")"),
        nested("map(", "1", ")"),
        nested("first(", "1", ")"),
        nested("def f:", "1", ";f"),
        nested("def f(g):", "1", ";f(1)"),
        nested(". as [", "$x", "]"),
        format!("{}|1", row(". as [$x", ",$x", "]")),
        format!("{}|1", row(". as {a:$x", ",a:$x", "}")),
        format!("{}1", row("def f($x", ";$x", "):1;")),
        nested("1+(", "1", "+1)"),
        nested("(1,1)+(", "1", ")"),
        nested("path(", ".", ")"),
    ]
}

fn env() -> Env {
    let limits = Limits {
        // Endless evaluations are not the subject of this test.
        steps: 1_000_000,
        time: std::time::Duration::from_secs(600),
        ..Limits::default()
    };
    Env {
        limits,
        ..Env::default()
    }
}

fn on_stack(bytes: usize, f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(bytes);
    thread.spawn(f).unwrap().join().unwrap();
}

#[test]
fn sources_of_any_form() {
    on_stack(2 << 20, || {
        let input = Data::parse(br#"{"a": null}"#).unwrap();
        for source in sources() {
            if let Ok(program) = Program::jq(&source, &[]) {
                let _ = program.one(&input, &[], &env());
            }
            let _ = PathExpr::jq(&source, &[]);
        }
    });
}

#[test]
fn the_longest_sum() {
    let sum = format!("1{}", "+1".repeat(32_000));
    let program = Program::jq(&sum, &[]).unwrap();
    let _ = program.one(&Data::NULL, &[], &env());
    let sum = format!("1{}", "+1".repeat(5_000));
    let program = Program::jq(&sum, &[]).unwrap();
    assert_eq!(
        program.one(&Data::NULL, &[], &env()),
        Ok(Some(Data::int(5_001)))
    );
}

/// Patterns and parameters are bound recursively. Their number is bounded, and any permitted one works on any stack.
#[test]
fn what_is_bound_at_once_is_bounded() {
    let nested = |parts: usize| {
        let levels = parts - 1;
        format!(". as {}$x{}|$x", "[".repeat(levels), "]".repeat(levels))
    };
    let wide = |parts: usize| format!(". as [$x{}]|$x", ",$x".repeat(parts - 2));
    let reduced = |parts: usize| format!("reduce {} (0;$x)", nested(parts).replace("|$x", ""));
    let called = |parts: usize| {
        let (more, args) = (";$x".repeat(parts - 1), ";.".repeat(parts - 1));
        format!("def f($x{more}):$x;f(.{args})")
    };
    let forms: [&dyn Fn(usize) -> String; 4] = [&nested, &wide, &reduced, &called];
    for form in forms {
        for parts in [257, 4_000] {
            let error = Program::jq(&form(parts), &[]).unwrap_err();
            assert!(error.message.contains("256 pa"), "{error}");
        }
        for stack in [256 << 10, 2 << 20] {
            let source = form(256);
            on_stack(stack, move || {
                let program = Program::jq(&source, &[]).unwrap();
                assert_eq!(program.one(&Data::NULL, &[], &env()), Ok(Some(Data::NULL)));
            });
        }
    }
}

/// A path is evaluated recursively, part by part. Its length is bounded, and any permitted path works on any stack.
#[test]
fn the_length_of_paths_is_bounded() {
    const FORMS: [(&str, &str, &str); 10] = [
        (".", "[0]", ""),
        (".", "[0]?", ""),
        ("", ".a?", ""),
        (".", "[0:]", ""),
        (".", "[]", ""),
        (".", "[.x]", ""),
        ("path(.", "[0]", ")"),
        (".", "[0]", " = 1"),
        ("", ".a", " |= 1"),
        (".", "[0]", " += 1"),
    ];
    for (head, part, tail) in FORMS {
        let of = |parts: usize| format!("{head}{}{tail}", part.repeat(parts));
        for parts in [257, 6_000] {
            let error = Program::jq(&of(parts), &[]).unwrap_err();
            assert!(error.message.contains("256 parts"), "{part}: {error}");
        }
        for stack in [256 << 10, 2 << 20] {
            let source = of(256);
            on_stack(stack, move || {
                let program = Program::jq(&source, &[]).unwrap();
                let _ = program.one(&Data::NULL, &[], &env());
            });
        }
    }
    let deep = format!(".{}", "[0]".repeat(256));
    let program = Program::jq(&deep, &[]).unwrap();
    assert_eq!(program.one(&Data::NULL, &[], &env()), Ok(Some(Data::NULL)));
}

/// Data that cannot be read back is never created, neither by a long path nor by a deep value.
#[test]
fn places_are_not_deeper_than_data() {
    for (path, value, fits) in [
        (90, 5, true),
        (90, 15, false),
        (150, 0, false),
        (6_000, 0, false),
    ] {
        let value = Data::parse(format!("{}{}", "[".repeat(value), "]".repeat(value)).as_bytes());
        let value = value.unwrap_or_default();
        let compiled = [
            PathExpr::jq(&".a".repeat(path), &[]),
            PathExpr::jsonpath(&format!("${}", ".a".repeat(path)), &[]),
        ];
        for compiled in compiled {
            let mut data = Data::object();
            let set = compiled
                .map_err(|error| error.to_string())
                .and_then(|path| {
                    path.set(&mut data, value.clone(), &[], &env())
                        .map_err(|e| e.to_string())
                });
            assert_eq!(set.is_ok(), fits, "{path}: {set:?}");
            assert!(Data::parse(data.to_string().as_bytes()).is_ok());
        }
    }
}
