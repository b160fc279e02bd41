//! `Fairlead::Native::Shared`: the scoreboard and the waiting room, made by the supervisor and inherited by its
//! workers.

use super::{statistics, system_error};
use fairlead_engine::pubsub::Bus;
use fairlead_engine::{Scoreboard, WaitingRoom, SLOTS};
use magnus::{function, method, prelude::*, Error, RHash, RModule, Ruby};
use rustix::mm::{mmap_anonymous, MapFlags, ProtFlags};
use std::sync::Arc;

#[magnus::wrap(class = "Fairlead::Native::Shared", free_immediately, size)]
pub(crate) struct Shared {
    scoreboard: &'static Scoreboard,
    waiting_room: Arc<WaitingRoom>,
    bus: Arc<Bus>,
    slots: usize,
}

pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Shared", ruby.class_object())?;
    class.define_singleton_method("new", function!(Shared::new, 2))?;
    class.define_method("add", method!(Shared::add, 1))?;
    class.define_method("introduce", method!(Shared::introduce, 0))?;
    class.define_method("reset", method!(Shared::reset, 1))?;
    class.define_method("beat", method!(Shared::beat, 1))?;
    class.define_method("heartbeat_age", method!(Shared::heartbeat_age, 1))?;
    class.define_method("stats", method!(Shared::stats, 0))
}

impl Shared {
    /// For up to `slots` workers, of which `workers` are about to be forked.
    fn new(ruby: &Ruby, slots: usize, workers: usize) -> Result<Shared, Error> {
        if slots > SLOTS || workers > slots {
            return Err(Error::new(
                ruby.exception_arg_error(),
                format!("at most {SLOTS} workers"),
            ));
        }
        let failed = |doing, error| system_error(ruby, doing, &error);
        let scoreboard = map_scoreboard().map_err(|error| failed("the scoreboard", error.into()))?;
        let room = WaitingRoom::new(scoreboard).map_err(|error| failed("the waiting room", error))?;
        let bus = Bus::new(scoreboard, workers).map_err(|error| failed("the mailboxes", error))?;
        let bus = Arc::new(bus);
        super::process::set_bus(&bus);
        Ok(Shared {
            scoreboard,
            waiting_room: Arc::new(room),
            bus,
            slots,
        })
    }

    /// Makes room for another worker; to be called before it is forked.
    fn add(ruby: &Ruby, this: &Shared, slot: usize) -> Result<(), Error> {
        this.check(ruby, slot)?;
        let added = this.bus.add(slot);
        added.map_err(|error| system_error(ruby, "a mailbox", &error))
    }

    /// Tells workers that were forked earlier about those that were added; to be called regularly.
    fn introduce(&self) {
        self.bus.introduce();
    }

    pub(crate) fn waiting_room(&self) -> Arc<WaitingRoom> {
        Arc::clone(&self.waiting_room)
    }

    /// Resets a slot for the next worker. The one before may have died while it put a request into the waiting room.
    fn reset(ruby: &Ruby, this: &Shared, slot: usize) -> Result<(), Error> {
        this.check(ruby, slot)?;
        this.scoreboard.slot(slot).reset();
        this.waiting_room.signal();
        Ok(())
    }

    /// Says that the worker of a slot is alive: called by one of its Ruby threads, so that a GVL that is never given up
    /// shows.
    fn beat(ruby: &Ruby, this: &Shared, slot: usize) -> Result<(), Error> {
        this.check(ruby, slot).map(|()| this.scoreboard.slot(slot).beat())
    }

    /// Seconds since the last beat; nil if there was none since the reset.
    fn heartbeat_age(ruby: &Ruby, this: &Shared, slot: usize) -> Result<Option<f64>, Error> {
        this.check(ruby, slot).map(|()| this.scoreboard.slot(slot).age())
    }

    fn check(&self, ruby: &Ruby, slot: usize) -> Result<(), Error> {
        if slot < self.slots {
            return Ok(());
        }
        Err(Error::new(
            ruby.exception_index_error(),
            format!("there is no slot {slot}; there are {}", self.slots),
        ))
    }

    /// The statistics of the waiting room and of every worker that has started.
    fn stats(ruby: &Ruby, this: &Shared) -> Result<RHash, Error> {
        let workers = ruby.ary_new();
        for index in 0..this.slots {
            let slot = this.scoreboard.slot(index);
            if slot.age().is_some() {
                workers.push(statistics::of_worker(ruby, index, slot)?)?;
            }
        }
        let stats = ruby.hash_new();
        stats.aset(ruby.to_symbol("room"), statistics::of_room(ruby, this.scoreboard)?)?;
        stats.aset(ruby.to_symbol("workers"), workers)?;
        Ok(stats)
    }
}

/// Maps a scoreboard that forked processes share. It is never unmapped: its users live as long as the process.
fn map_scoreboard() -> rustix::io::Result<&'static Scoreboard> {
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new anonymous mapping, page-aligned and full of zeros, is a valid Scoreboard (nothing but atomics), and
    // nobody unmaps it.
    unsafe {
        let address = mmap_anonymous(std::ptr::null_mut(), size_of::<Scoreboard>(), flags, MapFlags::SHARED)?;
        Ok(&*address.cast::<Scoreboard>())
    }
}
