//! Ruby strings and names that live as long as the process: env keys, method names, and the keys of usual header
//! fields.

use magnus::Ruby;
use rb_sys::{
    rb_enc_interned_str, rb_gc_register_mark_object, rb_intern2, rb_str_freeze, rb_str_new, rb_utf8_encoding, ID, VALUE,
};
use std::ffi::{c_char, c_long};
use std::sync::OnceLock;

/// A new binary String with these bytes. Raises when Ruby is out of memory.
pub(crate) fn new(_: &Ruby, bytes: &[u8]) -> VALUE {
    // An empty Rust slice may have an invalid address, and Ruby 3.1 reads from it even so.
    let pointer = if bytes.is_empty() {
        c"".as_ptr()
    } else {
        bytes.as_ptr().cast::<c_char>()
    };
    // SAFETY: the pointer is valid for the length, and Ruby copies the bytes.
    unsafe { rb_str_new(pointer, bytes.len() as c_long) }
}

/// A new UTF-8 String.
pub(crate) fn new_text(_: &Ruby, bytes: &[u8]) -> VALUE {
    let pointer = if bytes.is_empty() {
        c"".as_ptr()
    } else {
        bytes.as_ptr().cast()
    };
    // SAFETY: as above.
    unsafe { rb_sys::rb_utf8_str_new(pointer, bytes.len() as c_long) }
}

/// A new frozen binary String with these bytes.
pub(crate) fn frozen(ruby: &Ruby, bytes: &[u8]) -> VALUE {
    // SAFETY: the GVL is held; a new String.
    unsafe { rb_str_freeze(new(ruby, bytes)) }
}

/// The one frozen UTF-8 String with these bytes, which must not be empty. The caller keeps it alive.
pub(crate) fn interned(_: &Ruby, bytes: &[u8]) -> VALUE {
    debug_assert!(!bytes.is_empty());
    // SAFETY: the pointer is valid for the length; the encoding is Ruby's own.
    unsafe { rb_enc_interned_str(bytes.as_ptr().cast(), bytes.len() as c_long, rb_utf8_encoding()) }
}

/// A frozen UTF-8 String that is kept for ever.
fn kept(ruby: &Ruby, text: &str) -> VALUE {
    let value = if text.is_empty() {
        frozen(ruby, b"")
    } else {
        interned(ruby, text.as_bytes())
    };
    keep(ruby, value);
    value
}

/// Keeps an object for ever, at its address.
fn keep(_: &Ruby, value: VALUE) {
    // SAFETY: a live object; the GVL is held.
    unsafe { rb_gc_register_mark_object(value) };
}

fn id(_: &Ruby, name: &str) -> ID {
    // SAFETY: the pointer is valid for the length; Ruby copies the bytes.
    unsafe { rb_intern2(name.as_ptr().cast(), name.len() as c_long) }
}

