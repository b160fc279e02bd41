//! The env Hash: a template with what is always the same is copied and completed for each request.
//!
//! Values of the request are new, unfrozen binary Strings, because applications change them in place; keys and constants
//! are shared and frozen. Names with an underscore never become keys: `X-Forwarded_For` must not pass for
//! `X-Forwarded-For`.

use super::input;
use crate::strings::{field_keys, interned, new, strings, Strings};
use fairlead_engine::{Body, Exchange, Framing, Head, TargetForm, Version};
use fairlead_wire::{fields, host_and_port};
use rb_sys::{
    rb_ary_new, rb_ary_new_capa, rb_ary_push, rb_hash_aset, rb_hash_dup, rb_hash_lookup, rb_hash_new,
    rb_str_buf_append, rb_str_dup, Qfalse, Qnil, Qtrue, VALUE,
};
use std::fmt::Write;
use std::net::SocketAddr;

/// Fields that a client must not be able to set: they tell an application or a middleware which paths to trust.
const UNTRUSTED: [&[u8]; 2] = [b"x-sendfile-type", b"x-accel-mapping"];

/// What all requests of an engine have in common. Its owner marks [`Template::value`].
#[derive(Debug)]
pub(crate) struct Template {
    env: VALUE,
}

/// What a template is made from.
pub(crate) struct Common {
    pub(crate) errors: VALUE,
    pub(crate) server_software: VALUE,
    pub(crate) multithread: bool,
    pub(crate) multiprocess: bool,
}

impl Template {
    /// Makes the template; needs the GVL and may raise.
    pub(crate) fn new(errors: VALUE, server_software: VALUE, multithread: bool, multiprocess: bool) -> Template {
        let common = Common {
            errors,
            server_software,
            multithread,
            multiprocess,
        };
        // SAFETY: plain Hash and Array operations on live objects, with the GVL.
        unsafe {
            let env = rb_hash_new();
            let version = rb_ary_new_capa(2);
            rb_ary_push(version, rb_sys::rb_uint2inum(1));
            rb_ary_push(version, rb_sys::rb_uint2inum(6));
            let flag = |on: bool| if on { Qtrue as VALUE } else { Qfalse as VALUE };
            let keys = strings();
            for (key, value) in [
                (keys.script_name, keys.empty),
                (keys.server_protocol, keys.http11),
                (keys.server_software, common.server_software),
                (keys.gateway_interface, keys.cgi12),
                (keys.rack_version, version),
                (keys.rack_errors, common.errors),
                (keys.rack_multithread, flag(common.multithread)),
                (keys.rack_multiprocess, flag(common.multiprocess)),
                (keys.rack_run_once, flag(false)),
                (keys.rack_hijack_p, flag(false)),
            ] {
                rb_hash_aset(env, key, value);
            }
            Template { env }
        }
    }

    pub(crate) fn value(&self) -> VALUE {
        self.env
    }

    /// The env of one request. Needs the GVL, inside `protect`; takes the body out of the exchange.
    pub(crate) fn fill(&self, exchange: &mut Exchange<'_>) -> VALUE {
        let keys = strings();
        // SAFETY: the template is marked by its owner; everything made here stays on the stack or in the env.
        unsafe {
            let env = rb_hash_dup(self.env);
            set_target(env, exchange, keys);
            set_fields(env, exchange, keys);
            set_server(env, exchange, keys);
            set_peer(env, exchange.peer(), keys);
            let is_chunked = exchange.head().framing == Framing::Chunked;
            let body = exchange.take_body();
            if is_chunked {
                let mut length = Decimal::default();
                let _ = write!(length, "{}", body.len());
                rb_hash_aset(env, keys.content_length, new(length.bytes()));
            }
            rb_hash_aset(env, keys.rack_input, make_input(body));
            rb_hash_aset(env, keys.rack_after_reply, rb_ary_new());
            rb_hash_aset(env, keys.rack_response_finished, rb_ary_new());
            env
        }
    }
}

/// SAFETY (all functions below): called with the GVL, inside `protect`, with a live `env`.
unsafe fn make_input(body: Body) -> VALUE {
    input::make(body)
}

unsafe fn set_target(env: VALUE, exchange: &Exchange<'_>, keys: &Strings) {
    let head = exchange.head();
    let target = exchange.text(head.target);
    let path = exchange.text(head.parts.path);
    let uri = new(target);
    let path = match head.parts.form {
        TargetForm::Asterisk => new(b"*"),
        _ if path.is_empty() => new(b"/"),
        _ => new(path),
    };
    let query = head.parts.query.map_or(&b""[..], |query| exchange.text(query));
    // SAFETY: see above.
    unsafe {
        rb_hash_aset(env, keys.request_method, method(exchange.text(head.method), keys));
        rb_hash_aset(env, keys.path_info, path);
        rb_hash_aset(env, keys.request_path, path);
        rb_hash_aset(env, keys.request_uri, uri);
        rb_hash_aset(env, keys.query_string, new(query));
        if head.version == Version::Http10 {
            rb_hash_aset(env, keys.server_protocol, keys.http10);
        }
    }
}

fn method(name: &[u8], keys: &Strings) -> VALUE {
    match name {
        b"GET" => keys.get,
        b"POST" => keys.post,
        b"HEAD" => keys.head,
        b"PUT" => keys.put,
        b"DELETE" => keys.delete,
        b"PATCH" => keys.patch,
        b"OPTIONS" => keys.options,
        other => new(other),
    }
}

