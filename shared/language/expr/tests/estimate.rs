//! Without the counting allocator, the memory limit is enforced by estimates.

use swirl_expr::{Env, EvalError, Program};
use swirl_model::Data;

fn run(source: &str) -> Result<Option<Data>, EvalError> {
    Program::jq(source, &[])
        .unwrap()
        .one(&Data::NULL, &[], &Env::default())
}

#[test]
fn growing_values_end_the_evaluation() {
    for source in [
        "\"x\" * 1e12",
        "def f: . + .; reduce range(1000) as $i (\"x\"; f)",
        "reduce range(1000) as $i ([1]; . + .)",
        "null | .[1e9] = 1",
        "[range(1000) | \"x\" * 1000000]",
    ] {
        assert_eq!(run(source), Err(EvalError::MemoryLimit), "{source}");
        assert_eq!(run("1 + 1"), Ok(Some(Data::int(2))));
    }
    // Small pieces end at the limit that a slow machine reaches first.
    for source in [
        "[range(1e12)]",
        "[repeat({a: 1})]",
        "reduce range(1e12) as $i ({}; .[\"k\\($i)\"] = $i)",
    ] {
        let result = run(source);
        assert!(
            matches!(
                result,
                Err(EvalError::MemoryLimit | EvalError::StepLimit | EvalError::TimeLimit)
            ),
            "{source}: {result:?}"
        );
    }
}

#[test]
fn freed_values_are_allowed_to_a_degree() {
    let source = "reduce range(20000) as $i ([]; . + [$i]) | length";
    assert_eq!(run(source), Ok(Some(Data::int(20000))));
}
