//! The identifiers of subscriptions. Clients with the same identifier share it, so that they can share frames.

use crate::sync::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Identifiers that the table has at least before it is searched for unused ones.
const FEW: usize = 1024;

/// The identifier of a subscription: the text by which a client names it.
#[derive(Debug)]
pub(in crate::realtime) struct Identifier {
    /// The text as a JSON string, with quotes.
    pub(super) json: Box<str>,
    text: Box<str>,
}

/// All identifiers that are in use.
#[derive(Default)]
pub(in crate::realtime) struct Identifiers {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_text: HashMap<Box<str>, Weak<Identifier>>,
    /// The size of the table at which unused identifiers are removed.
    limit: usize,
}

impl Identifiers {
    /// The identifier with this text.
    pub(super) fn get(&self, text: &str) -> Arc<Identifier> {
        let mut known = self.known.lock();
        if let Some(identifier) = known.by_text.get(text).and_then(Weak::upgrade) {
            return identifier;
        }
        if known.by_text.len() >= known.limit.max(FEW) {
            known.by_text.retain(|_, identifier| identifier.strong_count() > 0);
            known.limit = known.by_text.len() * 2;
        }
        let identifier = Arc::new(Identifier {
            json: serde_json::Value::from(text).to_string().into(),
            text: text.into(),
        });
        known.by_text.insert(text.into(), Arc::downgrade(&identifier));
        identifier
    }
}

impl Identifier {
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_identifiers_are_shared_and_unused_ones_removed() {
        let identifiers = Identifiers::default();
        let first = identifiers.get(r#"{"channel":"Rööm"}"#);
        assert_eq!(&*first.json, r#""{\"channel\":\"Rööm\"}""#);
        assert!(Arc::ptr_eq(&first, &identifiers.get(first.text())));
        (0..10 * FEW).for_each(|number| drop(identifiers.get(&number.to_string())));
        assert!(identifiers.known.lock().by_text.len() <= 2 * FEW);
        assert!(Arc::ptr_eq(&first, &identifiers.get(first.text())));
    }
}
