//! The env of one request: a copy of the template, completed by the request line, the fields and the body.
//!
//! Values of the request are new, unfrozen binary Strings, because applications change them in place. Fields with an
//! underscore in their name are left out: `X-Forwarded_For` must not be mistaken for `X-Forwarded-For`.

use super::input;
use super::session;
use super::shape::{Kind, Slots};
use super::template::{text, ThreadTemplate};
use crate::objects::{float, get, new_array, new_hash, set};
use crate::strings::{field_keys, interned, new, new_text, strings, Strings};
use fairlead_engine::{Body, Exchange, Request, StartTime, TargetForm, Version};
use fairlead_wire::fields;
use magnus::Ruby;
use rb_sys::{rb_ary_push, rb_str_buf_append, rb_str_dup, Qfalse, Qnil, Qtrue, VALUE};
use std::time::Duration;

/// Fields that a client must not set: an application or a middleware reads from them which paths to trust.
const UNTRUSTED: [&[u8]; 2] = [b"x-sendfile-type", b"x-accel-mapping"];

/// An env, and the values in it that are needed after the response. Stays on the stack.
#[derive(Clone, Copy)]
pub(crate) struct Env {
    pub(crate) hash: VALUE,
    /// The lists to which the application adds callables that run after the response.
    pub(crate) after_reply: VALUE,
    pub(crate) response_finished: VALUE,
    /// The input that must be closed, if it is a file; else nil.
    pub(crate) file: VALUE,
}

impl Env {
    /// Placeholder for an env that is not made yet.
    pub(super) const NONE: Env = Env {
        hash: Qnil as VALUE,
        after_reply: Qnil as VALUE,
        response_finished: Qnil as VALUE,
        file: Qnil as VALUE,
    };
}

