//! State of the process rather than of one engine: its hub, subscriptions without a client, and tasks. The methods of
//! `Fairlead::Native` use the engine that runs in this process, if there is one.

use crate::gvl::{wait_without_gvl, EngineCode};
use crate::objects::call;
use crate::realtime::kind;
use crate::strings::{bytes, ids, new};
use fairlead_engine::pubsub::{Bus, Delivery, History, Hub, Kept, Position, Scope, Since};
use fairlead_engine::{Descriptors, Engine, ProcessSubscription};
use fairlead_shared_memory::own_history;
use magnus::rb_sys::AsRawValue;
use magnus::{function, prelude::*, value::Lazy, Error, RArray, RHash, RModule, RString, Ruby, Value};
use rb_sys::{rb_ary_new, rb_ary_push, VALUE};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Blocks of subscriptions by number, and tasks in order: a Hash and an Array that live as long as the process.
static BLOCKS: Lazy<RHash> = Lazy::new(Ruby::hash_new);
static TASKS: Lazy<RArray> = Lazy::new(Ruby::ary_new);

/// The scope of messages that are kept; see [`publish`].
const KEPT: u8 = 3;

static PROCESS: Mutex<Process> = Mutex::new(Process {
    pid: 0,
    hub: None,
    is_child: false,
    descriptors: None,
    engines: Vec::new(),
    resident: None,
    subscriptions: None,
});

/// Made by the supervisor and inherited by its workers.
static BUS: Mutex<Option<Arc<Bus>>> = Mutex::new(None);

struct Process {
    /// The process to which this state belongs: a forked process starts with a new state.
    pid: u32,
    hub: Option<Arc<Hub>>,
    /// True if a process that served has forked this one.
    is_child: bool,
    descriptors: Option<Arc<Descriptors>>,
    engines: Vec<Weak<Engine>>,
    /// The engine that serves beside a supervisor in this process.
    resident: Option<Weak<Engine>>,
    subscriptions: Option<HashMap<Vec<u8>, Arc<ProcessSubscription>>>,
}

impl Process {
    fn engine(&mut self) -> Option<Arc<Engine>> {
        self.engines.retain(|engine| engine.strong_count() > 0);
        self.engines.first().and_then(Weak::upgrade)
    }

    /// The engine for a new task: if possible, an engine that does not drain, because a drain waits for tasks.
    fn engine_for_task(&mut self) -> Option<Arc<Engine>> {
        let first = self.engine()?;
        let mut engines = self.engines.iter().filter_map(Weak::upgrade);
        Some(engines.find(|engine| !engine.is_draining()).unwrap_or(first))
    }
}

/// Has the engines of this process close their listeners and finish the requests that have arrived. False if there is
/// no engine. For a native thread.
pub(super) fn drain_all() -> bool {
    let engines: Vec<Arc<Engine>> = current().engines.iter().filter_map(Weak::upgrade).collect();
    engines.iter().for_each(|engine| engine.drain());
    !engines.is_empty()
}

/// Has the engine that belongs to the supervisor of this process close everything. For a thread that must not wait: a
/// native thread does the work.
pub(super) fn stop_resident() {
    let resident = current().resident.as_ref().and_then(Weak::upgrade);
    if let Some(engine) = resident {
        let thread = std::thread::Builder::new().name("fairlead stop".into());
        let _ = thread.spawn(move || engine.stop());
    }
}

/// The guard must not live while Ruby is called.
fn current() -> MutexGuard<'static, Process> {
    let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if process.pid != pid {
        process.pid = pid;
        process.engines.clear();
        process.resident = None;
        process.subscriptions = Some(HashMap::new());
        process.is_child |= process.hub.is_some();
        // A fork does not copy the threads of a hub, and such a thread may hold locks of the hub, so nothing of it is
        // dropped.
        std::mem::forget(process.hub.take());
        process.descriptors = None;
    }
    process
}

pub(super) fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("subscribe", function!(subscribe, 3))?;
    native.define_singleton_method("unsubscribe", function!(unsubscribe, 1))?;
    native.define_singleton_method("publish", function!(publish, 3))?;
    native.define_singleton_method("lead", function!(lead, 0))?;
    native.define_singleton_method("progress", function!(progress, 0))?;
    native.define_singleton_method("note_progress", function!(note_progress, 1))?;
    native.define_singleton_method("stop_leading", function!(stop_leading, 0))?;
    native.define_singleton_method("position", function!(position, 0))?;
    native.define_singleton_method("seal_position", function!(seal_position, 2))?;
    native.define_singleton_method("history", function!(history, 5))?;
    native.define_singleton_method("position_before", function!(position_before, 4))?;
    native.define_singleton_method("place", function!(place, 0))?;
    native.define_singleton_method("defer", function!(defer, 1))
}

