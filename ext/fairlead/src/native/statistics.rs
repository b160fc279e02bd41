//! The statistics as Hashes. Names, order and texts come from the engine's tables.

use fairlead_engine::{Figure, Histogram, Kind, Scoreboard, Shown, Slot, Statistic, Stats};
use magnus::{function, prelude::*, Error, IntoValue, RHash, RModule, Ruby, Value};

/// Workers have always had these statistics first; the others follow in the order of the table.
const FIRST_OF_WORKER: [&str; 5] = ["connections", "clients", "queued", "busy_threads", "threads"];

pub(super) fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("statistics", function!(tables, 0))
}

/// The statistics of an engine of this process.
pub(super) fn of_engine(ruby: &Ruby, stats: &Stats) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    for (statistic, value) in stats.iter().filter(|(statistic, _)| is_of_engines(statistic)) {
        hash.aset(ruby.to_symbol(statistic.name), figure(ruby, value)?)?;
    }
    Ok(hash)
}

/// The statistics of a worker, as all processes of a server see them.
pub(super) fn of_worker(ruby: &Ruby, index: usize, slot: &Slot) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    hash.aset(ruby.to_symbol("slot"), index)?;
    for name in FIRST_OF_WORKER {
        hash.aset(ruby.to_symbol(name), 0)?;
    }
    let stats = slot.stats(slot);
    for (statistic, value) in stats.iter().filter(|(statistic, _)| is_of_workers(statistic)) {
        hash.aset(ruby.to_symbol(statistic.name), figure(ruby, value)?)?;
    }
    Ok(hash)
}

/// The statistics of the waiting room.
pub(super) fn of_room(ruby: &Ruby, scoreboard: &Scoreboard) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    for (statistic, value) in scoreboard.room() {
        hash.aset(ruby.to_symbol(statistic.name), value)?;
    }
    Ok(hash)
}

/// The histograms of all workers together, including replaced ones.
pub(super) fn of_waits(ruby: &Ruby, scoreboard: &Scoreboard) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    for (statistic, histogram) in scoreboard.times() {
        hash.aset(ruby.to_symbol(statistic.name), of_histogram(ruby, &histogram)?)?;
    }
    Ok(hash)
}

fn figure(ruby: &Ruby, figure: Figure) -> Result<Value, Error> {
    Ok(match figure {
        Figure::Number(number) => number.into_value_with(ruby),
        Figure::Histogram(histogram) => of_histogram(ruby, &histogram)?.as_value(),
    })
}

/// `{count:, seconds:, buckets: {bound in seconds => number of values up to that}}`
fn of_histogram(ruby: &Ruby, histogram: &Histogram) -> Result<RHash, Error> {
    let (hash, buckets) = (ruby.hash_new(), ruby.hash_new());
    for (bound, count) in histogram.buckets() {
        buckets.aset(bound, count)?;
    }
    hash.aset(ruby.to_symbol("count"), histogram.count())?;
    hash.aset(ruby.to_symbol("seconds"), histogram.seconds())?;
    hash.aset(ruby.to_symbol("buckets"), buckets)?;
    Ok(hash)
}

/// The names, kinds and texts of the statistics for each key of `Fairlead.stats`.
fn tables(ruby: &Ruby) -> Result<RHash, Error> {
    let all = Statistic::all().iter().copied();
    let hash = ruby.hash_new();
    hash.aset(
        ruby.to_symbol("engines"),
        table(ruby, all.clone().filter(is_of_engines))?,
    )?;
    hash.aset(ruby.to_symbol("room"), table(ruby, Scoreboard::room_statistics())?)?;
    hash.aset(ruby.to_symbol("workers"), table(ruby, all.filter(is_of_workers))?)?;
    Ok(hash)
}

fn table(ruby: &Ruby, statistics: impl Iterator<Item = Statistic>) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    for statistic in statistics {
        let kind = match statistic.kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        hash.aset(ruby.to_symbol(statistic.name), (ruby.to_symbol(kind), statistic.help))?;
    }
    Ok(hash)
}

fn is_of_engines(statistic: &Statistic) -> bool {
    statistic.shown != Shown::Nowhere
}

fn is_of_workers(statistic: &Statistic) -> bool {
    statistic.shown == Shown::Everywhere
}
