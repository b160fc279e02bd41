//! Ruby's classes and objects that the extension needs while it serves, each found or made once and kept for ever.

use magnus::{prelude::*, value::Lazy, ExceptionClass, Module, RClass, RModule, Ruby, TryConvert, TypedData, Value};

/// Blocks that lead to a response; see `rack/handle.rs`.
pub(crate) static HANDLE: Lazy<RClass> = Lazy::new(|ruby| define(ruby, "Handle"));
/// The callables of `rack.hijack`.
pub(crate) static HIJACK: Lazy<RClass> = Lazy::new(|ruby| define(ruby, "Hijack"));
/// The callables of `rack.early_hints`.
pub(crate) static EARLY_HINTS: Lazy<RClass> = Lazy::new(|ruby| define(ruby, "EarlyHints"));
/// What a streaming body is called with.
pub(crate) static STREAM: Lazy<RClass> = Lazy::new(|ruby| define(ruby, "Stream"));

/// The client is gone.
pub(crate) static CLOSED_ERROR: Lazy<ExceptionClass> = Lazy::new(|ruby| find(fairlead(ruby), "ClosedError"));
/// What belongs to a response was used after its end.
pub(crate) static FINISHED_ERROR: Lazy<ExceptionClass> = Lazy::new(|ruby| find(fairlead(ruby), "FinishedError"));
/// The request is aborted, because the server ends.
pub(crate) static FORCED_SHUTDOWN: Lazy<ExceptionClass> = Lazy::new(|ruby| find(fairlead(ruby), "ForcedShutdown"));

/// `rack.input` of a request without a body; shared by all.
pub(crate) static EMPTY_INPUT: Lazy<Value> = Lazy::new(|ruby| find(fairlead(ruby), "EMPTY_INPUT"));
/// Makes `rack.input` for a body in a file.
pub(crate) static FILE_INPUT: Lazy<RClass> = Lazy::new(|ruby| find(fairlead(ruby), "FileInput"));
/// Makes `rack.input` for a body in memory.
pub(crate) static STRING_IO: Lazy<RClass> = Lazy::new(|ruby| find(ruby.class_object(), "StringIO"));

/// Looks after streams that are open after the call of a streaming body.
pub(crate) static KEPT_STREAMS: Lazy<RModule> = Lazy::new(|ruby| find(fairlead(ruby), "KeptStreams"));

/// What a hijacked socket becomes.
pub(crate) static TCP_SOCKET: Lazy<RClass> = Lazy::new(|ruby| find(ruby.class_object(), "TCPSocket"));
pub(crate) static UNIX_SOCKET: Lazy<RClass> = Lazy::new(|ruby| find(ruby.class_object(), "UNIXSocket"));

/// Finds those that others define. When the first engine is made, `lib/` has loaded them all.
pub(crate) fn find_all(ruby: &Ruby) {
    Lazy::force(&CLOSED_ERROR, ruby);
    Lazy::force(&FINISHED_ERROR, ruby);
    Lazy::force(&FORCED_SHUTDOWN, ruby);
    Lazy::force(&EMPTY_INPUT, ruby);
    Lazy::force(&KEPT_STREAMS, ruby);
    for class in [&FILE_INPUT, &STRING_IO, &TCP_SOCKET, &UNIX_SOCKET] {
        Lazy::force(class, ruby);
    }
}

/// Looks up the class of `T`, which magnus does only once: if what makes the first object were interrupted at that, no other
/// could be made in this process.
pub(crate) fn know<T: TypedData>(ruby: &Ruby) {
    T::class(ruby);
}

/// A class of `Fairlead::Native` whose objects only the extension makes.
fn define(ruby: &Ruby, name: &str) -> RClass {
    let class = native(ruby).define_class(name, ruby.class_object());
    let class = class.expect("no other code defines it");
    class.undef_default_alloc_func();
    class
}

/// `Fairlead::Native`.
pub(crate) fn native(ruby: &Ruby) -> RModule {
    find(fairlead(ruby), "Native")
}

fn fairlead(ruby: &Ruby) -> RModule {
    find(ruby.class_object(), "Fairlead")
}

fn find<T: TryConvert>(scope: impl Module, name: &str) -> T {
    scope.const_get(name).expect("lib/ has loaded it")
}