/// Lets this process and its forks send each other published messages.
pub(super) fn set_bus(bus: &Arc<Bus>) {
    *BUS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(bus));
}

/// The hub of this process, made and started with its first engine.
/// `history_bytes`: of its history, if no bus has one; 0 for none.
pub(super) fn hub(slot: Option<usize>, history_bytes: usize) -> std::io::Result<Arc<Hub>> {
    let mut process = current();
    if let Some(hub) = &process.hub {
        return Ok(Arc::clone(hub));
    }
    let bus = BUS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let bus = bus.zip(slot);
    let history = match (&bus, history_bytes) {
        (Some(_), _) | (None, 0) => None,
        (None, bytes) => Some(history_of_process(bytes)?),
    };
    let hub = Hub::with_history(bus, history)?;
    hub.start()?;
    process.hub = Some(Arc::clone(&hub));
    Ok(hub)
}

/// The history of this process alone. Its memory is never given back, so engines that come one after another share it.
fn history_of_process(bytes: usize) -> std::io::Result<Arc<History>> {
    static KNOWN: Mutex<Vec<(u32, usize, Arc<History>)>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if let Some((_, _, history)) = known.iter().find(|(owner, size, _)| (*owner, *size) == (pid, bytes)) {
        return Ok(Arc::clone(history));
    }
    let history = Arc::new(own_history(bytes)?);
    known.push((pid, bytes, Arc::clone(&history)));
    Ok(history)
}

/// The budget of descriptors, which the engines of this process share; computed with the first of them.
pub(super) fn descriptors(max_connections: usize) -> Arc<Descriptors> {
    let mut process = current();
    let descriptors = process
        .descriptors
        .get_or_insert_with(|| Descriptors::of_process(max_connections));
    Arc::clone(descriptors)
}

/// Notes that an engine serves. `counts`: it has a slot among the processes of a server.
pub(super) fn enter(engine: &Arc<Engine>, counts: bool) {
    let mut process = current();
    process.engines.push(Arc::downgrade(engine));
    if counts {
        process.resident = Some(Arc::downgrade(engine));
    }
}

/// Notes that an engine has ended. Another engine takes over its work for the process; with the last engine, that work
/// ends.
pub(super) fn leave(ruby: &Ruby, engine: &Arc<Engine>) -> Result<(), Error> {
    let mut process = current();
    process.engines.retain(|known| known.as_ptr() != Arc::as_ptr(engine));
    if let Some(next) = process.engine() {
        let subscriptions = process.subscriptions.iter().flat_map(HashMap::values);
        subscriptions.for_each(|subscription| next.take_over(subscription));
        drop(process);
        // Too many calls do no harm: a removed task does not run again.
        (0..ruby.get_inner(&TASKS).len()).for_each(|_| next.defer());
        return Ok(());
    }
    let hub = process.hub.take();
    process.descriptors = None;
    process.subscriptions = Some(HashMap::new());
    // This lock must not be held while the GVL is given up.
    drop(process);
    let cleared = ruby
        .get_inner(&BLOCKS)
        .clear()
        .and_then(|()| ruby.get_inner(&TASKS).clear());
    if let Some(hub) = hub {
        let mut has_stopped = false;
        wait_without_gvl(ruby, || {
            hub.stop();
            has_stopped = true;
        });
        if !has_stopped {
            hub.stop();
        }
    }
    cleared
}

/// Subscribes the process; `block` is called with channel and message. Returns the number of this process's subscribers
/// of that name, or nil if no engine runs.
fn subscribe(ruby: &Ruby, name: RString, pattern: u8, block: Value) -> Result<Option<usize>, Error> {
    let pattern = kind(ruby, pattern)?;
    // SAFETY: the String is on the stack; its bytes are copied before any Ruby runs.
    let name = unsafe { bytes(ruby, name.as_raw()) }.to_vec();
    let Some((engine, hub)) = serving() else {
        return Ok(None);
    };
    // A second call with the same name only changes the block, which then gets the messages that wait.
    let subscription = known(&name).unwrap_or_else(|| engine.new_subscription());
    ruby.get_inner(&BLOCKS).aset(subscription.id(), block)?;
    let count = hub.subscribe(subscription.clone(), &name, pattern, Delivery::Event(subscription.id()));
    keep(&name, subscription);
    Ok(Some(count))
}

/// The engine that works for the process, and its hub.
fn serving() -> Option<(Arc<Engine>, Arc<Hub>)> {
    let mut process = current();
    process.engine().zip(process.hub.clone())
}

