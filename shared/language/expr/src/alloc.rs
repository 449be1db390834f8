//! Counts the memory that each thread has allocated, so that an evaluation can be stopped before it exhausts the
//! machine's memory.
//!
//! A program that evaluates expressions installs it once:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: swirl_expr::CountingAllocator = swirl_expr::CountingAllocator::system();
//! ```
//!
//! Without it the memory limit relies on estimates (see [`crate::Limits::memory_bytes`]).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::OnceLock;

/// An allocator that counts the bytes that each thread holds.
#[derive(Debug, Default, Clone, Copy)]
pub struct CountingAllocator<A = System>(A);

impl CountingAllocator {
    pub const fn system() -> CountingAllocator {
        CountingAllocator(System)
    }
}

impl<A> CountingAllocator<A> {
    pub const fn of(allocator: A) -> CountingAllocator<A> {
        CountingAllocator(allocator)
    }
}

thread_local! {
    /// Bytes allocated minus bytes freed by this thread. May be negative, because a thread may free memory that another
    /// one allocated. Its initialiser is constant and it has no destructor, so that reading it allocates nothing.
    static NET: Cell<isize> = const { Cell::new(0) };
}

fn add(bytes: isize) {
    // Fails only while the thread is being destroyed, when the count no longer matters.
    let _ = NET.try_with(|net| net.set(net.get().wrapping_add(bytes)));
}

// SAFETY: every call is passed to the allocator unchanged; counting neither allocates
// nor panics.
#[allow(unsafe_code)]
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.0.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        add(new_size as isize - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { self.0.realloc(ptr, layout, new_size) }
    }
}

/// The bytes that this thread holds. Counted only if the allocator is installed.
pub(crate) fn held() -> isize {
    NET.try_with(Cell::get).unwrap_or(0)
}

/// Whether [`CountingAllocator`] is the global allocator of this process.
pub(crate) fn installed() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        let before = held();
        let probe = std::hint::black_box(Box::new([0u8; 64]));
        let counted = held() != before;
        drop(probe);
        counted
    })
}
