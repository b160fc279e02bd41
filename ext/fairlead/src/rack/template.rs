//! The common part of envs: a Hash that is copied for each request and then completed.
//!
//! The engine keeps one Hash for all requests. Each thread keeps the Hashes of the shapes that it has seen
//! (`shape.rs`), and the values for the last `Host` and the last peer, because requests in a row usually share those.
//! Shared values are frozen; the Strings of a single request are its own.

use super::session::LastSession;
use super::shape::Shapes;
use crate::native::requests;
use crate::objects::{self, set};
use crate::strings::{frozen, strings};
use fairlead_engine::{Exchange, Origin};
use fairlead_wire::host_and_port;
use magnus::Ruby;
use rb_sys::{rb_ary_new_capa, rb_ary_push, rb_hash_new, rb_str_freeze, Qfalse, Qnil, Qtrue, VALUE};
use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

/// The Hash for every request of an engine. Its owner marks [`Template::value`].
#[derive(Debug)]
pub(crate) struct Template {
    all: VALUE,
}

/// The values that the requests of one thread share. It lives on the stack of that thread, where the collector sees
/// them.
pub(crate) struct ThreadTemplate<'a> {
    template: &'a Template,
    /// True if envs have `puma.request_body_wait`.
    pub(super) has_body_wait: bool,
    pub(super) shapes: Shapes,
    pub(super) session: LastSession,
    /// Key of the cached `server` values; nil at first.
    site: RefCell<Site>,
    server: Cell<Server>,
    /// Key of the cached peer address.
    peer: Cell<Option<IpAddr>>,
    address: Cell<VALUE>,
    /// Key of the cached start time: tenths of a millisecond since the Unix epoch.
    tenth: Cell<u64>,
    start: Cell<VALUE>,
}

/// Inputs for the server's part of an env.
#[derive(Debug, Default)]
struct Site {
    host: Vec<u8>,
    /// The host that a trusted proxy reports instead; empty if none does.
    forwarded_host: Vec<u8>,
    forwarded_port: Option<u16>,
    is_secure: bool,
    /// Address of the listener's [`Origin`], which lives as long as the engine.
    origin: usize,
}

/// The server's part of an env. On the stack.
#[derive(Clone, Copy)]
pub(super) struct Server {
    /// nil if the request has no `Host`.
    pub(super) http_host: VALUE,
    pub(super) name: VALUE,
    pub(super) port: VALUE,
}

impl Template {
    /// Makes the template; may raise. It has HTTP_VERSION: the SPEC before Rack 3.1 requires it, and Rails decides by
    /// it if it streams.
    pub(crate) fn new(
        ruby: &Ruby,
        errors: VALUE,
        server_software: VALUE,
        request_timeout: VALUE,
        [multithread, multiprocess]: [bool; 2],
    ) -> Template {
        let flag = |on: bool| if on { Qtrue as VALUE } else { Qfalse as VALUE };
        let keys = strings();
        // SAFETY: the GVL is held; new objects, a live String and a live callable. Every request has them, so they are
        // frozen.
        let (version, all) = unsafe {
            let version = rb_ary_new_capa(2);
            rb_ary_push(version, rb_sys::rb_uint2inum(1));
            rb_ary_push(version, rb_sys::rb_uint2inum(6));
            rb_sys::rb_ary_freeze(version);
            rb_str_freeze(server_software);
            rb_sys::rb_obj_freeze(request_timeout);
            (version, rb_hash_new())
        };
        for (key, value) in [
            (keys.request_method, keys.get),
            (keys.script_name, keys.empty),
            (keys.server_protocol, keys.http11),
            // Rack 3.1 no longer asks for it, but Rails up to 7.2 decides by it how to frame a stream.
            (keys.http_version, keys.http11),
            (keys.server_software, server_software),
            (keys.gateway_interface, keys.cgi12),
            (keys.rack_version, version),
            (keys.rack_errors, errors),
            (keys.rack_input, super::input::empty(ruby)),
            (keys.rack_multithread, flag(multithread)),
            (keys.rack_multiprocess, flag(multiprocess)),
            (keys.rack_run_once, flag(false)),
            (keys.rack_hijack_p, flag(true)),
            (keys.rack_upgrade_p, Qnil as VALUE),
            (keys.fairlead_queue_time, requests::callable(ruby, "queue_time")),
            (
                keys.fairlead_waiting_room_time,
                requests::callable(ruby, "waiting_room_time"),
            ),
            (keys.fairlead_lock_wait, requests::callable(ruby, "lock_wait")),
            (keys.fairlead_request_timeout, request_timeout),
            (keys.fairlead_client_gone, requests::callable(ruby, "client_gone?")),
        ] {
            set(ruby, all, key, value);
        }
        Template { all }
    }

    /// Tells Rack::Sendfile and the like that responses may name files.
    pub(crate) fn announce_sendfile(&self, ruby: &Ruby) {
        set(ruby, self.all, strings().sendfile_type, strings().x_sendfile);
    }

    pub(crate) fn value(&self) -> VALUE {
        self.all
    }
}

