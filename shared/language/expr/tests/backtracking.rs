//! Regular expressions with look-around and back-references: supported, but bounded.

use swirl_expr::{Env, EvalError, Program};
use swirl_model::Data;

fn run(source: &str) -> Result<Option<Data>, EvalError> {
    let program = Program::jq(source, &[]).unwrap_or_else(|e| panic!("{source}: {e}"));
    program.one(&Data::NULL, &[], &Env::default())
}

#[test]
fn catastrophic_backtracking_ends() {
    for source in [
        r#""a" * 200 | test("(?=b|(a+)+$)(a+)+b")"#,
        r#""a" * 3000 | test("(?:(?=a)a|a)*(?=c)(a*)*b")"#,
        r#""ab" * 2000 | [match("(a|b|ab)*(?=c)"; "g")]"#,
        r#""a" * 500 | test("^(a+)+\\1\\1b$")"#,
    ] {
        match run(source) {
            Ok(_) | Err(EvalError::StepLimit | EvalError::TimeLimit) => {}
            Err(EvalError::Message(message)) => {
                assert!(message.contains("too many steps"), "{source}: {message}")
            }
            Err(error) => panic!("{source}: {error}"),
        }
    }
    // The thread continues.
    assert_eq!(run("1 + 1"), Ok(Some(Data::int(2))));
    let long = run(r#""a" * 40000 | test("a(?=b)")"#).unwrap_err();
    assert!(long.to_string().contains("look-around"), "{long}");
    assert!(run(r#""a" * 1000000 | test("ab")"#).is_ok());
}

#[test]
fn backtracking_is_bounded_in_all_languages() {
    let input = Data::parse(br#"{"a": [{"n": "ab"}, {"n": "ac"}], "n": "foobar"}"#).unwrap();
    let jsonpath = Program::jsonpath("$.a[?(@.n =~ /a(?!b)./)].n", &[]).unwrap();
    let found = jsonpath.one(&input, &[], &Env::default()).unwrap().unwrap();
    assert_eq!(found.to_string(), r#"["ac"]"#);
    for program in [
        Program::spel("n matches '(?=foo).*(?<=bar)'", &[]),
        Program::jexl("n =~ '(?=foo).*'", &[]),
        Program::cel("n.matches('o(?=b)')", &[]),
    ] {
        let found = program.unwrap().one(&input, &[], &Env::default());
        assert_eq!(found, Ok(Some(Data::bool(true))));
    }
}

/// Each call of a group is compiled as a copy: these few bytes would fill the memory.
#[test]
fn calls_of_groups_are_refused() {
    for pattern in [
        r"a\\g<0>?b|\\g<0>?c",
        r"(?<a>x\\g0|\\g0)?",
        r"(?<a>x(?P>a)?(?P>a)?)",
        r"(?=x)(?<a>y)\\g<a>",
    ] {
        let failed = run(&format!(r#""a" | test("{pattern}")"#)).unwrap_err();
        assert!(
            failed.to_string().contains("subroutine"),
            "{pattern}: {failed}"
        );
    }
    // An escaped backslash before a letter is none.
    let escaped = run(r#""\\g" | test("(?=.)\\\\g")"#);
    assert_eq!(escaped, Ok(Some(Data::bool(true))));
}

#[test]
fn nested_repetitions_are_bounded() {
    for pattern in [
        "((((a(?=b)){900}){900}){900}){900}",
        "((((a(?=b))?){900}){900}){900}",
    ] {
        let begun = std::time::Instant::now();
        let _ = run(&format!(r#""ab" | test("{pattern}")"#));
        assert!(begun.elapsed().as_secs() < 20, "{pattern}");
    }
}
