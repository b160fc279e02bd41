//! Counts that outlive workers: the times of responses, and the refusals by their reason. Several workers may share
//! one, and nothing is ever cleared, so no sum over all of them falls when a worker is replaced.

use super::responses::Responses;
use crate::http::refusal::Refusal;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the head of this file.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Lasting {
    pub(crate) responses: Responses,
    pub(crate) refusals: Refusals,
}

/// Number of refusals, in the order of [`Refusal::LABELS`].
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Refusals([AtomicU64; Refusal::LABELS.len()]);

impl Lasting {
    /// Counts of zero. Constant, so that this large value is not made on a stack.
    pub(crate) const fn new() -> Lasting {
        Lasting {
            responses: Responses::new(),
            refusals: Refusals([const { AtomicU64::new(0) }; Refusal::LABELS.len()]),
        }
    }
}

impl Refusals {
    pub(crate) fn count(&self, refusal: Refusal) {
        let place = Refusal::LABELS.iter().position(|label| *label == refusal.label());
        if let Some(count) = place.and_then(|place| self.0.get(place)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Each reason with its number.
    pub(crate) fn load(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.0.iter().map(|count| count.load(Relaxed));
        Refusal::LABELS.iter().copied().zip(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::refusal::StoreFault;
    use fairlead_wire::Error;
    use std::collections::BTreeSet;

    #[test]
    fn refusals_count_by_reason() {
        let refusals = Lasting::new().refusals;
        refusals.count(Refusal::Malformed(Error::InvalidFieldName));
        refusals.count(Refusal::BodyNotStored(StoreFault::NoRoom));
        refusals.count(Refusal::BodyNotStored(StoreFault::Other));
        refusals.count(Refusal::NotTaken);
        let found: Vec<_> = refusals.load().filter(|(_, count)| *count > 0).collect();
        assert_eq!(found, [("malformed", 1), ("body_not_stored", 2), ("not_taken", 1)]);
    }

    #[test]
    fn labels_are_unique() {
        let unique: BTreeSet<_> = Refusal::LABELS.iter().collect();
        assert_eq!(unique.len(), Refusal::LABELS.len());
    }
}
