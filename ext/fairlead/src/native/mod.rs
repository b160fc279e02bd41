//! `Fairlead::Native`: what `lib/` sees of the extension.

pub(crate) mod client;
mod engine;
pub(crate) mod process;
mod settings;
mod shared;

use magnus::{function, prelude::*, Error, Exception, ExceptionClass, Ruby};

/// Defines the module and its classes.
pub(crate) fn init(ruby: &Ruby) -> Result<(), Error> {
    let fairlead = ruby.define_module("Fairlead")?;
    let native = fairlead.define_module("Native")?;
    native.define_singleton_method("load_test", function!(load_test, 1))?;
    native.define_singleton_method("open_file_limit!", function!(raise_open_file_limit, 0))?;
    crate::answer::init(ruby, native)?;
    crate::hijack::init(ruby, native)?;
    client::init(ruby, fairlead)?;
    process::init(ruby, native)?;
    shared::init(ruby, native)?;
    engine::init(ruby, native)
}

/// What the system has refused as Ruby knows it: `Errno::EMFILE` and the like. `doing`: what it was for.
pub(super) fn system_error(ruby: &Ruby, doing: &str, error: &std::io::Error) -> Error {
    let Some(number) = error.raw_os_error() else {
        return Error::new(ruby.exception_runtime_error(), format!("{doing}: {error}"));
    };
    let made: Result<Exception, Error> = ruby
        .class_object()
        .const_get::<_, ExceptionClass>("SystemCallError")
        .and_then(|class| class.funcall("new", (doing, number)));
    made.map_or_else(|error| error, Error::from)
}

/// Runs the load tool (crate `load`) without the GVL; returns its exit status.
fn load_test(arguments: Vec<String>) -> i32 {
    struct Call(Vec<String>, i32);

    unsafe extern "C" fn run(call: *mut std::ffi::c_void) -> *mut std::ffi::c_void {
        // SAFETY: the address of the `Call` below, which outlives rb_nogvl.
        let call = unsafe { &mut *call.cast::<Call>() };
        call.1 = std::panic::catch_unwind(|| fairlead_load::main(&call.0)).unwrap_or(70);
        std::ptr::null_mut()
    }

    unsafe extern "C" fn stop(_: *mut std::ffi::c_void) {
        fairlead_load::stop();
    }

    let mut call = Call(arguments, 0);
    let data = (&mut call as *mut Call).cast();
    // SAFETY: the GVL is held (a Ruby method runs); both functions have the right signatures and neither panics. INTR_FAIL:
    // no exception passes through this frame.
    unsafe {
        rb_sys::rb_nogvl(
            Some(run),
            data,
            Some(stop),
            std::ptr::null_mut(),
            rb_sys::RB_NOGVL_INTR_FAIL as i32,
        );
    }
    call.1
}

/// Raises the soft limit of open files to the hard one; returns the limit, or nil when there is none.
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