macro_rules! table {
    ($(#[$doc:meta])* $name:ident: $type:ty = $make:ident { $($field:ident: $text:expr,)* }) => {
        $(#[$doc])*
        pub(crate) struct $name { $(pub(crate) $field: $type,)* }
        impl $name {
            fn make(ruby: &Ruby) -> $name { $name { $($field: $make(ruby, $text),)* } }
        }
    };
}

table! {
    /// Keys of the env, and values that are the same in most requests.
    Strings: VALUE = kept {
        request_method: "REQUEST_METHOD",
        script_name: "SCRIPT_NAME",
        path_info: "PATH_INFO",
        request_path: "REQUEST_PATH",
        request_uri: "REQUEST_URI",
        query_string: "QUERY_STRING",
        server_name: "SERVER_NAME",
        server_port: "SERVER_PORT",
        server_protocol: "SERVER_PROTOCOL",
        server_software: "SERVER_SOFTWARE",
        gateway_interface: "GATEWAY_INTERFACE",
        remote_addr: "REMOTE_ADDR",
        content_type: "CONTENT_TYPE",
        content_length: "CONTENT_LENGTH",
        http_host: "HTTP_HOST",
        rack_input: "rack.input",
        rack_errors: "rack.errors",
        rack_version: "rack.version",
        rack_multithread: "rack.multithread",
        rack_multiprocess: "rack.multiprocess",
        rack_run_once: "rack.run_once",
        rack_url_scheme: "rack.url_scheme",
        rack_hijack_p: "rack.hijack?",
        rack_hijack: "rack.hijack",
        rack_hijack_io: "rack.hijack_io",
        rack_protocol: "rack.protocol",
        rack_upgrade_p: "rack.upgrade?",
        sendfile_type: "sendfile.type",
        x_sendfile: "X-Sendfile",
        rack_upgrade: "rack.upgrade",
        rack_after_reply: "rack.after_reply",
        rack_response_finished: "rack.response_finished",
        rack_early_hints: "rack.early_hints",
        http_x_request_start: "HTTP_X_REQUEST_START",
        fairlead_queue_time: "fairlead.queue_time",
        fairlead_waiting_room_time: "fairlead.waiting_room_time",
        fairlead_lock_wait: "fairlead.lock_wait",
        fairlead_client_gone: "fairlead.client_gone?",
        fairlead_deadline: "fairlead.deadline",
        fairlead_request_timeout: "fairlead.request_timeout",
        fairlead_trace_id: "fairlead.trace_id",
        get: "GET",
        post: "POST",
        head: "HEAD",
        put: "PUT",
        delete: "DELETE",
        patch: "PATCH",
        options: "OPTIONS",
        http10: "HTTP/1.0",
        http11: "HTTP/1.1",
        http2: "HTTP/2",
        cgi12: "CGI/1.2",
        port80: "80",
        port443: "443",
        http: "http",
        https: "https",
        http_version: "HTTP_VERSION",
        https_key: "HTTPS",
        on: "on",
        ssl_protocol: "SSL_PROTOCOL",
        ssl_cipher: "SSL_CIPHER",
        ssl_tls_sni: "SSL_TLS_SNI",
        ssl_client_verify: "SSL_CLIENT_VERIFY",
        ssl_client_cert: "SSL_CLIENT_CERT",
        ssl_client_s_dn: "SSL_CLIENT_S_DN",
        ssl_client_i_dn: "SSL_CLIENT_I_DN",
        ssl_client_serial: "SSL_CLIENT_SERIAL",
        puma_socket: "puma.socket",
        puma_request_body_wait: "puma.request_body_wait",
        empty: "",
        loopback: "127.0.0.1",
    }
}

table! {
    /// Method names, and keys of statistics.
    Ids: ID = id {
        call: "call",
        each: "each",
        close: "close",
        to_ary: "to_ary",
        to_path: "to_path",
        to_i: "to_i",
        new: "new",
        watch: "watch",
        thread_number: "__fairlead_number__",
        prepare: "prepare",
        for_fd: "for_fd",
        set_autoclose: "autoclose=",
        method_defined: "method_defined?",
        forgotten: "forgotten",
        websocket: "websocket",
        sse: "sse",
        on_open: "on_open",
        on_message: "on_message",
        on_drained: "on_drained",
        on_shutdown: "on_shutdown",
        on_close: "on_close",
        on_handover: "on_handover",
        of: "of",
        take_over: "take_over",
        resume: "resume",
        time: "time",
        full_mark: "full_mark",
        start: "start",
    }
}

/// Fields that most requests have. Their keys are made once.
const USUAL_FIELDS: [&str; 44] = [
    "Accept",
    "Accept-Charset",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "Cache-Control",
    "Connection",
    "Cookie",
    "DNT",
    "Expect",
    "Forwarded",
    "From",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Keep-Alive",
    "Origin",
    "Pragma",
    "Priority",
    "Purpose",
    "Range",
    "Referer",
    "Sec-CH-UA",
    "Sec-CH-UA-Mobile",
    "Sec-CH-UA-Platform",
    "Sec-Fetch-Dest",
    "Sec-Fetch-Mode",
    "Sec-Fetch-Site",
    "Sec-Fetch-User",
    "TE",
    "Upgrade",
    "Upgrade-Insecure-Requests",
    "User-Agent",
    "Via",
    "X-CSRF-Token",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Forwarded-Proto",
    "X-Real-IP",
    "X-Request-ID",
    "X-Requested-With",
];

/// Many more than the fields, so that most fields have a slot of their own.
const SLOTS: usize = 256;

/// Env keys of usual fields by name: a hash table with open addressing, filled once.
pub(crate) struct FieldKeys {
    slots: [Option<(&'static str, VALUE)>; SLOTS],
}

impl FieldKeys {
    fn make(ruby: &Ruby) -> FieldKeys {
        let mut slots = [None; SLOTS];
        for name in USUAL_FIELDS {
            let mut key = Vec::new();
            fairlead_wire::fields::env_key(name.as_bytes(), &mut key);
            let mut slot = Self::slot(name.as_bytes());
            while slots[slot].is_some() {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = Some((name, kept(ruby, &String::from_utf8_lossy(&key))));
        }
        FieldKeys { slots }
    }

    /// The env key of a usual field.
    pub(crate) fn find(&self, name: &[u8]) -> Option<VALUE> {
        let mut slot = Self::slot(name);
        while let Some((usual, key)) = self.slots[slot] {
            if usual.len() == name.len() && usual.as_bytes().eq_ignore_ascii_case(name) {
                return Some(key);
            }
            slot = (slot + 1) % SLOTS;
        }
        None
    }

    fn slot(name: &[u8]) -> usize {
        name.iter().fold(name.len(), |hash, byte| {
            hash.wrapping_mul(31) + usize::from(byte | 0x20)
        }) % SLOTS
    }
}

static STRINGS: OnceLock<Strings> = OnceLock::new();
static IDS: OnceLock<Ids> = OnceLock::new();
static FIELD_KEYS: OnceLock<FieldKeys> = OnceLock::new();

/// Makes the tables, when the extension is loaded.
pub(crate) fn init(ruby: &Ruby) {
    STRINGS.get_or_init(|| Strings::make(ruby));
    IDS.get_or_init(|| Ids::make(ruby));
    FIELD_KEYS.get_or_init(|| FieldKeys::make(ruby));
}

pub(crate) fn strings() -> &'static Strings {
    STRINGS.get().expect("made when the extension was loaded")
}

pub(crate) fn ids() -> &'static Ids {
    IDS.get().expect("made when the extension was loaded")
}

pub(crate) fn field_keys() -> &'static FieldKeys {
    FIELD_KEYS.get().expect("made when the extension was loaded")
}

/// The bytes of a Ruby String, for as long as it lives and is not changed.
///
/// # Safety
/// `string` must be a String that the caller keeps on the stack, and no Ruby code may run while the slice is used.
pub(crate) unsafe fn bytes<'a>(_: &Ruby, string: VALUE) -> &'a [u8] {
    // SAFETY: by the caller's promise a String; pointer and length belong together.
    unsafe {
        let length = rb_sys::RSTRING_LEN(string) as usize;
        if length == 0 {
            &[]
        } else {
            std::slice::from_raw_parts(rb_sys::RSTRING_PTR(string).cast(), length)
        }
    }
}
