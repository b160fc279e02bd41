//! Shapes: requests with the same method, version and field names get copies of one Hash that has all their keys. No
//! key is hashed again: only the values are replaced.
//!
//! ```text
//!   the Hash of a shape:  PATH_INFO, …, HTTP_ACCEPT, …  │  REQUEST_METHOD, rack.errors, …
//!                         slots: nil, replaced in a copy   what all requests of the shape share
//! ```
//!
//! A shape is made when its kind comes again soon after the first time. A thread keeps a few. A request that may keep
//! its env for long (it offers an upgrade) has no shape: a Hash with entries replaced this way costs the collector more
//! work ([`rb_sys::rb_hash_tbl`] marks it as without write barriers).

use crate::objects::{self, set};
use crate::strings::strings;
use fairlead_engine::{Exchange, Request, StartTime, Version};
use magnus::Ruby;
use rb_sys::{
    rb_hash_foreach, rb_hash_tbl, rb_obj_frozen_p, rb_st_foreach_with_replace, rb_str_hash_cmp, st_data_t, st_retval,
    Qfalse, Qnil, VALUE,
};
use std::cell::{Cell, RefCell};
use std::ffi::c_int;

/// Most slots of a shape.
const SLOTS: usize = 56;

/// Most fields of a request that has a shape.
const FIELDS: usize = 48;

/// Most bytes of the names of its fields.
const NAME_BYTES: usize = 1024;

/// Shapes of a thread.
const SHAPES: usize = 8;

/// The keys of the slots, or their values, in the order of the slots. On the stack, where the collector sees them.
pub(super) struct Slots {
    length: usize,
    values: [VALUE; SLOTS],
}

impl Slots {
    pub(super) fn new() -> Slots {
        Slots {
            length: 0,
            values: [Qnil as VALUE; SLOTS],
        }
    }

    /// Ignored if there are too many, see [`Slots::is_full`].
    #[inline]
    pub(super) fn push(&mut self, value: VALUE) {
        if let Some(place) = self.values.get_mut(self.length) {
            *place = value;
            self.length += 1;
        }
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Removes the last slots.
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub(super) fn is_full(&self) -> bool {
        self.length == SLOTS
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = VALUE> + '_ {
        self.values.iter().take(self.length).copied()
    }
}

/// Identifies the shape of a request, together with the names of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// A hash of all names; equal names have equal hashes.
    names: u64,
    /// True if the server's part has an `HTTP_HOST`.
    has_host: bool,
    pub(super) is_secure: bool,
    /// The server's part has an `HTTP_X_REQUEST_START` if the server is its source.
    pub(super) start_time: StartTime,
    /// Number of values of the TLS session; 0 without TLS.
    of_session: u8,
    pub(super) version: Version,
}

