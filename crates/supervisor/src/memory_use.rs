//! The memory of the server's processes: their proportional set size (PSS), in which shared pages are divided among
//! the processes that have them. The kernel walks through the page tables for it, so a thread reads it, only if somebody asks,
//! and at most once in a few seconds.

use crate::background::Background;
use crate::control::{MemoryOf, ProcessMemory};
use crate::process_memory;
use std::time::{Duration, Instant};

/// Shortest time between two samples.
const INTERVAL: Duration = Duration::from_secs(5);

/// Age from which on a sample says nothing.
const STALE: Duration = Duration::from_secs(20);

/// Time for which samples are made after a question: longer than the usual interval of Prometheus.
const INTEREST: Duration = Duration::from_secs(90);

/// A process to look at.
pub type Process = (MemoryOf, i32);

/// See the head of this file.
#[derive(Default)]
pub struct MemoryUse {
    reader: Option<Background<Vec<ProcessMemory>>>,
    sample: Vec<ProcessMemory>,
    /// The start of the last sample, and the time at which it was there.
    began: Option<Instant>,
    ended: Option<Instant>,
    /// The last time at which somebody asked.
    asked: Option<Instant>,
}

impl MemoryUse {
    /// True if somebody has asked lately, and [`MemoryUse::tend`] should begin a new sample.
    pub fn is_due(&self) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() < INTEREST) && self.is_old()
    }

    fn is_old(&self) -> bool {
        self.began.is_none_or(|began| began.elapsed() >= INTERVAL)
    }

    /// The last sample, without processes that have ended since; empty if it is too old, because nobody has asked or a process
    /// does not answer.
    pub fn look(&mut self, processes: Vec<Process>) -> Vec<ProcessMemory> {
        self.asked = Some(Instant::now());
        self.tend(processes)
    }

    /// Begins a new sample if the last one is old. Returns the last one.
    pub fn tend(&mut self, processes: Vec<Process>) -> Vec<ProcessMemory> {
        if let Some(sample) = self.reader.as_mut().and_then(|reader| reader.results().pop()) {
            self.sample = sample;
            self.ended = Some(Instant::now());
        }
        if self.ended.is_some_and(|ended| ended.elapsed() > STALE) {
            self.sample.clear();
        }
        let lives = |memory: &&ProcessMemory| processes.iter().any(|(process, _)| *process == memory.of);
        let sample = self.sample.iter().filter(lives).copied().collect();
        if self.is_old() {
            self.begin(processes);
        }
        sample
    }

    fn begin(&mut self, processes: Vec<Process>) {
        if self.reader.is_none() {
            self.reader = Background::new("fairlead memory").ok();
        }
        let Some(reader) = self.reader.as_mut().filter(|reader| reader.is_idle()) else {
            return;
        };
        self.began = Some(Instant::now());
        let _ = reader.run(move || processes.into_iter().filter_map(measure).collect());
    }
}

/// `None` if the process has ended, or if the kernel does not let this one see it.
fn measure((of, pid): Process) -> Option<ProcessMemory> {
    let bytes = process_memory::proportional(pid).ok()?;
    Some(ProcessMemory { of, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_comes_with_a_later_call_and_forgets_processes_that_have_ended() {
        let (own, other) = (MemoryOf::Supervisor, MemoryOf::Spawner { generation: 1 });
        let pid = std::process::id() as i32;
        let mut memory = MemoryUse::default();
        assert_eq!(memory.look(vec![(own, pid), (other, pid)]), []);
        let began = Instant::now();
        let sample = loop {
            let sample = memory.look(vec![(own, pid), (other, pid)]);
            if !sample.is_empty() {
                break sample;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "no sample");
            std::thread::yield_now();
        };
        let found: Vec<_> = sample.iter().map(|memory| memory.of).collect();
        assert_eq!(found, [own, other]);
        assert!(sample[0].bytes > 100 * 1024, "{sample:?}");
        let left = memory.look(vec![(own, pid)]);
        assert_eq!(left.iter().map(|memory| memory.of).collect::<Vec<_>>(), [own]);
    }

    #[test]
    fn a_process_that_is_gone_has_no_memory() {
        assert_eq!(measure((MemoryOf::Supervisor, i32::MAX)), None);
    }
}
