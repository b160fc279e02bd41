//! Bodies that the server compresses. Their bytes are first copied, and then compressed without the GVL, because other
//! threads may change the Strings meanwhile.

use super::body::{each_part, string_bytes};
use super::turn::wait_for_client;
use super::Response;
use crate::gvl::wait_without_gvl;
use crate::rack::response_ref::Access;
use crate::rack::stop::Stop;
use fairlead_engine::{Coding, Gone, Until};
use rb_sys::VALUE;

/// Most bytes that are copied at a time.
const PIECE: usize = 256 * 1024;

/// A body up to this size is compressed before the head is ended, so that the head has its length.
const WHOLE: u64 = 1024 * 1024;

/// Ends the head and writes the Strings of an Array; they are checked already and have `total` bytes. Inside `protect`.
pub(super) fn write_array(response: &Response<'_, '_>, array: VALUE, total: u64, coding: Coding) -> Result<(), Stop> {
    response.with(|exchange| exchange.start_coding(coding));
    if total > WHOLE || total == 0 {
        let wants_body = response.with(|exchange| {
            exchange.end_head_coded(false);
            exchange.wants_body()
        });
        if !wants_body {
            return Ok(());
        }
        each_part(response.ruby, array, |part| put(response, part, Until::Convenient))?;
        return finish(response);
    }
    each_part(response.ruby, array, |part| {
        // SAFETY: no Ruby runs while the Strings are copied.
        response.with(|exchange| exchange.add_plain(unsafe { string_bytes(response.ruby, part) }));
        Ok(())
    })?;
    run(response, Until::Finished)?;
    response.with(|exchange| exchange.end_head_coded(true));
    write_coded(response)
}

/// Writes one String. The caller must have the turn: while the coder works, the response has none.
pub(super) fn put<A: Access>(access: &A, string: VALUE, until: Until) -> Result<(), Stop> {
    let mut done = 0;
    loop {
        // SAFETY: the String is on the stack; its bytes are fetched again after each wait, in which another thread may
        // have changed it.
        let all = unsafe { string_bytes(access.ruby(), string) };
        let rest = all.get(done..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        let piece = &rest[..rest.len().min(PIECE)];
        done += piece.len();
        access.exchange(|exchange| exchange.add_plain(piece))?;
        run(access, until)?;
        write_coded(access)?;
    }
}

/// Ends the body.
pub(super) fn finish<A: Access>(access: &A) -> Result<(), Stop> {
    run(access, Until::Finished)?;
    write_coded(access)
}

fn run<A: Access>(access: &A, until: Until) -> Result<(), Stop> {
    let Some(mut coder) = access.exchange(|exchange| exchange.take_coder())? else {
        return Ok(());
    };
    let mut has_run = false;
    wait_without_gvl(access.ruby(), || {
        has_run = true;
        coder.run(until);
    });
    // Ruby wanted this thread back before the coder began; Ruby gets the thread once the piece is done.
    if !has_run {
        coder.run(until);
    }
    access.exchange(|exchange| exchange.give_back_coder(coder))
}

fn write_coded<A: Access>(access: &A) -> Result<(), Stop> {
    loop {
        let is_written = access.exchange(|exchange| exchange.write_coded())?;
        if is_written.map_err(|Gone| Stop::Gone)? {
            return Ok(());
        }
        wait_for_client(access)?;
    }
}
