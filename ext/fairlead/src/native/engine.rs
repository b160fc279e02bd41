//! `Fairlead::Native::Engine`: one worker's engine and the application that it serves.

use super::process;
use super::requests::Running;
use super::settings::Settings;
use super::shared::{copies, Shared};
use super::statistics;
use super::system_error;
use super::tls::NativeTls;
use crate::gvl::{wait_without_gvl, without_gvl, Gvl};
use crate::protect::check_interrupts_of_method;
use crate::rack::{OnThread, RackApp, Template, ThreadTemplate};
use fairlead_engine::{Engine, Heirs, Listener, Membership, Origin, ProxyVersions, Retirement, Stats, TicketKeys};
use magnus::rb_sys::AsRawValue;
use magnus::{
    block::Proc, function, gc, method, prelude::*, typed_data::Obj, DataTypeFunctions, Error, RArray, RHash, RModule,
    Ruby, TypedData, Value,
};
use rb_sys::{Qnil, VALUE};
use std::cell::{Cell, RefCell};
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

#[derive(TypedData)]
#[magnus(class = "Fairlead::Native::Engine", free_immediately, mark, size)]
struct NativeEngine {
    /// `None` once the engine has been released.
    engine: RefCell<Option<Arc<Engine>>>,
    /// The statistics at the moment of the release.
    last_stats: Cell<Stats>,
    app: RackApp,
}

impl Drop for NativeEngine {
    /// A forked process keeps its copy for ever: when parts of an engine are dropped, they flush logs and end
    /// connections.
    fn drop(&mut self) {
        if self.at_home().is_none() {
            std::mem::forget(self.engine.take());
        }
    }
}

impl DataTypeFunctions for NativeEngine {
    fn mark(&self, _: &gc::Marker) {
        let app = &self.app;
        for value in [
            app.app,
            app.error_reporter,
            app.start_thread,
            app.out_of_band,
            app.template.value(),
            app.clients,
        ] {
            // SAFETY: called by the collector while it marks, with values that were alive at the last collection. The
            // call pins them, so that their addresses stay valid.
            unsafe { rb_sys::rb_gc_mark(value) };
        }
    }
}

pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Engine", ruby.class_object())?;
    class.undef_default_alloc_func();
    crate::classes::know::<NativeEngine>(ruby);
    class.define_singleton_method("new", function!(new, 5))?;
    class.define_method("run", method!(run, 0))?;
    class.define_method("initial_threads", method!(NativeEngine::initial_threads, 0))?;
    class.define_method("replace_thread", method!(NativeEngine::replace_thread, 0))?;
    class.define_method("cancel_thread", method!(NativeEngine::cancel_thread, 0))?;
    class.define_method("end_listeners", method!(NativeEngine::end_listeners, 1))?;
    class.define_method("leave", method!(NativeEngine::leave, 0))?;
    class.define_method("drain", method!(NativeEngine::drain, 0))?;
    class.define_method("set_heirs", method!(NativeEngine::set_heirs, 2))?;
    class.define_method("retire", method!(NativeEngine::retire, 3))?;
    class.define_method("stop", method!(NativeEngine::stop, 0))?;
    class.define_method("wait", method!(NativeEngine::wait, 1))?;
    class.define_method("close_logs", method!(NativeEngine::close_logs, 0))?;
    class.define_method("release", method!(NativeEngine::release, 0))?;
    class.define_method("deadline_signal", method!(NativeEngine::deadline_signal, 0))?;
    class.define_method("stats", method!(NativeEngine::stats, 0))
}

/// `new(app, listeners, settings, shared, slot) { start a thread }`: makes the engine and starts its native threads.
/// With the setting `alone`, the engine counts in its slot but serves like an engine without `shared`.
fn new(
    ruby: &Ruby,
    app: Value,
    listeners: RArray,
    settings: RHash,
    shared: Option<Obj<Shared>>,
    slot: usize,
) -> Result<Obj<NativeEngine>, Error> {
    let start_thread: Proc = ruby.block_proc()?;
    let settings = Settings::new(ruby, settings);
    let is_alone: bool = settings.get("alone")?;
    let siblings = shared.filter(|_| !is_alone);
    let keys = shared.map(|shared| shared.ticket_keys());
    let listeners = listeners
        .into_iter()
        .map(|pair| listener(ruby, RArray::try_convert(pair)?, keys))
        .collect::<Result<Vec<_>, Error>>()?;
    let config = settings.config()?;
    crate::classes::find_all(ruby);
    crate::rack::set_lists(settings.get("field_lists")?);
    let app = RackApp {
        app: app.as_raw(),
        error_reporter: settings.get::<Value>("error_reporter")?.as_raw(),
        error_details: settings.get("error_details")?,
        fiber_per_request: settings.get("fiber_per_request")?,
        out_of_band: settings.get::<Value>("out_of_band")?.as_raw(),
        puma_env: settings.get("puma_env")?,
        start_thread: start_thread.as_raw(),
        template: template(ruby, &settings, config.max_threads > 1, siblings.is_some())?,
        clients: ruby.ary_new().as_raw(),
    };
    let io_error = |error: std::io::Error| super::system_error(ruby, "the engine", &error);
    let history_bytes = settings.get("history_bytes")?;
    let hub = process::hub(shared.map(|_| slot), history_bytes).map_err(io_error)?;
    let prefix = siblings.map(|_| format!("[{}] ", std::process::id()));
    let logs = settings.logs(prefix.unwrap_or_default())?;
    let membership = shared.map(|shared| match siblings {
        Some(_) => Membership::Worker(shared.queues(), slot),
        None => Membership::Alone(shared.scoreboard(), slot),
    });
    let engine = Engine::new(config, listeners, logs, membership, hub).map_err(io_error)?;
    if engine.sends_named_files() {
        app.template.announce_sendfile(ruby);
    }
    engine.start(Box::new(Gvl::new(ruby))).map_err(io_error)?;
    process::enter(&engine, shared.is_some());
    let (template, clients) = (app.template.value(), app.clients);
    let object = ruby.obj_wrap(NativeEngine {
        engine: RefCell::new(Some(engine)),
        last_stats: Cell::default(),
        app,
    });
    // Until the collector knows the object, it sees these values on the stack only.
    rb_sys::rb_gc_guard!(template);
    rb_sys::rb_gc_guard!(clients);
    Ok(object)
}