/// The subscription of this name.
fn known(name: &[u8]) -> Option<Arc<ProcessSubscription>> {
    let process = current();
    process.subscriptions.as_ref()?.get(name).cloned()
}

fn keep(name: &[u8], subscription: Arc<ProcessSubscription>) {
    let mut process = current();
    let subscriptions = process.subscriptions.get_or_insert_with(HashMap::new);
    subscriptions.insert(name.to_vec(), subscription);
}

/// Removes the subscription of this name; returns it, and the hub.
fn take(name: &[u8]) -> Option<(Arc<ProcessSubscription>, Arc<Hub>)> {
    let mut process = current();
    let hub = process.hub.clone()?;
    let subscription = process.subscriptions.as_mut()?.remove(name)?;
    Some((subscription, hub))
}

/// Ends the subscription of this name. Returns the number of this process's remaining subscribers, or nil if there was
/// no subscription.
fn unsubscribe(ruby: &Ruby, name: RString) -> Result<Option<usize>, Error> {
    // SAFETY: as above.
    let name = unsafe { bytes(ruby, name.as_raw()) }.to_vec();
    match take(&name) {
        Some((subscription, hub)) => end(ruby, &hub, &subscription, &name),
        None => Ok(None),
    }
}

fn end(ruby: &Ruby, hub: &Hub, subscription: &ProcessSubscription, name: &[u8]) -> Result<Option<usize>, Error> {
    subscription.close();
    ruby.get_inner(&BLOCKS).delete::<_, Value>(subscription.id())?;
    Ok(hub.unsubscribe(subscription.id(), name))
}

/// The block of a subscription; `None` if the subscription has ended.
pub(crate) fn block(ruby: &Ruby, id: u64) -> Option<VALUE> {
    ruby.get_inner(&BLOCKS).get(id).map(AsRawValue::as_raw)
}

/// Publishes from any process of the server. `scope`: 0 every process, 1 this one, 2 all others, 3 every process and the
/// history. False if a process did
/// not take the message in time. Waits, without the GVL, while the mailbox of another process is full.
fn publish(ruby: &Ruby, channel: RString, message: RString, scope: u8) -> Result<bool, Error> {
    let keeps = scope == KEPT;
    let scope = match scope {
        0 | KEPT => Scope::Cluster,
        1 => Scope::Process,
        2 => Scope::Siblings,
        _ => {
            return Err(Error::new(
                ruby.exception_arg_error(),
                format!("unknown scope {scope}; use 0, 1, 2 or 3"),
            ))
        }
    };
    let hub = current().hub.clone();
    // SAFETY: as above.
    let (channel, message) = unsafe {
        (
            bytes(ruby, channel.as_raw()).to_vec(),
            bytes(ruby, message.as_raw()).to_vec(),
        )
    };
    let mut wait = |code: &mut dyn FnMut()| {
        let mut code = EngineCode(code);
        wait_without_gvl(ruby, || code.run());
    };
    if let Some(hub) = hub {
        let posted = match keeps {
            true => hub.publish_kept(&channel, &message, &mut wait),
            false => hub.publish(&channel, &message, scope, &mut wait),
        };
        return Ok(posted.undelivered == 0);
    }
    let bus = BUS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match bus {
        Some(bus) if keeps => Ok(bus.keep(&channel, &message, &mut wait).undelivered == 0),
        Some(bus) if scope != Scope::Process => Ok(bus.publish(&channel, &message, &mut wait).undelivered == 0),
        _ => Ok(true),
    }
}

/// Makes this process the leader of the processes of the server, if there is none. Returns true if it leads.
fn lead() -> bool {
    let hub = current().hub.clone();
    hub.is_some_and(|hub| hub.lead())
}

/// The number of the last piece of work that a leader of this server has done, and the seconds since then; 0 for none. And the
/// position after it, with a history.
fn progress() -> (u64, f64, Option<String>) {
    let hub = current().hub.clone();
    let (number, since, position) = hub.map(|hub| hub.progress()).unwrap_or_default();
    (
        number,
        since.as_secs_f64(),
        position.map(|position| position.to_string()),
    )
}

/// Stores that number, for the next leader.
fn note_progress(number: u64) {
    if let Some(hub) = current().hub.clone() {
        hub.note_progress(number);
    }
}

/// Lets another process lead.
fn stop_leading() {
    if let Some(hub) = current().hub.clone() {
        hub.stop_leading();
    }
}

/// Calls `read` with the history of this process, or of the server to which it belongs.
fn with_history<R>(read: impl FnOnce(&History) -> R) -> Option<R> {
    let hub = current().hub.clone();
    let bus = BUS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let of_hub = hub.as_ref().and_then(|hub| hub.history());
    of_hub.or_else(|| bus.as_ref().and_then(|bus| bus.history())).map(read)
}

