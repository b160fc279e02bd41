//! A whole run: resolves the target, starts the threads, merges their measurements.

use crate::clock::{nanos, Clock, Nanos};
use crate::http2;
use crate::latencies::expected_interval;
use crate::limits::allow_open_files;
use crate::options::{names, Options};
use crate::pacing::Pacing;
use crate::progress::Progress;
use crate::request::wires;
use crate::tally::Tally;
use crate::tls::{Alpn, Tls};
use crate::worker::{Ending, Plan, Requests, Worker};
use rustix::io;
use rustix::net::SocketAddrAny;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// Measurements of a run.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) tally: Tally,
    /// Time measured, without the warm-up.
    pub(crate) elapsed: Nanos,
    pub(crate) expected_interval: Option<Nanos>,
    /// `stop` was called before the end.
    pub(crate) stopped: bool,
    /// Ended early because no more responses came.
    pub(crate) gave_up: bool,
}

impl Measured {
    /// Returns `true` if every response was 2xx or 3xx, and no request failed.
    pub(crate) fn is_good(&self) -> bool {
        self.tally.answered() > 0 && self.tally.failed() == 0 && self.tally.refusals() == 0 && !self.gave_up
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.elapsed as f64 / 1e9
    }

    /// `count` per second measured.
    pub(crate) fn per_second(&self, count: u64) -> f64 {
        if self.elapsed == 0 {
            0.0
        } else {
            count as f64 / self.seconds()
        }
    }
}

/// Runs until the end that `options` set, or until `stop` is set. The error is one line for the user.
pub(crate) fn run(options: &Options, stop: &AtomicBool) -> Result<Measured, String> {
    let addresses = options.url.endpoint.resolve()?;
    allow_open_files(options.connections)?;
    run_against(options, &addresses, stop)
}

fn run_against(options: &Options, addresses: &[SocketAddrAny], stop: &AtomicBool) -> Result<Measured, String> {
    let (alpn, requests) = match options.http2 {
        None => (Alpn::Http1, Requests::Http1(wires(options))),
        Some(_) => (Alpn::Http2, Requests::Http2(http2::requests(options)?)),
    };
    let tls = Tls::new(options.tls.as_ref(), &options.url, alpn)?;
    let pacing = Pacing::new(options);
    let progress = Progress::new(options.quiet);
    let plan = Plan {
        options,
        addresses,
        tls: tls.as_ref(),
        requests: &requests,
        pacing: &pacing,
        progress: &progress,
        stop,
        clock: Clock::start(),
    };
    let results = run_threads(&plan);
    progress.clear();
    let results = results.map_err(|error| format!("cannot run: {error}"))?;
    put_together(&plan, results)
}

type Thread = (Tally, Nanos, Ending);

/// The calling thread is one of the threads.
fn run_threads(plan: &Plan<'_>) -> io::Result<Vec<Thread>> {
    let start = |own| Worker::new(plan, own)?.run();
    std::thread::scope(|scope| {
        let mut shares = shares(plan.options.connections, plan.options.threads);
        let first = shares.next();
        let others: Vec<_> = shares.map(|own| scope.spawn(move || start(own))).collect();
        let mut results: Vec<Thread> = first.map(start).into_iter().collect::<io::Result<_>>()?;
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(results)
    })
}

/// The connections of each thread; the shares differ by at most one.
fn shares(connections: usize, threads: usize) -> impl Iterator<Item = Range<usize>> {
    (0..threads).map(move |thread| thread * connections / threads..(thread + 1) * connections / threads)
}

fn put_together(plan: &Plan<'_>, results: Vec<Thread>) -> Result<Measured, String> {
    let mut tally = Tally::new(
        Vec::new(),
        plan.options.http2.as_ref().map_or(0, Vec::len),
        plan.options.rate.is_some(),
        names(&plan.options.mix).len(),
    );
    let mut ended = 0;
    for (part, end, _) in &results {
        tally.merge(part);
        ended = ended.max(*end);
    }
    let any = |wanted: fn(&Ending) -> bool| results.iter().any(|(_, _, ending)| wanted(ending));
    let stopped = any(|ending| *ending == Ending::Stopped);
    if tally.opened == 0 && !stopped {
        let why = results.iter().find_map(|(_, _, ending)| match ending {
            Ending::Unreachable(why) => Some(why.clone()),
            _ => None,
        });
        let why = why.or_else(|| tally.handshakes.reasons.into_keys().next());
        let why = why.unwrap_or_else(|| format!("no connection within {:.1} s", ended as f64 / 1e9));
        return Err(format!("cannot connect to {}: {why}", plan.options.url.text));
    }
    tally.unsent += plan.pacing.left();
    let elapsed = ended.saturating_sub(nanos(plan.options.warmup));
    let expected_interval = match plan.options.http2 {
        None => expected_interval(&tally.connections, plan.options.pipeline, elapsed),
        Some(_) => expected_interval(&tally.streams.concat(), 1, elapsed),
    };
    let gave_up = any(|ending| *ending == Ending::GaveUp);
    Ok(Measured {
        tally,
        elapsed,
        expected_interval,
        stopped,
        gave_up,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::options;
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, TcpListener};

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        (listener, address)
    }

    #[test]
    fn addresses_are_tried_until_one_answers() {
        let ((_, dead), (listener, live)) = (listener(), listener());
        let server = std::thread::spawn(move || {
            let (client, _) = listener.accept()?;
            for line in BufReader::new(&client).lines() {
                if line?.is_empty() {
                    (&client).write_all(b"HTTP/1.1 204 None\r\n\r\n")?;
                }
            }
            std::io::Result::Ok(())
        });
        let options = options(&["http://localhost/", "-n", "3", "-c", "1", "-q"]);
        let measured = run_against(&options, &[dead.into(), live.into()], &AtomicBool::new(false)).expect("reachable");
        assert!(measured.is_good(), "{measured:?}");
        assert_eq!((measured.tally.answered(), measured.tally.opened), (3, 1));
        server.join().expect("no panic").expect("served");
    }

    #[test]
    fn threads_share_the_connections_evenly_and_completely() {
        for (connections, threads) in [(1, 1), (10, 3), (7, 7), (100, 8)] {
            let shares: Vec<Range<usize>> = shares(connections, threads).collect();
            let lengths: Vec<usize> = shares.iter().map(|own| own.len()).collect();
            assert_eq!(
                shares.into_iter().flatten().collect::<Vec<_>>(),
                (0..connections).collect::<Vec<_>>()
            );
            assert!(
                lengths.iter().max() <= lengths.iter().min().map(|least| least + 1).as_ref(),
                "{lengths:?}"
            );
        }
    }
}
