//! Ruby classes and objects that the extension needs while it serves. Each is found or made once and kept for ever.

use magnus::{prelude::*, value::Lazy, ExceptionClass, Module, RClass, RModule, Ruby, TryConvert, TypedData, Value};

/// Blocks that lead to a response; see `rack/response_ref.rs`.
pub(crate) static RESPONSE_REF: Lazy<RClass> = Lazy::new(|ruby| define(ruby, "ResponseRef"));
/// The callables of `rack.hijack`.
pub(crate) static HIJACK: Lazy<RClass> = Lazy::new(|ruby| define(ruby, "Hijack"));
/// The callables of `rack.early_hints`.
pub(crate) static EARLY_HINTS: Lazy<RClass> = Lazy::new(|ruby| define(ruby, "EarlyHints"));
/// The argument of a streaming body.
pub(crate) static STREAM: Lazy<RClass> = Lazy::new(|ruby| define(ruby, "Stream"));

/// Raised when the client has closed the connection.
pub(crate) static CLOSED_ERROR: Lazy<ExceptionClass> = Lazy::new(|ruby| find(fairlead(ruby), "ClosedError"));
/// Raised when the application uses an object of a response after the end of this response.
pub(crate) static FINISHED_ERROR: Lazy<ExceptionClass> = Lazy::new(|ruby| find(fairlead(ruby), "FinishedError"));
/// Raised in a request that the stopping server aborts.
pub(crate) static FORCED_SHUTDOWN: Lazy<ExceptionClass> = Lazy::new(|ruby| find(fairlead(ruby), "ForcedShutdown"));

/// `rack.input` of a request without a body; all such requests share it.
pub(crate) static EMPTY_INPUT: Lazy<Value> = Lazy::new(|ruby| find(fairlead(ruby), "EMPTY_INPUT"));
/// Makes `rack.input` for a body in a file.
pub(crate) static FILE_INPUT: Lazy<RClass> = Lazy::new(|ruby| find(fairlead(ruby), "FileInput"));
/// Makes `rack.input` for a body in memory.
pub(crate) static STRING_IO: Lazy<RClass> = Lazy::new(|ruby| find(ruby.class_object(), "StringIO"));

/// Keeps streams that are still open when a streaming body has returned.
pub(crate) static KEPT_STREAMS: Lazy<RModule> = Lazy::new(|ruby| find(fairlead(ruby), "KeptStreams"));

/// Clients that move between processes.
pub(crate) static HANDOVER: Lazy<RModule> = Lazy::new(|ruby| find(fairlead(ruby), "Handover"));

/// The class of a hijacked socket.
pub(crate) static TCP_SOCKET: Lazy<RClass> = Lazy::new(|ruby| find(ruby.class_object(), "TCPSocket"));
pub(crate) static UNIX_SOCKET: Lazy<RClass> = Lazy::new(|ruby| find(ruby.class_object(), "UNIXSocket"));

/// Finds the classes and objects that `lib/` or Ruby defines. `lib/` is loaded before the first engine is made.
pub(crate) fn find_all(ruby: &Ruby) {
    Lazy::force(&CLOSED_ERROR, ruby);
    Lazy::force(&FINISHED_ERROR, ruby);
    Lazy::force(&FORCED_SHUTDOWN, ruby);
    Lazy::force(&EMPTY_INPUT, ruby);
    Lazy::force(&KEPT_STREAMS, ruby);
    Lazy::force(&HANDOVER, ruby);
    for class in [&FILE_INPUT, &STRING_IO, &TCP_SOCKET, &UNIX_SOCKET] {
        Lazy::force(class, ruby);
    }
}

/// Looks up the class of `T`. magnus does this only once: if an interrupt hit that lookup, this process could never
/// make an object of the class.
pub(crate) fn know<T: TypedData>(ruby: &Ruby) {
    T::class(ruby);
}

/// A class of `Fairlead::Native`. Only the extension makes objects of it.
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
