//! Turns: several threads may write to one response, each a whole String at a time. A String takes long when the client does, or
//! when it is compressed; meanwhile the GVL is given up, and the response may end. So nothing of it is held while one waits.

use crate::gvl::wait_without_gvl;
use crate::protect::{check_interrupts, protect};
use crate::rack::loan::Way;
use crate::rack::stop::Stop;
use fairlead_engine::{Gone, Wait};
use magnus::Ruby;
use rb_sys::{rb_thread_current, Qnil, VALUE};

/// Whose turn it is, while this lives: this thread's.
pub(super) struct Turn<'a, W: Way>(&'a W);

enum Found {
    Free,
    Mine,
    Taken,
}

impl<'a, W: Way> Turn<'a, W> {
    /// Waits for the turn of this thread.
    pub(super) fn take(way: &'a W) -> Result<Turn<'a, W>, Stop> {
        Self::take_if(way, |is_last| !is_last)
    }

    /// Waits for the last turn of a response: who comes later waits until the response is over.
    pub(super) fn take_last(way: &'a W) -> Result<Turn<'a, W>, Stop> {
        way.response(|response| response.ends.set(true))?;
        Self::take_if(way, |_| true)
    }

    fn take_if(way: &'a W, may: impl Fn(bool) -> bool) -> Result<Turn<'a, W>, Stop> {
        // SAFETY: the GVL is held, as there is a way.
        let this = unsafe { rb_thread_current() };
        loop {
            let found = way.response(|response| {
                let writer = response.writer.get();
                if writer == this {
                    return Found::Mine;
                }
                if writer != Qnil as VALUE || !may(response.ends.get()) {
                    return Found::Taken;
                }
                response.writer.set(this);
                Found::Free
            })?;
            match found {
                Found::Free => return Ok(Turn(way)),
                Found::Mine => return Err(Stop::Busy),
                Found::Taken => wait_a_moment(way.ruby())?,
            }
        }
    }
}

impl<W: Way> Drop for Turn<'_, W> {
    fn drop(&mut self) {
        // A response that is over has no turns.
        let _ = self.0.response(|response| response.writer.set(Qnil as VALUE));
    }
}

/// Waits without the GVL until the client takes more.
pub(super) fn wait_for_client<W: Way>(way: &W) -> Result<(), Stop> {
    let wait = way.exchange(|exchange| exchange.wait())?;
    wait_with(way, wait)
}

/// The same with a wait that has been prepared.
pub(super) fn wait_with<W: Way>(way: &W, mut wait: Wait) -> Result<(), Stop> {
    wait_without_gvl(way.ruby(), || wait.run());
    let waited = way.exchange(|exchange| exchange.waited(wait));
    check_interrupts(way.ruby()).map_err(Stop::Jump)?;
    waited?.map(|_| ()).map_err(|Gone| Stop::Gone)
}

/// Writes without the GVL bytes that nobody can change; returns how many.
pub(super) fn write_apart<W: Way>(way: &W, bytes: &[u8]) -> Result<usize, Stop> {
    let write = way.exchange(|exchange| exchange.write_apart(bytes.len()))?;
    let mut write = write.map_err(|Gone| Stop::Gone)?;
    wait_without_gvl(way.ruby(), || write.write(bytes));
    let written = way.exchange(|exchange| exchange.waited(write));
    check_interrupts(way.ruby()).map_err(Stop::Jump)?;
    written?.map_err(|Gone| Stop::Gone)
}

/// Hands the kernel what it takes; what is spooled without the GVL.
pub(super) fn flush<W: Way>(way: &W) -> Result<(), Stop> {
    let apart = way.exchange(|exchange| match exchange.flush_apart() {
        Some(apart) => Ok(Some(apart)),
        None => exchange.flush().then_some(None).ok_or(Stop::Gone),
    })??;
    let Some(mut apart) = apart else { return Ok(()) };
    wait_without_gvl(way.ruby(), || apart.flush());
    let flushed = way.exchange(|exchange| exchange.waited(apart))?;
    flushed.map(|_| ()).map_err(|Gone| Stop::Gone)
}

/// Lets other threads get on.
fn wait_a_moment(ruby: &Ruby) -> Result<(), Stop> {
    // SAFETY: the GVL is held, exceptions are stopped.
    protect(ruby, || unsafe {
        rb_sys::rb_thread_wait_for(rb_sys::timeval {
            tv_sec: 0,
            tv_usec: 1_000,
        });
    })
    .map_err(Stop::Jump)
}
