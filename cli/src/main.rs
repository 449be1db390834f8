//! The `swirl` command. All of its code is in the library.

use std::alloc::System;

use swirl_expr::CountingAllocator;

/// Counts the memory that each thread allocates, so that an expression's memory can be limited.
#[global_allocator]
static ALLOCATOR: CountingAllocator<System> = CountingAllocator::of(System);

fn main() -> std::process::ExitCode {
    swirl_cli::main()
}
