//! How the kernel backs this process's memory.
//!
//! The allocator asks for huge pages, and then a process that uses 7 MB holds 17 (measured: nearly all of it in pages of
//! 2 MB). What a review touches fits into the caches either way, so memory goes first.

use rustix::thread::disable_transparent_huge_pages;

/// Small pages from now on; to be called before there is much memory. A kernel that refuses changes nothing but the size.
pub fn small_pages() {
    if let Err(error) = disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "the kernel goes on using huge pages");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_is_told() {
        super::small_pages();
        assert_eq!(rustix::thread::transparent_huge_pages_are_disabled(), Ok(true));
    }
}