impl ThreadTemplate<'_> {
    /// Returns the env of one request, with `hijack` as its callable. `may_last`: the application may keep the env for
    /// long. Inside `protect`; takes the body out of the exchange once Ruby has it.
    pub(crate) fn fill(&self, ruby: &Ruby, exchange: &mut Exchange<'_>, hijack: VALUE, may_last: bool) -> Env {
        let lists = [new_list(ruby), new_list(ruby)];
        let hijack = if exchange.can_hijack() { hijack } else { Qnil as VALUE };
        let env = self.head(ruby, exchange, [hijack, lists[0], lists[1]], may_last);
        if exchange.request().offers_upgrade() {
            set(ruby, env, strings().rack_protocol, protocols(ruby, exchange.request()));
            // A tunnel over HTTP/2 has a socket of its own.
            set(ruby, env, strings().rack_hijack_p, Qtrue as VALUE);
        }
        if let Some(id) = exchange.request().trace_id() {
            set(ruby, env, strings().fairlead_trace_id, new(ruby, id));
        }
        if let Some(at) = exchange.deadline().and_then(|deadline| deadline.at()) {
            set(ruby, env, strings().fairlead_deadline, float(ruby, at.as_secs_f64()));
        }
        if exchange.request().is_chunked() {
            let length = text(ruby, format_args!("{}", exchange.body().len()));
            set(ruby, env, strings().content_length, length);
        }
        let mut file = Qnil as VALUE;
        if !matches!(exchange.body(), Body::Empty) {
            let is_file = matches!(exchange.body(), Body::File(..));
            let input = input::make(ruby, exchange);
            set(ruby, env, strings().rack_input, input);
            if is_file {
                file = input;
            }
        }
        Env {
            hash: env,
            after_reply: lists[0],
            response_finished: lists[1],
            file,
        }
    }

    /// Everything except the body. `references`: the callable of `rack.hijack`, and the lists. Inside `protect`.
    fn head(&self, ruby: &Ruby, exchange: &Exchange<'_>, references: [VALUE; 3], may_last: bool) -> VALUE {
        let request = exchange.request();
        let mut values = Slots::new();
        let has_host = self.push_shared(ruby, exchange, references, &mut values);
        let start_time = exchange.start_time();
        if start_time == StartTime::OfServer {
            values.push(self.start_time(ruby, request));
        }
        let of_session = match exchange.session() {
            Some(session) => self
                .session
                .push(ruby, session, exchange.claimed_session(), &mut values),
            None => 0,
        };
        let kind = Kind::of(exchange, has_host, start_time, of_session);
        let may_have_shape = !may_last && !request.is_chunked();
        let shape = may_have_shape.then(|| self.shapes.find(kind, request)).flatten();
        if let Some(shape) = shape {
            let shared = values.length();
            for (index, (_, value)) in request.fields().enumerate() {
                if shape.has(index) {
                    values.push(new(ruby, value));
                }
            }
            if let Some(env) = shape.env(ruby, &values) {
                return env;
            }
            values.truncate(shared);
        }
        // In the order of a shape: the slots come first.
        let env = new_hash(ruby);
        let mut keys = slot_keys(has_host, start_time);
        session::push_keys(ruby, of_session, &mut keys);
        for (key, value) in keys.iter().zip(values.iter()) {
            set(ruby, env, key, value);
        }
        let withheld = self.set_fields(ruby, env, request, start_time, &mut keys);
        self.complete(ruby, env);
        self.set_kind(ruby, env, request, kind);
        if let Some(withheld) = withheld.filter(|_| may_have_shape) {
            self.shapes.learn(ruby, kind, request, env, &keys, withheld);
        }
        env
    }

    /// Adds the values of [`slot_keys`]. Returns true if there is a `Host`. Inside `protect`.
    fn push_shared(&self, ruby: &Ruby, exchange: &Exchange<'_>, references: [VALUE; 3], values: &mut Slots) -> bool {
        let request = exchange.request();
        let path = match (request.target_form(), request.path()) {
            // RFC 9112 §3.3. Also, before Rack 3.1 the SPEC permits no path without a leading slash except "".
            (TargetForm::Asterisk, _) => new(ruby, b""),
            (_, b"") => new(ruby, b"/"),
            (_, path) => new(ruby, path),
        };
        let query = request.query().map_or(strings().empty, |query| new(ruby, query));
        let server = self.server(ruby, exchange);
        let has_host = server.http_host != Qnil as VALUE;
        let uri = new(ruby, request.target());
        let peer = self.peer(ruby, exchange);
        for value in [path, path, uri, query, peer, server.name, server.port] {
            values.push(value);
        }
        references.into_iter().for_each(|value| values.push(value));
        if has_host {
            values.push(server.http_host);
        }
        has_host
    }

    /// `HTTP_X_REQUEST_START`. Readers subtract the wait for the body from it if the env has that. Inside `protect`.
    fn start_time(&self, ruby: &Ruby, request: &Request) -> VALUE {
        let body_wait = if self.has_body_wait {
            request.body_wait()
        } else {
            Duration::ZERO
        };
        let start = request.completed_at().saturating_sub(body_wait);
        self.start_text(ruby, start)
    }

    /// Sets the entries that all requests of a kind share. Inside `protect`.
    fn set_kind(&self, ruby: &Ruby, env: VALUE, request: &Request, kind: Kind) {
        let (keys, name) = (strings(), request.method());
        if name != b"GET" {
            set(ruby, env, keys.request_method, method(ruby, name, keys));
        }
        if kind.version != Version::Http11 {
            let version = match kind.version {
                Version::Http10 => keys.http10,
                _ => keys.http2,
            };
            set(ruby, env, keys.server_protocol, version);
            set(ruby, env, keys.http_version, version);
        }
        if kind.version == Version::Http2 {
            // A stream has no socket to give away.
            set(ruby, env, keys.rack_hijack_p, Qfalse as VALUE);
        }
        let scheme = if kind.is_secure { keys.https } else { keys.http };
        set(ruby, env, keys.rack_url_scheme, scheme);
    }

    /// Sets the entries of the header fields, and adds their keys. Returns a bit for each field that the env does not
    /// have; `None` if fields were joined in one value, or if there are more fields than bits. Inside `protect`.
    fn set_fields(
        &self,
        ruby: &Ruby,
        env: VALUE,
        request: &Request,
        start_time: StartTime,
        slots: &mut Slots,
    ) -> Option<u64> {
        let (keys, mut seen) = (strings(), 0u64);
        let mut withheld = Some(0u64);
        for (index, (name, value)) in request.fields().enumerate() {
            if fields::has_underscore(name) || is_withheld(name, request, start_time) {
                withheld = withheld.and_then(|bits| Some(bits | 1u64.checked_shl(index as u32)?));
                continue;
            }
            let key = match name.len() {
                12 if name.eq_ignore_ascii_case(b"content-type") => keys.content_type,
                14 if name.eq_ignore_ascii_case(b"content-length") => keys.content_length,
                _ => field_keys().find(name).unwrap_or_else(|| unusual_key(ruby, name)),
            };
            // A filter with false positives: only a name that may have come before is looked up. It compares the text
            // of the name, because equal keys may have different addresses.
            let bit = filter_bit(name);
            let before = if seen & bit == 0 { None } else { get(ruby, env, key) };
            let value = match before {
                Some(before) => joined(ruby, before, value, name),
                None => new(ruby, value),
            };
            withheld = withheld.filter(|_| before.is_none());
            set(ruby, env, key, value);
            slots.push(key);
            seen |= bit;
        }
        withheld
    }
}

