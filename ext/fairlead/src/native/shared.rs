//! `Fairlead::Native::Shared`: the scoreboard, the waiting room and the mailboxes, made by the supervisor and inherited
//! by its workers. A process that is not forked but started anew adopts them by their descriptors.

use super::{statistics, system_error};
use fairlead_engine::{Scoreboard, SharedQueues, TicketKeys};
use fairlead_shared_memory::SharedMemory;
use magnus::{function, method, prelude::*, Error, RArray, RHash, RModule, Ruby};
use rustix::io::{fcntl_dupfd_cloexec, Errno};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

#[magnus::wrap(class = "Fairlead::Native::Shared", free_immediately, size)]
pub(crate) struct Shared {
    memory: SharedMemory,
    slots: usize,
}

pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Shared", ruby.class_object())?;
    crate::classes::know::<Shared>(ruby);
    class.define_singleton_method("new", function!(Shared::new, 3))?;
    class.define_singleton_method("adopt", function!(Shared::adopt, 2))?;
    class.define_singleton_method("beside", function!(Shared::beside, 3))?;
    class.const_set("LAYOUT", SharedMemory::layout())?;
    class.const_set("DESCRIPTORS", SharedMemory::DESCRIPTORS)?;
    class.define_method("descriptors", method!(Shared::descriptors, 0))?;
    class.define_method("adopt_mailbox", method!(Shared::adopt_mailbox, 2))?;
    class.define_method("beat", method!(Shared::beat, 1))?;
    class.define_method("stats", method!(Shared::stats, 0))
}

impl Shared {
    /// Makes the memory for up to `slots` workers, of which `workers` are about to be forked. `history_bytes`: of the history,
    /// or 0.
    fn new(ruby: &Ruby, slots: usize, workers: usize, history_bytes: usize) -> Result<Shared, Error> {
        if slots > SharedMemory::slots() || workers > slots {
            let text = format!("too many workers; use at most {}", SharedMemory::slots());
            return Err(Error::new(ruby.exception_arg_error(), text));
        }
        let memory = SharedMemory::with_history(workers, history_bytes);
        let memory = memory.map_err(|error| system_error(ruby, "the memory that workers share", &error))?;
        Ok(Shared::of(memory, slots))
    }

    /// `adopt(slots, descriptors)`: the memory of another process with the same LAYOUT, from the result of
    /// `descriptors` in that process. The mailboxes follow one by one.
    fn adopt(ruby: &Ruby, slots: usize, descriptors: RArray) -> Result<Shared, Error> {
        let failed = |error: std::io::Error| system_error(ruby, "the memory that workers share", &error);
        let copies = copies(descriptors.to_array()?).map_err(|error| failed(error.into()))?;
        let memory = SharedMemory::adopt(copies).map_err(failed)?;
        Ok(Shared::of(memory, slots))
    }

    /// `beside(slots, history_bytes, history)`: makes the memory beside the memory of another release. `history`: the second one of
    /// its `descriptors`, or nil. Shares it, if both releases have the same format.
    fn beside(ruby: &Ruby, slots: usize, history_bytes: usize, history: Option<RawFd>) -> Result<Shared, Error> {
        let failed = |error: std::io::Error| system_error(ruby, "the memory that workers share", &error);
        let memory = match history {
            None => SharedMemory::with_history(0, history_bytes),
            Some(history) => {
                let [history] = copies([history]).map_err(|error| failed(error.into()))?;
                SharedMemory::beside(history, history_bytes)
            }
        };
        Ok(Shared::of(memory.map_err(failed)?, slots))
    }

    fn of(memory: SharedMemory, slots: usize) -> Shared {
        super::process::set_bus(memory.bus());
        Shared { memory, slots }
    }

    /// The descriptor numbers that another process needs to adopt this memory; they stay open as long as this object.
    fn descriptors(ruby: &Ruby, this: &Shared) -> RArray {
        let all = this.memory.descriptors();
        ruby.ary_from_iter(all.map(|descriptor| descriptor.as_raw_fd()))
    }

    /// `adopt_mailbox(slot, descriptors)`: the mailbox of another process, from the result of `mailbox` in that
    /// process.
    fn adopt_mailbox(ruby: &Ruby, this: &Shared, slot: usize, descriptors: RArray) -> Result<(), Error> {
        this.check(ruby, slot)?;
        let copies = copies(descriptors.to_array()?).map_err(|error| system_error(ruby, "a mailbox", &error.into()))?;
        this.memory.bus().adopt(slot, copies);
        Ok(())
    }

    /// The keys that encrypt the session tickets of all workers.
    pub(super) fn ticket_keys(&self) -> &'static TicketKeys {
        &self.memory.scoreboard().ticket_keys
    }

    pub(super) fn scoreboard(&self) -> &'static Scoreboard {
        self.memory.scoreboard()
    }

    pub(crate) fn queues(&self) -> Arc<SharedQueues> {
        Arc::clone(self.memory.queues())
    }

    /// Says that the worker of a slot is alive. One of its Ruby threads calls this, so a GVL that is never given up is
    /// noticed.
    fn beat(ruby: &Ruby, this: &Shared, slot: usize) -> Result<(), Error> {
        this.check(ruby, slot)
            .map(|()| this.memory.scoreboard().slot(slot).beat())
    }

    fn check(&self, ruby: &Ruby, slot: usize) -> Result<(), Error> {
        if slot < self.slots {
            return Ok(());
        }
        Err(Error::new(
            ruby.exception_index_error(),
            format!("unknown slot {slot}; there are {} slots", self.slots),
        ))
    }

    /// The statistics of the waiting room and of every worker that has started.
    fn stats(ruby: &Ruby, this: &Shared) -> Result<RHash, Error> {
        let workers = ruby.ary_new();
        for index in 0..this.slots {
            let slot = this.memory.scoreboard().slot(index);
            if slot.age().is_some() {
                workers.push(statistics::of_worker(ruby, index, slot)?)?;
            }
        }
        let stats = ruby.hash_new();
        stats.aset(
            ruby.to_symbol("room"),
            statistics::of_room(ruby, this.memory.scoreboard())?,
        )?;
        stats.aset(ruby.to_symbol("workers"), workers)?;
        stats.aset(
            ruby.to_symbol("waits"),
            statistics::of_waits(ruby, this.memory.scoreboard())?,
        )?;
        Ok(stats)
    }
}

/// Copies of descriptors that belong to objects of Ruby.
pub(super) fn copies<const N: usize>(numbers: [RawFd; N]) -> rustix::io::Result<[OwnedFd; N]> {
    let mut copies = [const { None }; N];
    for (copy, number) in copies.iter_mut().zip(numbers) {
        if number < 0 {
            return Err(Errno::BADF);
        }
        // SAFETY: used for the copy alone; if the number is not an open descriptor, the system says so.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        *copy = Some(fcntl_dupfd_cloexec(descriptor, 0)?);
    }
    Ok(copies.map(|copy| copy.expect("each was filled")))
}
