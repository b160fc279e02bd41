//! `Fairlead::Native`: the extension's interface for `lib/`.

mod engine;
mod held_back;
pub(crate) mod process;
mod program;
pub(crate) mod requests;
mod settings;
mod shared;
mod signals;
mod statistics;
mod supervisor;
mod tls;

use magnus::{function, prelude::*, Error, Exception, ExceptionClass, Ruby};

/// Defines the module and its classes.
pub(crate) fn init(ruby: &Ruby) -> Result<(), Error> {
    let fairlead = ruby.define_module("Fairlead")?;
    let native = fairlead.define_module("Native")?;
    native.define_singleton_method("open_file_limit!", function!(raise_open_file_limit, 0))?;
    native.define_singleton_method("connections_within", function!(connections_within, 2))?;
    native.define_singleton_method("adopt_orphans!", function!(adopt_orphans, 0))?;
    native.define_singleton_method("release_stack!", function!(crate::memory::release_stack, 0))?;
    native.define_singleton_method("spare_collections!", function!(crate::memory::spare_collections, 0))?;
    native.define_singleton_method("trim_memory!", function!(crate::memory::trim, 0))?;
    native.define_singleton_method("portable?", function!(is_portable, 0))?;
    native.define_singleton_method("watch_end!", function!(crate::process_end::watch, 0))?;
    native.define_singleton_method("end_begun?", function!(crate::process_end::has_begun, 0))?;
    crate::rack::init(ruby)?;
    crate::realtime::init(ruby, fairlead)?;
    process::init(native)?;
    program::init(native)?;
    requests::init(native)?;
    shared::init(ruby, native)?;
    statistics::init(native)?;
    supervisor::init(ruby, native)?;
    tls::init(ruby, native)?;
    engine::init(ruby, native)
}

/// An error of a system call as Ruby raises it: `Errno::EMFILE` and the like, or `ThreadError` if there is no room for a thread: no other call
/// of this crate fails with `EAGAIN`. `doing`: the purpose of the call.
pub(super) fn system_error(ruby: &Ruby, doing: &str, error: &std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::WouldBlock {
        return Error::new(
            ruby.exception_thread_error(),
            format!("can't create Thread: {doing}: {error}"),
        );
    }
    let Some(number) = error.raw_os_error().or_else(|| number_of(error.kind())) else {
        return Error::new(ruby.exception_runtime_error(), format!("{doing}: {error}"));
    };
    let made: Result<Exception, Error> = ruby
        .class_object()
        .const_get::<_, ExceptionClass>("SystemCallError")
        .and_then(|class| class.funcall("new", (doing, number)));
    made.map_or_else(|error| error, Error::from)
}

/// The number of an error that has a text of its own in place of it.
fn number_of(kind: std::io::ErrorKind) -> Option<i32> {
    use rustix::io::Errno;
    let error = match kind {
        std::io::ErrorKind::NotFound => Errno::NOENT,
        std::io::ErrorKind::PermissionDenied => Errno::ACCESS,
        std::io::ErrorKind::StorageFull => Errno::NOSPC,
        _ => return None,
    };
    Some(error.raw_os_error())
}

/// Raises the soft limit of open files to the hard one; returns the limit, or nil if there is none.
fn raise_open_file_limit() -> Option<u64> {
    use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
    getrlimit(Resource::Nofile).current
}

/// Number of connections that a process may have of `asked`, if it may have `limit` open files.
fn connections_within(limit: u64, asked: usize) -> usize {
    fairlead_engine::Descriptors::with_limit(limit, asked).most_connections()
}

/// Makes this process the parent of descendants that lose their parent. False if the system does not support this.
fn adopt_orphans() -> bool {
    fairlead_system::processes::adopt_orphans(true)
}

/// True if this build does not use the facilities of Linux (docs/porting.md).
fn is_portable() -> bool {
    fairlead_system::IS_PORTABLE
}