fn is_withheld(name: &[u8], request: &Request, start_time: StartTime) -> bool {
    let is_one_of = |names: &[&[u8]]| names.iter().any(|one| name.eq_ignore_ascii_case(one));
    match name.len() {
        // The template has it, from the target if the target has an authority (RFC 9112 §3.2.2).
        4 => name.eq_ignore_ascii_case(b"host"),
        // HTTP_VERSION is the version of the request.
        7 => name.eq_ignore_ascii_case(b"version"),
        13 | 18 => start_time == StartTime::OfServer && is_one_of(&StartTime::FIELDS),
        15 => is_one_of(&UNTRUSTED) || start_time == StartTime::OfServer && is_one_of(&StartTime::FIELDS),
        // The body is decoded, so the transfer coding is removed.
        17 => request.is_chunked() && name.eq_ignore_ascii_case(b"transfer-encoding"),
        _ => false,
    }
}

/// `rack.protocol`: an Array of the protocols that the client offers (Rack SPEC 3.1). Inside `protect`.
fn protocols(ruby: &Ruby, request: &Request) -> VALUE {
    let list = new_array(ruby);
    for protocol in request.offered_protocols() {
        // SAFETY: the GVL is held; the list is on the stack.
        unsafe { rb_ary_push(list, new(ruby, protocol)) };
    }
    list
}

/// The keys of the values that [`ThreadTemplate::push_shared`] adds, in this order, and of the start time.
fn slot_keys(has_host: bool, start_time: StartTime) -> Slots {
    let keys = strings();
    let mut slots = Slots::new();
    for key in [
        keys.path_info,
        keys.request_path,
        keys.request_uri,
        keys.query_string,
        keys.remote_addr,
        keys.server_name,
        keys.server_port,
        keys.rack_hijack,
        keys.rack_after_reply,
        keys.rack_response_finished,
    ] {
        slots.push(key);
    }
    if has_host {
        slots.push(keys.http_host);
    }
    if start_time == StartTime::OfServer {
        slots.push(keys.http_x_request_start);
    }
    slots
}

fn method(ruby: &Ruby, name: &[u8], keys: &Strings) -> VALUE {
    match name {
        b"POST" => keys.post,
        b"HEAD" => keys.head,
        b"PUT" => keys.put,
        b"DELETE" => keys.delete,
        b"PATCH" => keys.patch,
        b"OPTIONS" => keys.options,
        // Frozen like the others: all requests of a shape share it.
        other => interned(ruby, other),
    }
}

/// One of 64 bits for a name. Names that differ only in case have the same bit.
fn filter_bit(name: &[u8]) -> u64 {
    let lower = |at: usize| name.get(at).map_or(0, |byte| usize::from(byte | 0x20));
    let sum = name.len() + 3 * lower(0) + 5 * lower(name.len() / 2) + 7 * lower(name.len().saturating_sub(1));
    1 << (sum % 64)
}

/// The key of a field that is not in the table: always the interned String, so that an env and a shape have the same
/// objects as keys.
fn unusual_key(ruby: &Ruby, name: &[u8]) -> VALUE {
    let mut piece = [0u8; 128];
    let prefix = b"HTTP_";
    let length = prefix.len() + name.len();
    if length <= piece.len() {
        piece[..prefix.len()].copy_from_slice(prefix);
        write_upper(name, &mut piece[prefix.len()..]);
        return interned(ruby, &piece[..length]);
    }
    // A Ruby String, not a Vec: an exception must not jump over a destructor.
    let key = new_text(ruby, prefix);
    for part in name.chunks(piece.len()) {
        write_upper(part, &mut piece);
        // SAFETY: a live, unfrozen String; as many bytes are copied as were written.
        unsafe { rb_sys::rb_str_cat(key, piece.as_ptr().cast(), part.len() as _) };
    }
    // SAFETY: the GVL is held; a live String.
    unsafe { rb_sys::rb_str_to_interned_str(key) }
}

/// Writes a name in the form of a key, at the start of `to`.
fn write_upper(name: &[u8], to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(name) {
        *to = if *from == b'-' { b'_' } else { from.to_ascii_uppercase() };
    }
}

/// A new list for the application, without memory of its own until an element is added. Each request has its own list,
/// which the application may freeze, extend or keep.
fn new_list(_: &Ruby) -> VALUE {
    // SAFETY: the GVL is held.
    unsafe { rb_sys::rb_ary_new_capa(0) }
}

/// Joins the values of a repeated field (RFC 9110 §5.3; cookies by RFC 6265 §5.4).
fn joined(ruby: &Ruby, before: VALUE, value: &[u8], name: &[u8]) -> VALUE {
    let separator: &[u8] = if name.eq_ignore_ascii_case(b"cookie") {
        b"; "
    } else {
        b", "
    };
    // SAFETY: the GVL is held; live Strings of ours, and the copy is not frozen.
    unsafe {
        let joined = rb_str_dup(before);
        rb_str_buf_append(joined, new(ruby, separator));
        rb_str_buf_append(joined, new(ruby, value))
    }
}