impl Kind {
    pub(super) fn of(exchange: &Exchange<'_>, has_host: bool, start_time: StartTime, of_session: u8) -> Kind {
        let request = exchange.request();
        let mix = |hash: u64, name: &[u8]| {
            let ends = [name.first(), name.get(name.len() / 2), name.last()];
            let ends = ends.map(|byte| u64::from(byte.copied().unwrap_or_default()));
            let word = name.len() as u64 | ends[0] << 32 | ends[1] << 40 | ends[2] << 48;
            (hash.rotate_left(7) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let names = request
            .fields()
            .fold(mix(0, request.method()), |hash, (name, _)| mix(hash, name));
        Kind {
            names,
            has_host,
            is_secure: exchange.is_secure(),
            start_time,
            of_session,
            version: request.version(),
        }
    }
}

/// One shape; there is none if its Hash is nil.
struct Shape {
    hash: Cell<VALUE>,
    kind: Cell<Option<Kind>>,
    /// The method and the names, each after its length.
    names: RefCell<Vec<u8>>,
    /// A bit for each field that the env does not have.
    withheld: Cell<u64>,
    /// Number of slots at the start of the Hash.
    slots: Cell<usize>,
    /// True if the shape was used since another shape last needed room.
    is_in_use: Cell<bool>,
}

/// The shapes of one thread. On its stack, where the collector sees the Hashes.
pub(super) struct Shapes {
    shapes: [Shape; SHAPES],
    /// Kinds that have come once.
    candidates: [Cell<Option<Kind>>; SHAPES],
    next: Cell<usize>,
}

/// A shape that fits a request.
pub(super) struct Fitting {
    hash: VALUE,
    withheld: u64,
    slots: usize,
}

impl Shapes {
    pub(super) fn new() -> Shapes {
        Shapes {
            shapes: std::array::from_fn(|_| Shape {
                hash: Cell::new(Qnil as VALUE),
                kind: Cell::new(None),
                names: RefCell::default(),
                withheld: Cell::new(0),
                slots: Cell::new(0),
                is_in_use: Cell::new(false),
            }),
            candidates: std::array::from_fn(|_| Cell::new(None)),
            next: Cell::new(0),
        }
    }

    /// The shape of a request, if there is one.
    #[inline]
    pub(super) fn find(&self, kind: Kind, request: &Request) -> Option<Fitting> {
        let is_fitting = |shape: &&Shape| shape.kind.get() == Some(kind) && has_names(&shape.names.borrow(), request);
        let shape = self.shapes.iter().find(is_fitting)?;
        shape.is_in_use.set(true);
        Some(Fitting {
            hash: shape.hash.get(),
            withheld: shape.withheld.get(),
            slots: shape.slots.get(),
        })
    }

    /// Makes a shape for a request that has none, if its kind has come before. `env` is complete except for the body,
    /// `keys` are the keys of its slots. Inside `protect`.
    pub(super) fn learn(&self, ruby: &Ruby, kind: Kind, request: &Request, env: VALUE, keys: &Slots, withheld: u64) {
        let next = self.next.get();
        self.next.set((next + 1) % SHAPES);
        if !self.candidates.iter().any(|candidate| candidate.get() == Some(kind)) {
            self.candidates[next].set(Some(kind));
            return;
        }
        if keys.is_full() || !is_modest(request) {
            return;
        }
        let places = || self.shapes.iter().cycle().skip(next).take(SHAPES);
        let Some(shape) = places()
            .find(|shape| !shape.is_in_use.replace(false))
            .or(places().next())
        else {
            return;
        };
        shape.kind.set(None);
        let Some(hash) = hash(ruby, env, keys) else { return };
        shape.hash.set(hash);
        shape.slots.set(keys.length());
        write_names(&mut shape.names.borrow_mut(), request);
        shape.withheld.set(withheld);
        shape.kind.set(Some(kind));
    }
}

/// The Hash of a shape: a copy of an env without the values of the request. Its first entries are the slots. `None` if
/// they are not exactly the slots, or if an application could change another entry: values of one request would then
/// reach other requests.
fn hash(ruby: &Ruby, env: VALUE, keys: &Slots) -> Option<VALUE> {
    let hash = objects::copy(ruby, env);
    keys.iter().for_each(|key| set(ruby, hash, key, Qnil as VALUE));
    let mut check = Check {
        keys,
        seen: 0,
        fits: objects::size(ruby, env) == objects::size(ruby, hash),
    };
    // SAFETY: the GVL is held; a live Hash. The function changes nothing and raises nothing.
    unsafe { rb_hash_foreach(hash, Some(check_entry), std::ptr::from_mut(&mut check) as VALUE) };
    let fits = check.fits && check.seen >= keys.length();
    debug_assert!(
        fits,
        "the Hash of a shape must begin with its slots and share frozen values only"
    );
    fits.then_some(hash)
}

/// The progress of a check of a shape's entries.
struct Check<'a> {
    keys: &'a Slots,
    seen: usize,
    fits: bool,
}

unsafe extern "C" fn check_entry(key: VALUE, value: VALUE, check: VALUE) -> c_int {
    // SAFETY: the address that `hash` gave, with no other user meanwhile.
    let check = unsafe { &mut *(check as *mut Check<'_>) };
    let expected = check.keys.iter().nth(check.seen);
    // SAFETY: the GVL is held; live objects, and the keys are Strings.
    check.fits &= unsafe {
        match expected {
            Some(expected) => value == Qnil as VALUE && rb_str_hash_cmp(key, expected) == 0,
            None => key == strings().rack_errors || rb_obj_frozen_p(value) != Qfalse as VALUE,
        }
    };
    check.seen += 1;
    st_retval::ST_CONTINUE as c_int
}

impl Fitting {
    /// Returns true if the env has the field with this number.
    #[inline]
    pub(super) fn has(&self, field: usize) -> bool {
        self.withheld >> field & 1 == 0
    }

    /// An env with these values in its slots; `None` if the number of values differs. Inside `protect`.
    #[inline]
    pub(super) fn env(&self, ruby: &Ruby, values: &Slots) -> Option<VALUE> {
        if values.length() != self.slots {
            return None;
        }
        let env = objects::copy(ruby, self.hash);
        let mut rest = values.values[..values.length].iter();
        // SAFETY: the GVL is held; a live Hash with more entries than a small table has. The functions raise nothing and
        // change no key. The Hash is without write barriers from here on, so the values need none.
        unsafe {
            let table = rb_hash_tbl(env, c"shape.rs".as_ptr(), 0);
            let address = std::ptr::from_mut(&mut rest) as st_data_t;
            rb_st_foreach_with_replace(table, Some(look), Some(replace), address);
        }
        rest.as_slice().is_empty().then_some(env)
    }
}

/// The remaining values.
type Rest<'a> = std::slice::Iter<'a, VALUE>;

/// Called for each entry: the first ones are slots. Ends after the last slot.
unsafe extern "C" fn look(_: st_data_t, value: st_data_t, rest: st_data_t, _: c_int) -> c_int {
    // SAFETY: the address that `Fitting::env` gave, with no other user meanwhile.
    let is_over = unsafe { &*(rest as *const Rest<'_>) }.as_slice().is_empty();
    // A slot is nil; nothing else is ever replaced.
    let next = if is_over || value != Qnil as st_data_t {
        st_retval::ST_STOP
    } else {
        st_retval::ST_REPLACE
    };
    next as c_int
}

unsafe extern "C" fn replace(_: *mut st_data_t, value: *mut st_data_t, rest: st_data_t, _: c_int) -> c_int {
    // SAFETY: as above; `value` is where the table wants the new value.
    unsafe {
        if let Some(new) = (*(rest as *mut Rest<'_>)).next() {
            *value = *new as st_data_t;
        }
    }
    st_retval::ST_CONTINUE as c_int
}

fn names(request: &Request) -> impl Iterator<Item = &[u8]> {
    std::iter::once(request.method()).chain(request.fields().map(|(name, _)| name))
}

fn is_modest(request: &Request) -> bool {
    let (count, bytes) = names(request).fold((0, 0), |(count, bytes), name| (count + 1, bytes + name.len()));
    count <= FIELDS && bytes <= NAME_BYTES
}

fn write_names(written: &mut Vec<u8>, request: &Request) {
    written.clear();
    for name in names(request) {
        // `is_modest` limits the names: two bytes are enough.
        written.extend_from_slice(&(name.len() as u16).to_le_bytes());
        written.extend_from_slice(name);
    }
}

fn has_names(mut written: &[u8], request: &Request) -> bool {
    for name in names(request) {
        let Some((length, rest)) = written.split_first_chunk() else {
            return false;
        };
        match rest.split_at_checked(usize::from(u16::from_le_bytes(*length))) {
            Some((same, rest)) if same == name => written = rest,
            _ => return false,
        }
    }
    written.is_empty()
}
