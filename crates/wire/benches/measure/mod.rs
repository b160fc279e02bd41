//! Times a call: the fastest of many rounds, in nanoseconds, to compare two versions of the code on one machine. The
//! results cannot be compared across machines.

use std::time::Instant;

/// Prints the time that `call` takes.
pub(crate) fn measure(what: &str, mut call: impl FnMut()) {
    const ROUNDS: usize = 300;
    /// Least duration of a round, so that the cost of reading the clock does not matter.
    const ROUND_NANOSECONDS: f64 = 1e6;
    let mut timed = |calls: u32| {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    };
    let calls = (ROUND_NANOSECONDS / timed(100)).clamp(10.0, 10_000.0) as u32;
    let fastest = (0..ROUNDS).map(|_| timed(calls)).fold(f64::INFINITY, f64::min);
    println!("{what:<60} {fastest:>9.0} ns");
}
