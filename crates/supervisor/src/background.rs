//! Work that can block: a disk or a folder that hangs must not stop the loop.

use fairlead_system::wake_up;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

type Job<T> = Box<dyn FnOnce() -> T + Send>;

/// A thread that runs one job after the other, and results for the loop.
///
/// The thread lives as long as the process, because a child that it has started may get a signal when the thread ends
/// (PR_SET_PDEATHSIG). If a job hangs, its thread is abandoned and a new one started.
pub struct Background<T: Send + 'static> {
    name: &'static str,
    jobs: Option<Sender<Job<T>>>,
    results: (Sender<T>, Receiver<T>),
    bell: Arc<OwnedFd>,
    /// Jobs without a result, of the current thread.
    open: usize,
    /// Jobs without a result, of all threads.
    under_way: usize,
}

impl<T: Send + 'static> Background<T> {
    /// Starts the thread now if that is possible, otherwise with the first job.
    ///
    /// # Errors
    /// If there is no descriptor.
    pub fn new(name: &'static str) -> io::Result<Background<T>> {
        let bell = wake_up::open()?;
        let mut background = Background {
            name,
            jobs: None,
            results: channel(),
            bell: Arc::new(bell),
            open: 0,
            under_way: 0,
        };
        let _ = background.start();
        Ok(background)
    }

    /// Runs `job` on the thread.
    ///
    /// # Errors
    /// If there is no thread, and none can be started.
    pub fn run(&mut self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<()> {
        let mut job: Job<T> = Box::new(job);
        if let Some(jobs) = &self.jobs {
            match jobs.send(job) {
                Ok(()) => {
                    self.open += 1;
                    self.under_way += 1;
                    return Ok(());
                }
                Err(unsent) => job = unsent.0,
            }
        }
        let jobs = self.start()?;
        self.open = 1;
        self.under_way += 1;
        jobs.send(job).map_err(|_| io::Error::other("the thread has ended"))
    }

    /// Abandons a thread that does not respond: the next job gets a new one.
    pub fn abandon(&mut self) {
        if self.open > 0 {
            self.jobs = None;
            self.open = 0;
        }
    }

    /// The results that have arrived, including results of abandoned threads.
    pub fn results(&mut self) -> Vec<T> {
        wake_up::take(&*self.bell);
        let results: Vec<T> = self.results.1.try_iter().collect();
        self.open = self.open.saturating_sub(results.len());
        self.under_way = self.under_way.saturating_sub(results.len());
        results
    }

    /// Returns true if no job is under way, and no result is waiting.
    pub fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    fn start(&mut self) -> io::Result<Sender<Job<T>>> {
        let (jobs, inbox) = channel::<Job<T>>();
        let (results, bell) = (self.results.0.clone(), Arc::clone(&self.bell));
        let thread = std::thread::Builder::new().name(self.name.into()).stack_size(64 * 1024);
        thread.spawn(move || {
            for job in inbox {
                if results.send(job()).is_err() {
                    break;
                }
                wake_up::ring(&*bell);
            }
            // The sender is gone: another thread has the jobs. See the type.
            loop {
                std::thread::park();
            }
        })?;
        self.jobs = Some(jobs.clone());
        Ok(jobs)
    }
}

impl<T: Send + 'static> AsFd for Background<T> {
    /// Readable when there are results.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{poll, PollFd, PollFlags};

    fn next(background: &mut Background<u32>) -> u32 {
        loop {
            poll(&mut [PollFd::new(background, PollFlags::IN)], None).expect("a result");
            if let Some(result) = background.results().pop() {
                return result;
            }
        }
    }

    #[test]
    fn a_job_that_hangs_holds_up_no_other_one() {
        let mut background = Background::new("test").expect("a descriptor");
        let (go, gate) = channel::<()>();
        background
            .run(move || u32::from(gate.recv().is_ok()))
            .expect("a thread");
        background.abandon();
        background.run(|| 2).expect("a thread");
        assert_eq!(next(&mut background), 2);
        go.send(()).expect("the first thread waits");
        assert_eq!(next(&mut background), 1);
    }
}
