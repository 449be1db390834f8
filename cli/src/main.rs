//! The `swirl` command. All of its code is in the library.

use mimalloc::MiMalloc;
use swirl_expr::CountingAllocator;

/// Counts the memory that each thread allocates, so that an expression's memory can be limited. A worker takes a fifth
/// less processor time with this allocator than with glibc's (docs/dev/benchmarks.md).
#[global_allocator]
static ALLOCATOR: CountingAllocator<MiMalloc> = CountingAllocator::of(MiMalloc);

fn main() -> std::process::ExitCode {
    swirl_cli::main()
}
