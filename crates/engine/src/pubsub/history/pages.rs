//! The pages of stock clients, and the offset up to which each of them has received its messages. Such a client sends the
//! position of its page again when it reconnects, perhaps to another worker; it must not get the messages in between twice.

use super::layout::{Header, Layout, PAGE};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

pub(super) struct Pages<'a> {
    layout: &'a Layout,
    header: Header<'a>,
}

/// The words of one page: its number, and the offset.
struct Page<'a> {
    number: &'a AtomicU64,
    offset: &'a AtomicU64,
}

impl<'a> Pages<'a> {
    pub(super) fn new(layout: &'a Layout) -> Pages<'a> {
        Pages {
            layout,
            header: layout.header(),
        }
    }

    fn bucket(&self, number: u64) -> impl Iterator<Item = Page<'a>> {
        let words: &'a [AtomicU64] = self.layout.page_bucket(number);
        words.chunks_exact(PAGE).map(|words| Page {
            number: &words[0],
            offset: &words[1],
        })
    }

    fn find(&self, number: u64) -> Option<Page<'a>> {
        self.bucket(number).find(|page| page.number.load(Acquire) == number)
    }

    /// The offset up to which the page that was made at `made` has received its messages. A new page gets a place; the page
    /// of its bucket that has received nothing for longest gives way. `None` if this page may have given way itself.
    pub(super) fn enter(&self, number: u64, made: u64) -> Option<u64> {
        if let Some(page) = self.find(number) {
            return Some(page.offset.load(Relaxed).max(made));
        }
        if made < self.header.forgotten_pages.load(Acquire) {
            return None;
        }
        let oldest = self.bucket(number).min_by_key(|page| page.offset.load(Relaxed))?;
        let former = oldest.number.load(Relaxed);
        if former != 0 {
            let now = self.header.offset.load(Relaxed);
            self.header.forgotten_pages.fetch_max(now, Release);
        }
        // If another process takes the place first, this page counts as forgotten the next time.
        if oldest.number.compare_exchange(former, number, Release, Relaxed).is_ok() {
            oldest.offset.store(made, Relaxed);
        }
        Some(made)
    }

    /// Notes that a page has received its messages up to an offset.
    pub(super) fn received(&self, number: u64, offset: u64) {
        if let Some(page) = self.find(number) {
            page.offset.fetch_max(offset, Relaxed);
        }
    }
}
