//! The env of one request: a copy of the template, completed by the request line, the fields and the body.
//!
//! Values of the request are new, unfrozen binary Strings, because applications change them in place. Fields with an
//! underscore in their name are left out: `X-Forwarded_For` must not pass for `X-Forwarded-For`.

use super::input;
use super::template::{text, ThreadTemplate};
use crate::objects::{get, set};
use crate::strings::{field_keys, interned, new, strings, Strings};
use fairlead_engine::{Body, Exchange, Request, TargetForm, Version};
use fairlead_wire::fields;
use magnus::Ruby;
use rb_sys::{rb_str_buf_append, rb_str_dup, Qnil, VALUE};

/// Fields that a client must not be able to set: they tell an application or a middleware which paths to trust.
const UNTRUSTED: [&[u8]; 2] = [b"x-sendfile-type", b"x-accel-mapping"];

/// An env, and those of its values that are needed after the response. Stays on the stack.
#[derive(Clone, Copy)]
pub(crate) struct Env {
    pub(crate) hash: VALUE,
    /// The lists to which the application adds what is to be run then.
    pub(crate) after_reply: VALUE,
    pub(crate) response_finished: VALUE,
    /// The input that has to be closed, if it is a file; else nil.
    pub(crate) file: VALUE,
}

impl ThreadTemplate<'_> {
    /// The env of one request. Inside `protect`; takes the body out of the exchange.
    pub(crate) fn fill(&self, ruby: &Ruby, exchange: &mut Exchange<'_>) -> Env {
        let keys = strings();
        let env = self.copy(ruby, exchange);
        let is_chunked = exchange.request().is_chunked();
        self.set_target(ruby, env, exchange.request(), keys);
        self.set_fields(ruby, env, exchange.request(), keys);
        let body = exchange.take_body();
        if is_chunked {
            let length = text(ruby, format_args!("{}", body.len()));
            set(ruby, env, keys.content_length, length);
        }
        let mut file = Qnil as VALUE;
        if !matches!(body, Body::Empty) {
            let is_file = matches!(body, Body::File(..));
            let input = input::make(ruby, body);
            set(ruby, env, keys.rack_input, input);
            if is_file {
                file = input;
            }
        }
        let [after_reply, response_finished] = self.lists();
        Env {
            hash: env,
            after_reply,
            response_finished,
            file,
        }
    }

    /// Sets what follows from the request line. Inside `protect`.
    fn set_target(&self, ruby: &Ruby, env: VALUE, request: &Request, keys: &Strings) {
        let (name, path) = (request.method(), request.path());
        let path = match request.target_form() {
            // RFC 9112 §3.3; and a SPEC before Rack 3.1 knows no path but "" that does not begin with a slash.
            TargetForm::Asterisk => new(ruby, b""),
            _ if path.is_empty() => new(ruby, b"/"),
            _ => new(ruby, path),
        };
        if name != b"GET" {
            set(ruby, env, keys.request_method, method(ruby, name, keys));
        }
        set(ruby, env, keys.path_info, path);
        set(ruby, env, keys.request_path, path);
        set(ruby, env, keys.request_uri, new(ruby, request.target()));
        if let Some(query) = request.query() {
            set(ruby, env, keys.query_string, new(ruby, query));
        }
        if request.version() == Version::Http10 {
            set(ruby, env, keys.server_protocol, keys.http10);
            if self.has_version() {
                set(ruby, env, keys.http_version, keys.http10);
            }
        }
    }

    /// Sets what follows from the fields. Inside `protect`.
    fn set_fields(&self, ruby: &Ruby, env: VALUE, request: &Request, keys: &Strings) {
        let mut seen = 0u64;
        for (name, value) in request.fields() {
            if fields::has_underscore(name) || self.is_withheld(name, request) {
                continue;
            }
            let key = match name.len() {
                12 if name.eq_ignore_ascii_case(b"content-type") => keys.content_type,
                14 if name.eq_ignore_ascii_case(b"content-length") => keys.content_length,
                _ => field_keys().find(name).unwrap_or_else(|| unusual_key(ruby, name)),
            };
            // A filter with false alarms: only a name that may have come before is looked up.
            let bit = 1u64 << (((key >> 3) ^ (key >> 9)) % 64);
            let before = if seen & bit == 0 { None } else { get(ruby, env, key) };
            let value = match before {
                Some(before) => joined(ruby, before, value, name),
                None => new(ruby, value),
            };
            set(ruby, env, key, value);
            seen |= bit;
        }
    }

    fn is_withheld(&self, name: &[u8], request: &Request) -> bool {
        match name.len() {
            // The template has it, from the target where that has an authority (RFC 9112 §3.2.2).
            4 => name.eq_ignore_ascii_case(b"host"),
            7 => self.has_version() && name.eq_ignore_ascii_case(b"version"),
            15 => UNTRUSTED.iter().any(|untrusted| name.eq_ignore_ascii_case(untrusted)),
            // The body is decoded, so the coding is gone.
            17 => request.is_chunked() && name.eq_ignore_ascii_case(b"transfer-encoding"),
            _ => false,
        }
    }
}

fn method(ruby: &Ruby, name: &[u8], keys: &Strings) -> VALUE {
    match name {
        b"POST" => keys.post,
        b"HEAD" => keys.head,
        b"PUT" => keys.put,
        b"DELETE" => keys.delete,
        b"PATCH" => keys.patch,
        b"OPTIONS" => keys.options,
        other => new(ruby, other),
    }
}

/// The key of a field that is not in the table. The name is short enough: the head is limited.
fn unusual_key(ruby: &Ruby, name: &[u8]) -> VALUE {
    let mut short = [0u8; 128];
    let prefix = b"HTTP_";
    let length = prefix.len() + name.len();
    if length <= short.len() {
        short[..prefix.len()].copy_from_slice(prefix);
        for (to, from) in short[prefix.len()..].iter_mut().zip(name) {
            *to = if *from == b'-' { b'_' } else { from.to_ascii_uppercase() };
        }
        return interned(ruby, &short[..length]);
    }
    // A Ruby String, not a Vec: an exception must not jump over a destructor.
    let key = new(ruby, prefix);
    for byte in name {
        let byte = [if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }];
        // SAFETY: a live, unfrozen String; one byte is copied.
        unsafe { rb_sys::rb_str_cat(key, byte.as_ptr().cast(), 1) };
    }
    key
}

/// The values of a repeated field as one (RFC 9110 §5.3; cookies by RFC 6265 §5.4).
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
