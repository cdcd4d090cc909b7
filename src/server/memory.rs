//! How the kernel backs this process's memory.
//!
//! The allocator asks for huge pages, which come whole however little of them is used: an idle process with both roles held
//! 33 MiB with them and 19 without, one that knows a hundred agents 53 and 22 (measured). What a review touches is small
//! either way, so memory goes first. mimalloc is built to decline them itself (`no_thp`): its first megabytes are there before anything here
//! can be called. This is for builds with another allocator.

use rustix::thread::disable_transparent_huge_pages;

/// Small pages from now on; to be called before there is much memory. A kernel that refuses changes nothing but the size.
pub fn small_pages() {
    if let Err(error) = disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "the kernel keeps using huge pages: the process takes more memory");
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