/// The part that all envs of this engine have in common.
fn template(ruby: &Ruby, settings: &Settings<'_>, multithread: bool, multiprocess: bool) -> Result<Template, Error> {
    let errors: Value = ruby.eval("$stderr")?;
    let software: Value = settings.get("server_software")?;
    let request_timeout: Value = settings.get("set_request_timeout")?;
    let [errors, software, request_timeout] = [errors, software, request_timeout].map(|value| value.as_raw());
    let kinds = [multithread, multiprocess];
    Ok(Template::new(ruby, errors, software, request_timeout, kinds))
}

/// `[fd, {scheme:, host:, port:} or {scheme:, path:}, TLS or nil, version of the PROXY protocol or nil]`; duplicates
/// the descriptor.
fn listener(ruby: &Ruby, pair: RArray, keys: Option<&'static TicketKeys>) -> Result<Listener, Error> {
    let fd: i32 = pair.entry(0)?;
    let hash: RHash = pair.entry(1)?;
    let text = |name: &str| hash.lookup::<_, Option<String>>(ruby.to_symbol(name));
    // Only checks that there is one: a path is bytes, not text.
    let unix = hash.lookup::<_, Option<Value>>(ruby.to_symbol("path"))?.is_some();
    let origin = Origin {
        scheme: text("scheme")?.unwrap_or_else(|| "http".into()),
        host: text("host")?.unwrap_or_else(|| "localhost".into()),
        port: hash.lookup::<_, Option<u16>>(ruby.to_symbol("port"))?.unwrap_or(0),
        unix,
    };
    // SAFETY: lib/ passes the number of a socket that it keeps open during this call.
    let socket: OwnedFd = unsafe { BorrowedFd::borrow_raw(fd) }
        .try_clone_to_owned()
        .map_err(|error| Error::new(ruby.exception_arg_error(), format!("listener {fd}: {error}")))?;
    let listener =
        Listener::new(socket, origin).map_err(|error| Error::new(ruby.exception_arg_error(), error.to_string()))?;
    let listener = match pair.entry::<Option<String>>(3)?.as_deref() {
        None => listener,
        Some("v1") => listener.with_proxy_protocol(ProxyVersions::V1),
        Some("v2") => listener.with_proxy_protocol(ProxyVersions::V2),
        Some(_) => listener.with_proxy_protocol(ProxyVersions::Any),
    };
    Ok(match pair.entry::<Option<Obj<NativeTls>>>(2)? {
        Some(tls) => listener.with_tls(tls.shared(keys)),
        None => listener,
    })
}

/// Serves on this thread until the engine has drained or stopped, and returns true. Returns false if the thread was
/// killed: the caller must let it end, because Ruby kills a thread only once. Raises an exception that another thread
/// has raised in this one.
fn run(ruby: &Ruby, this: Obj<NativeEngine>) -> bool {
    let Some(engine) = this.at_home() else { return true };
    let thread = OnThread {
        ruby,
        app: &this.app,
        engine: &engine,
        template: ThreadTemplate::new(&this.app.template, this.app.puma_env),
        leave: Cell::new(None),
        exception: Cell::new(Qnil as VALUE),
        has_served: Cell::new(false),
        running: Running::new(ruby),
        collections: Cell::default(),
    };
    crate::gvl::lock_wait::watch_this_thread(ruby);
    let listed = thread.running.list();
    engine.serve(&thread);
    drop(listed);
    let leave = thread.leave.get();
    let exception = thread.exception_to_leave_by();
    drop(thread);
    drop(engine);
    if let Some(jump) = exception {
        // SAFETY: no value on this stack needs its destructor. The exception came from rb_protect on this thread.
        unsafe { rb_sys::rb_jump_tag(jump.0) };
    }
    if leave.is_some() {
        // SAFETY: the GVL is held.
        unsafe { rb_sys::rb_set_errinfo(Qnil as VALUE) };
    }
    leave.is_none()
}

