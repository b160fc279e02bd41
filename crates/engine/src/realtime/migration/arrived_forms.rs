//! Frames for many clients that arrive with each of them: equal ones are shared again. Otherwise a worker would need the memory
//! of a shared backlog once for each client.

use crate::pubsub::WireForm;
use crate::sync::Mutex;
use std::collections::hash_map::{DefaultHasher, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

/// Entries of dropped frames are removed when there are twice as many as after the last time, and at least this many.
const LEAST: usize = 1024;

/// See the head of this file.
#[derive(Default)]
pub(in crate::realtime) struct ArrivedForms(Mutex<Known>);

#[derive(Default)]
struct Known {
    by_hash: HashMap<u64, Weak<WireForm>>,
    most: usize,
}

impl ArrivedForms {
    /// The frame that an earlier client has brought, if it is equal; otherwise this one.
    pub(super) fn share(&self, form: &Arc<WireForm>) -> Arc<WireForm> {
        let mut hasher = DefaultHasher::new();
        form.bytes().hash(&mut hasher);
        let mut known = self.0.lock();
        let place = known.by_hash.entry(hasher.finish()).or_default();
        if let Some(other) = place.upgrade().filter(|other| other.bytes() == form.bytes()) {
            return other;
        }
        *place = Arc::downgrade(form);
        if known.by_hash.len() > known.most.max(LEAST) {
            known.by_hash.retain(|_, form| form.strong_count() > 0);
            known.most = 2 * known.by_hash.len();
        }
        Arc::clone(form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_frames_are_shared_and_leave_nothing_behind() {
        let forms = ArrivedForms::default();
        let form = |number: usize| Arc::new(WireForm::new(number.to_le_bytes()));
        let first = forms.share(&form(1));
        assert!(Arc::ptr_eq(&first, &forms.share(&form(1))));
        assert!(!Arc::ptr_eq(&first, &forms.share(&form(2))));
        (0..10 * LEAST).for_each(|number| drop(forms.share(&form(number))));
        assert!(forms.0.lock().by_hash.len() <= LEAST + 1);
        assert!(Arc::ptr_eq(&first, &forms.share(&form(1))));
    }
}
