//! Turns: several threads may write to one response, each a whole String at a time. Writing a String takes long if the
//! client is slow or if the String is compressed. Meanwhile the GVL is given up, and the response may end, so nothing
//! of it is borrowed then.

use crate::gvl::wait_without_gvl;
use crate::protect::{check_interrupts, protect};
use crate::rack::response_ref::Access;
use crate::rack::stop::Stop;
use fairlead_engine::{Gone, Wait};
use magnus::Ruby;
use rb_sys::{rb_thread_current, Qnil, VALUE};

/// This thread has the turn while this value lives.
pub(super) struct Turn<'a, A: Access>(&'a A);

enum Found {
    Free,
    Mine,
    Taken,
}

impl<'a, A: Access> Turn<'a, A> {
    /// Waits until it is this thread's turn.
    pub(super) fn take(access: &'a A) -> Result<Turn<'a, A>, Stop> {
        Self::wait_for(access, false)
    }

    /// Waits for the last turn of a response: a thread that asks later waits until the response is over.
    pub(super) fn take_last(access: &'a A) -> Result<Turn<'a, A>, Stop> {
        access.response(|response| response.ends.set(true))?;
        Self::wait_for(access, true)
    }

    fn wait_for(access: &'a A, is_last: bool) -> Result<Turn<'a, A>, Stop> {
        // SAFETY: the GVL is held, as there is access to a response.
        let this = unsafe { rb_thread_current() };
        loop {
            let found = access.response(|response| {
                let writer = response.writer.get();
                if writer == this {
                    return Found::Mine;
                }
                if writer != Qnil as VALUE || (response.ends.get() && !is_last) {
                    return Found::Taken;
                }
                response.writer.set(this);
                Found::Free
            })?;
            match found {
                Found::Free => return Ok(Turn(access)),
                Found::Mine => return Err(Stop::Busy),
                Found::Taken => wait_a_moment(access.ruby())?,
            }
        }
    }
}

impl<A: Access> Drop for Turn<'_, A> {
    fn drop(&mut self) {
        // If the response is over, no thread waits for a turn.
        let _ = self.0.response(|response| response.writer.set(Qnil as VALUE));
    }
}

/// Waits without the GVL until the client takes more.
pub(super) fn wait_for_client<A: Access>(access: &A) -> Result<(), Stop> {
    let wait = access.exchange(|exchange| exchange.wait())?;
    wait_with(access, wait)
}

/// Does the same for a wait that the last write has prepared.
pub(super) fn wait_with<A: Access>(access: &A, mut wait: Wait) -> Result<(), Stop> {
    wait_without_gvl(access.ruby(), || wait.run());
    let waited = access.exchange(|exchange| exchange.waited(wait));
    check_interrupts(access.ruby()).map_err(Stop::Jump)?;
    waited?.map(|_| ()).map_err(|Gone| Stop::Gone)
}

/// Writes bytes that cannot change, without the GVL; returns the number of written bytes. `None` if only
/// [`Exchange::write`](fairlead_engine::Exchange::write) can write them.
pub(super) fn write_apart<A: Access>(access: &A, bytes: &[u8]) -> Result<Option<usize>, Stop> {
    let write = access.exchange(|exchange| exchange.write_apart(bytes.len()))?;
    let Some(mut write) = write.map_err(|Gone| Stop::Gone)? else {
        return Ok(None);
    };
    wait_without_gvl(access.ruby(), || write.write(bytes));
    let written = access.exchange(|exchange| exchange.waited(write));
    check_interrupts(access.ruby()).map_err(Stop::Jump)?;
    written?.map(Some).map_err(|Gone| Stop::Gone)
}

/// Gives the kernel the bytes that it takes: without the GVL if spooled bytes must be read. The engine sends the rest
/// while the application works on.
pub(super) fn flush<A: Access>(access: &A) -> Result<(), Stop> {
    let apart = access.exchange(|exchange| match exchange.flush_apart() {
        Some(apart) => Ok(Some(apart)),
        None => exchange.flush().then_some(None).ok_or(Stop::Gone),
    })??;
    let Some(mut apart) = apart else { return Ok(()) };
    wait_without_gvl(access.ruby(), || apart.flush());
    let flushed = access.exchange(|exchange| {
        exchange.waited(apart)?;
        exchange.flush().then_some(()).ok_or(Gone)
    })?;
    flushed.map_err(|Gone| Stop::Gone)
}

/// Takes the bytes that wait for the client back from the body sender, without the GVL if it is sending, for the end of
/// the response.
pub(super) fn end_loan<A: Access>(access: &A) -> Result<(), Stop> {
    while access.exchange(|exchange| exchange.is_lent())? {
        wait_for_client(access)?;
    }
    Ok(())
}

/// Lets other threads run.
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