impl<'a> ThreadTemplate<'a> {
    /// `has_body_wait`: true if envs have `puma.request_body_wait`.
    pub(crate) fn new(template: &'a Template, has_body_wait: bool) -> ThreadTemplate<'a> {
        let nil = Qnil as VALUE;
        ThreadTemplate {
            template,
            has_body_wait,
            shapes: Shapes::new(),
            session: LastSession::new(),
            site: RefCell::default(),
            server: Cell::new(Server {
                http_host: nil,
                name: nil,
                port: nil,
            }),
            peer: Cell::new(None),
            address: Cell::new(nil),
            tenth: Cell::new(0),
            start: Cell::new(nil),
        }
    }

    /// Adds the entries that all requests share to an env. Inside `protect`.
    pub(super) fn complete(&self, ruby: &Ruby, env: VALUE) {
        objects::update(ruby, env, self.template.all);
    }

    /// The env of a client that has come from another process, without the entries of its request. Nothing offers an upgrade or
    /// the socket. Inside `protect`.
    pub(crate) fn outline(&self, ruby: &Ruby) -> VALUE {
        let env = objects::copy(ruby, self.template.all);
        set(ruby, env, strings().rack_hijack_p, Qfalse as VALUE);
        for list in [strings().rack_after_reply, strings().rack_response_finished] {
            set(ruby, env, list, objects::new_array(ruby));
        }
        env
    }

    /// The values that follow from `Host`, the fields of trusted proxies, and the listener. Inside `protect`.
    pub(super) fn server(&self, ruby: &Ruby, exchange: &Exchange<'_>) -> Server {
        if self.site.borrow().is_of(exchange) {
            return self.server.get();
        }
        let server = server(ruby, exchange);
        self.server.set(server);
        self.site.borrow_mut().set(exchange);
        server
    }

    /// The address of the peer. Inside `protect`.
    pub(super) fn peer(&self, ruby: &Ruby, exchange: &Exchange<'_>) -> VALUE {
        let Some(peer) = exchange.peer().map(|peer| peer.ip()) else {
            // No list of trusted addresses contains the second one.
            let is_local = exchange.origin().unix;
            return if is_local { strings().loopback } else { strings().empty };
        };
        if self.peer.get() != Some(peer) {
            self.address.set(text(ruby, format_args!("{}", peer.to_canonical())));
            self.peer.set(Some(peer));
        }
        self.address.get()
    }
}

impl ThreadTemplate<'_> {
    /// A time since the Unix epoch, as `t=1764151200.1234`, rounded down: a reader must not find it in the future. On a busy server
    /// several requests share a String. Inside `protect`.
    pub(super) fn start_text(&self, ruby: &Ruby, start: Duration) -> VALUE {
        let tenth = start.as_secs() * 10_000 + u64::from(start.subsec_micros() / 100);
        if self.tenth.get() != tenth {
            let (seconds, rest) = (tenth / 10_000, tenth % 10_000);
            self.start.set(text(ruby, format_args!("t={seconds}.{rest:04}")));
            self.tenth.set(tenth);
        }
        self.start.get()
    }
}

impl Site {
    fn is_of(&self, exchange: &Exchange<'_>) -> bool {
        self.origin == address(exchange.origin())
            && self.is_secure == exchange.is_secure()
            && self.host == exchange.request().host().unwrap_or_default()
            && self.forwarded_host == exchange.forwarded_host().unwrap_or_default()
            && self.forwarded_port == exchange.forwarded_port()
    }

    fn set(&mut self, exchange: &Exchange<'_>) {
        self.host.clear();
        self.host
            .extend_from_slice(exchange.request().host().unwrap_or_default());
        self.forwarded_host.clear();
        self.forwarded_host
            .extend_from_slice(exchange.forwarded_host().unwrap_or_default());
        self.forwarded_port = exchange.forwarded_port();
        self.is_secure = exchange.is_secure();
        self.origin = address(exchange.origin());
    }
}

fn address(origin: &Origin) -> usize {
    std::ptr::from_ref(origin) as usize
}

/// Makes the server's part. Inside `protect`.
fn server(ruby: &Ruby, exchange: &Exchange<'_>) -> Server {
    let keys = strings();
    let (origin, is_secure) = (exchange.origin(), exchange.is_secure());
    let host = exchange.request().host().unwrap_or_default();
    let usual_port = if is_secure { 443 } else { 80 };
    let (name, port) = match host_and_port(exchange.forwarded_host().unwrap_or(host)) {
        Some((name, port)) if !name.is_empty() => (frozen(ruby, name), port.unwrap_or(usual_port)),
        // The address of an IPv6 listener gets brackets, as in an authority (RFC 3986 §3.2.2).
        _ if origin.host.contains(':') => (text(ruby, format_args!("[{}]", origin.host)), origin.port),
        _ => (frozen(ruby, origin.host.as_bytes()), origin.port),
    };
    let http_host = if host.is_empty() {
        Qnil as VALUE
    } else {
        frozen(ruby, host)
    };
    let port = match exchange.forwarded_port().unwrap_or(port) {
        0 | 80 if !is_secure => keys.port80,
        0 | 443 => keys.port443,
        port => text(ruby, format_args!("{port}")),
    };
    Server { http_host, name, port }
}

/// A frozen String of a number or an address. Inside `protect`, so it is built on the stack.
pub(super) fn text(ruby: &Ruby, arguments: std::fmt::Arguments<'_>) -> VALUE {
    let mut short = Short {
        bytes: [0; 48],
        length: 0,
    };
    let _ = short.write_fmt(arguments);
    frozen(ruby, &short.bytes[..short.length])
}

struct Short {
    bytes: [u8; 48],
    length: usize,
}

impl Write for Short {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        let end = self.length + part.len();
        self.bytes
            .get_mut(self.length..end)
            .ok_or(std::fmt::Error)?
            .copy_from_slice(part.as_bytes());
        self.length = end;
        Ok(())
    }
}