/// The position after all messages that were published so far; nil without a history.
fn position() -> Option<String> {
    with_history(|history| history.position().to_string())
}

/// `seal_position(channel, position)`: a position for a page that will subscribe to a channel. Nil without a history, or if
/// `position` is none of this server.
fn seal_position(ruby: &Ruby, channel: RString, position: String) -> Option<String> {
    // SAFETY: as above.
    let channel = unsafe { bytes(ruby, channel.as_raw()) }.to_vec();
    let position: Position = position.parse().ok()?;
    with_history(|history| history.seal(&channel, position).ok()).flatten()
}

/// `history(channel, since, seconds, most, time)`: the messages of a channel after the position `since`, or published since
/// `seconds` after the Unix epoch: at most `most`, and none older than `time` seconds. Returns Arrays with the offset, the
/// time and the message; false if some are not kept any more, or nil without a history.
fn history(
    ruby: &Ruby,
    channel: RString,
    since: Option<String>,
    seconds: f64,
    most: usize,
    time: u64,
) -> Result<Value, Error> {
    let kept = Kept {
        messages: most,
        time: Duration::from_secs(time),
    };
    // SAFETY: as above.
    let channel = unsafe { bytes(ruby, channel.as_raw()) }.to_vec();
    let past = with_history(|history| match since {
        Some(since) => match since.parse::<Position>() {
            Ok(since) => history.since(&channel, since, kept),
            Err(()) => Since::Lost,
        },
        None => {
            let seconds = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            Since::All(history.since_time(&channel, seconds, kept))
        }
    });
    let list = match past {
        None => return Ok(ruby.qnil().as_value()),
        Some(Since::Lost) => return Ok(ruby.qfalse().as_value()),
        Some(Since::All(past)) => past,
    };
    let result = ruby.ary_new_capa(list.len());
    for past in list {
        let message = match std::str::from_utf8(&past.message) {
            Ok(text) => ruby.str_new(text),
            Err(_) => ruby.str_from_slice(&past.message),
        };
        result.push((past.offset, past.time.as_secs_f64(), message))?;
    }
    Ok(result.as_value())
}

/// `position_before(channel, seconds, most, time)`: the position before the messages that [`history`] finds since a time, and
/// false if some of them are not kept any more; nil without a history.
fn position_before(ruby: &Ruby, channel: RString, seconds: f64, most: usize, time: u64) -> Option<(String, bool)> {
    let kept = Kept {
        messages: most,
        time: Duration::from_secs(time),
    };
    // SAFETY: as above.
    let channel = unsafe { bytes(ruby, channel.as_raw()) }.to_vec();
    let since = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let (position, is_complete) = with_history(|history| history.before(&channel, since, kept))?;
    Some((position.to_string(), is_complete))
}

/// The reach of published messages, as a sum: 1 if they get to subscribers of this process, 2 if they get to the other
/// processes of a server. 4: the subscribers in this process are copies, because a process that serves has forked it.
fn place() -> u8 {
    let process = current();
    let (delivers, is_copy) = (process.hub.is_some(), process.is_child && process.hub.is_none());
    drop(process);
    let is_in_server = BUS.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    u8::from(delivers) | u8::from(is_in_server) << 1 | u8::from(is_copy) << 2
}

/// Has a thread of the application call `task`, in turn with requests. Nil if no engine runs.
fn defer(ruby: &Ruby, task: Value) -> Result<Option<bool>, Error> {
    let Some(engine) = current().engine_for_task() else {
        return Ok(None);
    };
    ruby.get_inner(&TASKS).push(task)?;
    engine.defer();
    Ok(Some(true))
}

/// The oldest task.
pub(crate) fn next_task(ruby: &Ruby) -> Option<VALUE> {
    let tasks = ruby.get_inner(&TASKS);
    let task: Value = if tasks.is_empty() { None } else { tasks.shift().ok() }?;
    Some(task.as_raw())
}

/// Tells `Fairlead::PubSub` the names that have no subscriber in this process any more. Inside `protect`.
pub(crate) fn forgotten(ruby: &Ruby, names: &[Box<[u8]>]) {
    // SAFETY: live objects on the stack, exceptions are stopped by the caller, and nothing here has a destructor.
    let (pub_sub, list) = unsafe {
        let list = rb_ary_new();
        for name in names {
            rb_ary_push(list, new(ruby, name));
        }
        (rb_sys::rb_path2class(c"Fairlead::PubSub".as_ptr()), list)
    };
    call(ruby, pub_sub, ids().forgotten, &[list]);
}