unsafe fn set_fields(env: VALUE, exchange: &Exchange<'_>, keys: &Strings) {
    let head = exchange.head();
    let mut seen = 0u64;
    for index in 0..head.fields.len() {
        let field = head.fields[index];
        let (name, value) = (exchange.text(field.name), exchange.text(field.value));
        if fields::has_underscore(name) || is_withheld(name, head) {
            continue;
        }
        let key = match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => keys.http_host,
            12 if name.eq_ignore_ascii_case(b"content-type") => keys.content_type,
            14 if name.eq_ignore_ascii_case(b"content-length") => keys.content_length,
            _ => field_keys().find(name).unwrap_or_else(|| unusual_key(name)),
        };
        // A filter with false alarms: only a name that may have come before is looked up.
        let bit = 1u64 << (((key >> 3) ^ (key >> 9)) % 64);
        // SAFETY: see above.
        unsafe {
            if seen & bit != 0 && rb_hash_lookup(env, key) != Qnil as VALUE {
                join(env, key, value, name);
            } else {
                rb_hash_aset(env, key, new(value));
            }
        }
        seen |= bit;
    }
}

fn is_withheld(name: &[u8], head: &Head) -> bool {
    match name.len() {
        15 => UNTRUSTED.iter().any(|untrusted| name.eq_ignore_ascii_case(untrusted)),
        // The body is decoded, so the coding is gone.
        17 => head.framing == Framing::Chunked && name.eq_ignore_ascii_case(b"transfer-encoding"),
        _ => false,
    }
}

/// The key of a field that is not in the table. The name is short enough: the head is limited.
fn unusual_key(name: &[u8]) -> VALUE {
    let mut short = [0u8; 128];
    let prefix = b"HTTP_";
    let length = prefix.len() + name.len();
    if length <= short.len() {
        short[..prefix.len()].copy_from_slice(prefix);
        for (to, from) in short[prefix.len()..].iter_mut().zip(name) {
            *to = if *from == b'-' { b'_' } else { from.to_ascii_uppercase() };
        }
        return interned(&short[..length]);
    }
    // A Ruby String, not a Vec: an exception must not jump over a destructor.
    let key = new(prefix);
    for byte in name {
        let byte = [if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }];
        // SAFETY: a live, unfrozen String; one byte is copied.
        unsafe { rb_sys::rb_str_cat(key, byte.as_ptr().cast(), 1) };
    }
    key
}

/// Adds a repeated field to the one before (RFC 9110 §5.3; cookies by RFC 6265 §5.4).
unsafe fn join(env: VALUE, key: VALUE, value: &[u8], name: &[u8]) {
    let separator: &[u8] = if name.eq_ignore_ascii_case(b"cookie") {
        b"; "
    } else {
        b", "
    };
    // SAFETY: see above; the value in the env is a String of ours.
    unsafe {
        let joined = rb_str_dup(rb_hash_lookup(env, key));
        rb_str_buf_append(joined, new(separator));
        rb_str_buf_append(joined, new(value));
        rb_hash_aset(env, key, joined);
    }
}

unsafe fn set_server(env: VALUE, exchange: &Exchange<'_>, keys: &Strings) {
    let origin = exchange.origin();
    let host = exchange
        .head()
        .host
        .map(|host| exchange.text(host))
        .and_then(host_and_port);
    let (name, port) = match host {
        Some((name, port)) => (name, port.unwrap_or(80)),
        None => (origin.host.as_bytes(), origin.port),
    };
    // SAFETY: see above.
    unsafe {
        rb_hash_aset(env, keys.server_name, new(name));
        rb_hash_aset(env, keys.rack_url_scheme, interned(origin.scheme.as_bytes()));
        let port = if port == 80 || port == 0 {
            keys.port80
        } else {
            let mut text = Decimal::default();
            let _ = write!(text, "{port}");
            new(text.bytes())
        };
        rb_hash_aset(env, keys.server_port, port);
        // An absolute-form target stands for the Host field (RFC 9112 §3.2.2).
        if let (TargetForm::Absolute, Some(authority)) = (exchange.head().parts.form, exchange.head().parts.authority) {
            rb_hash_aset(env, keys.http_host, new(exchange.text(authority)));
        }
    }
}

unsafe fn set_peer(env: VALUE, peer: Option<SocketAddr>, keys: &Strings) {
    let address = match peer {
        None => keys.loopback,
        Some(peer) => {
            let mut text = Decimal::default();
            let _ = write!(text, "{}", peer.ip().to_canonical());
            new(text.bytes())
        }
    };
    // SAFETY: see above.
    unsafe { rb_hash_aset(env, keys.remote_addr, address) };
}

/// A short text on the stack: numbers and addresses.
struct Decimal {
    text: [u8; 48],
    length: usize,
}

impl Default for Decimal {
    fn default() -> Self {
        Decimal {
            text: [0; 48],
            length: 0,
        }
    }
}

impl Decimal {
    fn bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

impl Write for Decimal {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        let end = self.length + part.len();
        self.text
            .get_mut(self.length..end)
            .ok_or(std::fmt::Error)?
            .copy_from_slice(part.as_bytes());
        self.length = end;
        Ok(())
    }
}
