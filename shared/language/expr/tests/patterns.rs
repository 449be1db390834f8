//! The memory of compiled regular expressions.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, Ordering};

use serde_json::json;
use swirl_expr::{CountingAllocator, Env, EvalError, JsonSchema, Limits, Pattern, Program};
use swirl_model::Data;

/// Counts the memory of all threads together.
struct Total;

static HELD: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call is passed to the system's allocator unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Total {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator<Total> = CountingAllocator::of(Total);

/// One test at a time, since they measure the process.
static ALONE: Mutex<()> = Mutex::new(());

fn held() -> isize {
    HELD.load(Ordering::Relaxed)
}

fn run(source: &str, limits: Limits) -> Result<Option<Data>, EvalError> {
    let program = Program::jq(source, &[]).unwrap_or_else(|e| panic!("{source}: {e}"));
    let env = Env {
        limits,
        ..Env::default()
    };
    program.one(&Data::NULL, &[], &env)
}

#[test]
fn patterns_are_cached_up_to_a_number_of_bytes() {
    let _alone = ALONE.lock();
    let before = held();
    for number in 0..14 {
        // About 1.7 MB each.
        let pattern = format!(r"(?=\\w{{15}}a)|(?=\\w{{15}}b)|z{number}");
        let found = run(&format!(r#""a" | test("{pattern}")"#), Limits::default());
        assert_eq!(found, Ok(Some(Data::bool(false))));
    }
    let left = held() - before;
    assert!(left < 10 << 20, "{left} bytes");
}

#[test]
fn an_evaluation_that_is_aborted_leaves_no_patterns() {
    let _alone = ALONE.lock();
    let before = held();
    let limits = Limits {
        memory_bytes: 1 << 20,
        ..Limits::default()
    };
    for number in 0..10 {
        let pattern = format!(r"(?=\\w{{15}}a)|(?=\\w{{15}}b)|y{number}");
        let aborted = run(&format!(r#""a" | test("{pattern}")"#), limits);
        assert_eq!(aborted, Err(EvalError::MemoryLimit));
    }
    let left = held() - before;
    assert!(left < 1 << 20, "{left} bytes");
}

#[test]
fn many_parts_with_look_around_are_refused() {
    let _alone = ALONE.lock();
    let before = held();
    let parts = r"(?=\\w{15}a)|".repeat(300);
    let refused = run(&format!(r#""a" | test("{parts}z")"#), Limits::default());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("too big"), "{refused}");
    assert!(held() - before < 1 << 20);
}

#[test]
fn weights_are_near_what_the_engines_hold() {
    let _alone = ALONE.lock();
    for source in [
        "abc",
        "^[a-z]+$",
        r"\d{4}-\d{2}",
        r"\w{15}a",
        r"(?i)\w{8}",
        r"\p{L}{20}",
        "[a-z]{900}",
        ".{200}",
        "(a|b|c){300}",
        r"\S{30}",
    ] {
        let before = held();
        let pattern = Pattern::compile(source).unwrap();
        let held = usize::try_from(held() - before).unwrap();
        let weight = pattern.weight();
        let is_near = held < 2 * weight + 4_096 && weight < 8 * held + 4_096;
        assert!(is_near, "{source}: {held} bytes, estimated {weight}");
    }
}

#[test]
fn patterns_of_a_schema_are_bounded() {
    let _alone = ALONE.lock();
    let with = |patterns: usize, repeated: usize| {
        let members = (0..patterns).map(|number| {
            let pattern = format!(r"(?=x)\w{{{repeated}}}{number}");
            (format!("p{number}"), json!({ "pattern": pattern }))
        });
        let members: serde_json::Map<_, _> = members.collect();
        json!({ "properties": members })
    };
    let before = held();
    let refused = JsonSchema::compile(&with(1, 150)).unwrap_err();
    assert!(refused.contains("bytes of memory"), "{refused}");
    let refused = JsonSchema::compile(&with(100, 30)).unwrap_err();
    assert!(refused.contains("its patterns take more"), "{refused}");
    assert!(held() - before < 1 << 20);
    let small = JsonSchema::compile(&with(2, 3)).unwrap();
    assert!(small.weight() > 100_000, "{}", small.weight());
    // They are ASCII without look-around, and each counts once.
    let cheap = json!({ "patternProperties": {r"^\w{150}0": { "pattern": r"^\w{150}0" }} });
    assert!(JsonSchema::compile(&cheap).unwrap().weight() < 50_000);
}
