//! The allocator, and the reminder that it needs.
//!
//! The system's own allocator keeps what many threads have freed; mimalloc returns it. But
//! it does so only when a thread frees a page, which does not happen in an idle server:
//! what the last burst has freed would stay until the next one. So a page is freed
//! periodically. Measured in docs/design/memory.md.

use std::hint::black_box;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often a page is freed: mimalloc returns what has been free for a second.
pub(super) const PERIOD: Duration = Duration::from_secs(4);

/// More than any page of small blocks has: it gets a page of its own, which is freed with
/// it. Nothing is written to it, so it takes no memory.
const BLOCK_BYTES: usize = 4 << 20;

pub(super) fn free_page() {
    drop(black_box(Vec::<u8>::with_capacity(BLOCK_BYTES)));
}
