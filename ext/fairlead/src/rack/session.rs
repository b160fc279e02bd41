//! Env entries of a TLS session, with the names of Apache, nginx and WEBrick. The header fields of a request cannot set
//! any of them: their keys begin with `HTTP_`.
//!
//! Requests on a connection share the values, which are frozen.

use super::shape::Slots;
use crate::objects;
use crate::strings::{frozen, interned, strings};
use fairlead_engine::{Session, Verification};
use magnus::Ruby;
use rb_sys::{rb_ary_entry, rb_ary_push, rb_obj_freeze, Qnil, VALUE};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The keys of further certificates in the client's chain. More certificates are left out.
const CHAIN: [&[u8]; 6] = [
    b"SSL_CLIENT_CERT_CHAIN_0",
    b"SSL_CLIENT_CERT_CHAIN_1",
    b"SSL_CLIENT_CERT_CHAIN_2",
    b"SSL_CLIENT_CERT_CHAIN_3",
    b"SSL_CLIENT_CERT_CHAIN_4",
    b"SSL_CLIENT_CERT_CHAIN_5",
];

/// Number of values in every session, and of additional values in a session with a client certificate.
const ALWAYS: u8 = 6;
const IDENTITY: u8 = 3;

/// Bit in a number of values: the value after the common ones is the client's name, as a proxy reports it.
const NAMED: u8 = 0x80;

/// Bit in a number of values: there is one more value, which describes a trusted proxy's own TLS session with the
/// client.
const CLAIMED: u8 = 0x40;

/// The key of that value: a Hash with the same keys as a session of this server.
const CLAIM: &[u8] = b"fairlead.proxy_tls";

/// The values of the session that a thread has last served. On its stack, where the collector sees them.
pub(super) struct LastSession {
    session: RefCell<Option<Arc<Session>>>,
    /// An Array of the values; nil at first.
    values: Cell<VALUE>,
}

impl LastSession {
    pub(super) fn new() -> LastSession {
        LastSession {
            session: RefCell::new(None),
            values: Cell::new(Qnil as VALUE),
        }
    }

    /// Adds the values of [`push_keys`]. Returns their number. Inside `protect`.
    pub(super) fn push(
        &self,
        ruby: &Ruby,
        session: &Arc<Session>,
        claim: Option<&Arc<Session>>,
        slots: &mut Slots,
    ) -> u8 {
        let count = count(session);
        let is_last = matches!(&*self.session.borrow(), Some(last) if Arc::ptr_eq(last, session));
        if !is_last {
            // The session is kept with its values, so that no other session can have its address.
            self.values.set(values(ruby, session));
            *self.session.borrow_mut() = Some(Arc::clone(session));
        }
        for index in 0..(count & !NAMED) {
            // SAFETY: the GVL is held; a live Array.
            slots.push(unsafe { rb_ary_entry(self.values.get(), index.into()) });
        }
        let Some(claim) = claim else { return count };
        slots.push(told(ruby, claim));
        count | CLAIMED
    }
}

/// The session that a proxy reports, as a Hash. Inside `protect`.
fn told(ruby: &Ruby, session: &Session) -> VALUE {
    let (hash, values, mut keys) = (objects::new_hash(ruby), values(ruby, session), Slots::new());
    push_keys(ruby, count(session), &mut keys);
    for (index, key) in keys.iter().enumerate() {
        // SAFETY: the GVL is held; a live Array, and as many values as keys.
        let value = unsafe { rb_ary_entry(values, index as _) };
        objects::set(ruby, hash, key, value);
    }
    // SAFETY: the GVL is held; a live Hash.
    unsafe { rb_obj_freeze(hash) }
}

/// The number of values in a session, which also identifies them.
fn count(session: &Session) -> u8 {
    let Some(identity) = &session.details().identity else {
        return match session.common_name {
            Some(_) => NAMED | (ALWAYS + 1),
            None => ALWAYS,
        };
    };
    ALWAYS + IDENTITY + identity.chain.len().min(CHAIN.len()) as u8
}

/// Adds the keys of a session with this number of values. Inside `protect`.
pub(super) fn push_keys(ruby: &Ruby, count: u8, slots: &mut Slots) {
    let keys = strings();
    let all = [
        keys.https_key,
        keys.ssl_protocol,
        keys.ssl_cipher,
        keys.ssl_tls_sni,
        keys.ssl_client_verify,
        keys.ssl_client_cert,
        keys.ssl_client_s_dn,
        keys.ssl_client_i_dn,
        keys.ssl_client_serial,
    ];
    let number = usize::from(count & !(NAMED | CLAIMED));
    if count & NAMED != 0 {
        all.iter().take(ALWAYS.into()).for_each(|key| slots.push(*key));
        slots.push(interned(ruby, b"SSL_CLIENT_S_DN_CN"));
    } else {
        all.iter().take(number).for_each(|key| slots.push(*key));
        for name in CHAIN.iter().take(number.saturating_sub(all.len())) {
            slots.push(interned(ruby, name));
        }
    }
    if count & CLAIMED != 0 {
        slots.push(interned(ruby, CLAIM));
    }
}

/// Inside `protect`: nothing here has a destructor; the texts belong to the session.
fn values(ruby: &Ruby, session: &Session) -> VALUE {
    let details = session.details();
    let text = |text: &str| frozen(ruby, text.as_bytes());
    let array = objects::new_array(ruby);
    // SAFETY: the GVL is held; an Array of ours, and live objects.
    let push = |value: VALUE| unsafe { rb_ary_push(array, value) };
    push(strings().on);
    push(text(&session.version));
    push(text(&details.cipher));
    push(text(session.server_name.as_deref().unwrap_or_default()));
    push(text(match session.verification {
        Verification::None => "NONE",
        Verification::Success => "SUCCESS",
        Verification::Failed => "FAILED:the certificate is not valid",
    }));
    let Some(identity) = &details.identity else {
        push(strings().empty);
        if let Some(name) = &session.common_name {
            push(text(name));
        }
        return array;
    };
    for part in [&identity.pem, &identity.subject, &identity.issuer, &identity.serial] {
        push(text(part));
    }
    for certificate in identity.chain.iter().take(CHAIN.len()) {
        push(text(certificate));
    }
    array
}
