//! The swirl command. All of it is in the library.

/// Counts what a thread allocates, so that an expression's memory can be bounded.
#[global_allocator]
static ALLOCATOR: swirl_expr::CountingAllocator = swirl_expr::CountingAllocator;

fn main() -> std::process::ExitCode {
    swirl_cli::main()
}
