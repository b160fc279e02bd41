//! The identifiers of subscriptions. Clients with the same identifier share it, so that they can share frames.

use crate::sync::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// The identifier of a subscription: the text by which a client names it.
#[derive(Debug)]
pub(in crate::realtime) struct Identifier {
    /// The text as a JSON string, with quotes.
    pub(super) json: Box<str>,
    text: Box<str>,
    known: Weak<Known>,
}

/// All identifiers that are in use.
#[derive(Default)]
pub(in crate::realtime) struct Identifiers(Arc<Known>);

type Known = Mutex<HashMap<Box<str>, Weak<Identifier>>>;

impl Identifiers {
    /// The identifier with this text.
    pub(super) fn get(&self, text: &str) -> Arc<Identifier> {
        let mut known = self.0.lock();
        if let Some(identifier) = known.get(text).and_then(Weak::upgrade) {
            return identifier;
        }
        let identifier = Arc::new(Identifier {
            json: serde_json::Value::from(text).to_string().into(),
            text: text.into(),
            known: Arc::downgrade(&self.0),
        });
        known.insert(text.into(), Arc::downgrade(&identifier));
        identifier
    }
}

impl Identifier {
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl Drop for Identifier {
    fn drop(&mut self) {
        let Some(known) = self.known.upgrade() else {
            return;
        };
        let mut known = known.lock();
        // Another thread may have made the same one again.
        if known
            .get(self.text())
            .is_some_and(|identifier| identifier.strong_count() == 0)
        {
            known.remove(self.text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_identifiers_are_shared_and_leave_nothing_behind() {
        let identifiers = Identifiers::default();
        let first = identifiers.get(r#"{"channel":"Rööm"}"#);
        assert_eq!(&*first.json, r#""{\"channel\":\"Rööm\"}""#);
        assert!(Arc::ptr_eq(&first, &identifiers.get(first.text())));
        (0..1_000).for_each(|number| drop(identifiers.get(&number.to_string())));
        assert_eq!(identifiers.0.lock().len(), 1);
        drop(first);
        assert!(identifiers.0.lock().is_empty());
    }
}
