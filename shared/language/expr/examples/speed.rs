//! Nanoseconds for typical expressions: `cargo run --release -p swirl-expr --example speed`.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use swirl_expr::{Env, Program};
use swirl_model::Data;

#[global_allocator]
static ALLOCATOR: swirl_expr::CountingAllocator = swirl_expr::CountingAllocator::system();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const TIMES: u32 = 200_000;
    let input = Data::parse(
        br#"{"a":{"b":5},"order":{"id":"7","items":[{"price":2,"n":3},{"price":5,"n":1}]}}"#,
    )?;
    let vars = [input.clone(), Data::string("secret"), Data::int(3)];
    for source in [
        ".a.b",
        ".a.b > 3",
        ".a.b > $item",
        "{id: .order.id, total: ([.order.items[] | .price * .n] | add)}",
        ".order.items | map(select(.price > 2)) | length",
        "\"order \\(.order.id)\" | ascii_upcase",
    ] {
        let started = Instant::now();
        let program = Program::jq(source, &["CONST", "SECRETS", "item"])?;
        let compiled = started.elapsed();
        let started = Instant::now();
        for _ in 0..TIMES {
            std::hint::black_box(program.one(&input, &vars, &Env::default())?);
        }
        println!(
            "{:>6} ns ({compiled:?} to compile)  {source}",
            (started.elapsed() / TIMES).as_nanos()
        );
    }
    Ok(())
}
