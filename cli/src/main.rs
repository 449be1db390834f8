//! The swirl command. All of it is in the library.

use std::alloc::System;

use swirl_expr::CountingAllocator;

/// Counts what a thread allocates, so that an expression's memory can be bounded.
#[global_allocator]
static ALLOCATOR: CountingAllocator<System> = CountingAllocator::of(System);

fn main() -> std::process::ExitCode {
    swirl_cli::main()
}
