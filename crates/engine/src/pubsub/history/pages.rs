//! The pages of stock clients, and the offset up to which each of them has received its messages. Such a client sends the
//! position of its page again when it reconnects, perhaps to another worker; it must not get the messages in between twice.

use super::layout::{Layout, PAGE};
use super::seal::PagePosition;
use crate::clock::Millis;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;

/// A page that is younger has not been given up: if it is not known, it has never subscribed.
const YOUNG: Duration = Duration::from_secs(60);

pub(super) struct Pages<'a> {
    layout: &'a Layout,
}

/// The words of one page: its number, the offset, and the time of the last change.
struct Page<'a> {
    number: &'a AtomicU64,
    offset: &'a AtomicU64,
    time: &'a AtomicU64,
}

impl<'a> Pages<'a> {
    pub(super) fn new(layout: &'a Layout) -> Pages<'a> {
        Pages { layout }
    }

    fn bucket(&self, number: u64) -> impl Iterator<Item = Page<'a>> {
        let words: &'a [AtomicU64] = self.layout.page_bucket(number);
        words.chunks_exact(PAGE).map(|words| Page {
            number: &words[0],
            offset: &words[1],
            time: &words[2],
        })
    }

    fn find(&self, number: u64) -> Option<Page<'a>> {
        self.bucket(number).find(|page| page.number.load(Acquire) == number)
    }

    /// The offset up to which a page has received its messages. A new page gets a place; the page of its bucket that was quiet
    /// for longest gives way. `None` for a page that is not known and not young: it may have given way itself.
    pub(super) fn enter(&self, page: PagePosition, now: Millis) -> Option<u64> {
        let made = page.position.offset;
        if let Some(page) = self.find(page.page) {
            page.time.store(now.to_number(), Relaxed);
            return Some(page.offset.load(Relaxed).max(made));
        }
        let oldest = self.bucket(page.page).min_by_key(|page| page.time.load(Relaxed))?;
        oldest.number.store(0, Relaxed);
        oldest.offset.store(made, Relaxed);
        oldest.time.store(now.to_number(), Relaxed);
        oldest.number.store(page.page, Release);
        (now - Millis::from_number(page.made) <= YOUNG).then_some(made)
    }

    /// Notes that a page has received its messages up to an offset.
    pub(super) fn received(&self, number: u64, offset: u64, now: Millis) {
        if let Some(page) = self.find(number) {
            page.offset.fetch_max(offset, Relaxed);
            page.time.store(now.to_number(), Relaxed);
        }
    }
}