impl NativeEngine {
    /// The engine; `None` after its release, and in a process that the application has forked. Such a process has a
    /// copy of the engine's memory, with locks that threads of its parent may have held, but the same sockets, poll set
    /// and logs.
    fn at_home(&self) -> Option<Arc<Engine>> {
        self.engine.borrow().clone().filter(|engine| engine.is_at_home())
    }

    fn initial_threads(&self) -> usize {
        self.at_home().map_or(0, |engine| engine.initial_threads())
    }

    fn replace_thread(&self) -> bool {
        self.at_home().is_some_and(|engine| engine.replace_thread())
    }

    fn cancel_thread(&self) {
        self.at_home().inspect(|engine| engine.cancel_thread());
    }

    fn end_listeners(&self, inodes: Vec<u64>) {
        self.at_home().inspect(|engine| engine.end_listeners(&inodes));
    }

    fn leave(&self) {
        self.at_home().inspect(|engine| engine.leave());
    }

    fn drain(&self) {
        self.at_home().inspect(|engine| engine.drain());
    }

    /// `connections`, `clients`: descriptors of the queues of another release, which continues in place of all workers of this one.
    fn set_heirs(ruby: &Ruby, this: &NativeEngine, connections: RawFd, clients: RawFd) -> Result<(), Error> {
        let copies = copies([connections, clients]);
        let copies = copies.map_err(|error| system_error(ruby, "the queues of the new workers", &error.into()))?;
        this.at_home().inspect(|engine| engine.set_heirs(Heirs::new(copies)));
        Ok(())
    }

    /// `stay`, `limit`: seconds for which clients that cannot migrate stay, and which the drain may take. `patient`: see [`Retirement`].
    fn retire(&self, stay: f64, limit: f64, patient: bool) {
        let time = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        let retirement = Retirement {
            stay: time(stay),
            limit: time(limit),
            patient,
        };
        self.at_home().inspect(|engine| engine.retire(retirement));
    }

    fn stop(ruby: &Ruby, this: &NativeEngine) -> Result<(), Error> {
        let Some(engine) = this.at_home() else { return Ok(()) };
        engine.stop();
        process::leave(ruby, &engine)
    }

    /// Waits without the GVL until every connection is closed, at most `seconds` (nil: for ever). False after a
    /// timeout. Raises the exception that ends the wait. Returns true at once if the engine was released, and in a
    /// forked process.
    fn wait(ruby: &Ruby, this: &NativeEngine, seconds: Option<f64>) -> Result<bool, Error> {
        let timeout = seconds.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX));
        let until = timeout.and_then(|timeout| std::time::Instant::now().checked_add(timeout));
        while let Some(engine) = this.at_home() {
            let mut done = false;
            let left = until.map(|until| until.saturating_duration_since(std::time::Instant::now()));
            // In short steps: this thread can be interrupted between them.
            let step = left.unwrap_or(WAIT_STEP).min(WAIT_STEP);
            without_gvl(ruby, &engine, || done = engine.wait(Some(step)));
            if done || left.is_some_and(|left| left.is_zero()) {
                return Ok(done);
            }
            check_interrupts_of_method(ruby)?;
        }
        Ok(true)
    }

    /// Waits until all log lines are written, but for a limited time; later lines are lost. True if the logs may be
    /// closed now.
    fn close_logs(ruby: &Ruby, this: &NativeEngine) -> bool {
        let Some(engine) = this.at_home() else { return true };
        let mut is_written = false;
        without_gvl(ruby, &engine, || is_written = engine.close_logs());
        is_written
    }

    /// The number of a descriptor that is readable when a request has run longer than its timeout. The caller owns it; nil
    /// without an engine.
    fn deadline_signal(ruby: &Ruby, this: &NativeEngine) -> Result<Option<i32>, Error> {
        let Some(engine) = this.at_home() else { return Ok(None) };
        let signal = engine.deadline_signal();
        let signal = signal.map_err(|error| super::system_error(ruby, "deadlines", &error))?;
        Ok(Some(signal.into_raw_fd()))
    }

    /// Closes the descriptors of the stopped engine as soon as its last thread has ended.
    fn release(ruby: &Ruby, this: &NativeEngine) {
        let Some(engine) = this.at_home() else { return };
        this.last_stats.set(engine.stats());
        let mut both = [this.engine.take(), Some(engine)];
        wait_without_gvl(ruby, || both = [None, None]);
    }

    fn stats(ruby: &Ruby, this: &NativeEngine) -> Result<RHash, Error> {
        let engine = this.engine.borrow().clone();
        statistics::of_engine(ruby, &engine.map_or(this.last_stats.get(), |engine| engine.stats()))
    }
}

const WAIT_STEP: Duration = Duration::from_millis(100);
