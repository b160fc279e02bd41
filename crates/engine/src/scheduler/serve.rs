//! Loop of one thread: takes a job and runs it to completion; polls if there is none.
//!
//! At most one thread polls. No other thread is woken while requests finish quickly. A waiting thread is woken only
//! when the thread that runs the app releases the lock of the language ([`Engine::suspend`](crate::Engine::suspend)).
//! The rules are in `states/`.

use super::queue::{Due, ReadyQueue};
use super::states::{Doing, Seat};
use super::{Queued, Scheduler, Taken, Workplace};
use crate::app::App;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Pause after a turn that panicked, so that a turn that always panics cannot fill the log.
const PANIC_PAUSE: Duration = Duration::from_millis(10);

/// Charges the cost of a job, even if it panics.
struct Bill<'a, J: Queued> {
    queue: &'a ReadyQueue<J>,
    due: Box<Due>,
}

impl<J: Queued> Drop for Bill<'_, J> {
    fn drop(&mut self) {
        self.queue.end(&self.due);
    }
}

impl<J: Queued> Scheduler<J> {
    /// Serves on this thread until the engine has drained or stopped, the app reports an interrupt of the thread, or
    /// the thread is in a forked child. Returns at once if `max_threads` threads serve already.
    pub(crate) fn serve<W: Workplace<Job = J>>(&self, workplace: &W, app: &impl App) {
        let Some(seat) = self.threads.enter() else { return };
        workplace.publish_threads();
        let worker = workplace.worker();
        let mut workspace = W::Workspace::default();
        while !worker.is_stopped() {
            let turn = worker.guard("a thread", || self.turn(workplace, &seat, app, &mut workspace));
            if turn.is_none() {
                seat.becomes(Doing::Looking);
                std::thread::sleep(PANIC_PAUSE);
            }
            if app.is_interrupted() || !worker.is_at_home() {
                break;
            }
        }
        drop(seat);
        workplace.publish_threads();
        // A process that the app has forked has no other threads, but may have the locks that they held.
        if worker.is_at_home() {
            self.threads.wake_next(self);
        }
    }

    /// Runs one job, or waits once for one.
    fn turn<W: Workplace<Job = J>>(
        &self,
        workplace: &W,
        seat: &Seat<'_>,
        app: &impl App,
        workspace: &mut W::Workspace,
    ) {
        workplace.worker().fault("turn");
        match self.next_job(workplace, app) {
            Some(turn) => self.run(workplace, seat, turn, app, workspace),
            None => {
                // Read before the lock of the language is released: an interrupt from here on ends the wait.
                let interrupts = self.threads.interrupts();
                let mut has_waited = false;
                app.block(&mut || {
                    has_waited = true;
                    self.threads.wait(seat, self, workplace, interrupts, &|| app.idle());
                });
                if has_waited {
                    seat.becomes(Doing::Looking);
                }
            }
        }
    }

    fn next_job<W: Workplace<Job = J>>(&self, workplace: &W, app: &impl App) -> Option<Taken<J>> {
        if self.cadence.may_go_on() {
            if let Some(turn) = self.next_in_turn(workplace) {
                return Some(turn);
            }
        }
        // This poll does not wait, so it keeps the lock of the language.
        workplace.poll_now();
        self.next_in_turn(workplace)
            .or_else(|| workplace.leisure(app).map(Taken::from))
    }

    /// Takes the next job from the ready queue or from the waiting room.
    fn next_in_turn<W: Workplace<Job = J>>(&self, workplace: &W) -> Option<Taken<J>> {
        if let Some(turn) = self.ready.pop_urgent() {
            return Some(turn);
        }
        if let Some(job) = workplace.take_transfer() {
            self.ready.give_way();
            return Some(job.into());
        }
        self.ready.pop()
    }

    fn run<W: Workplace<Job = J>>(
        &self,
        workplace: &W,
        seat: &Seat<'_>,
        turn: Taken<J>,
        app: &impl App,
        workspace: &mut W::Workspace,
    ) {
        let _bill = turn.due.map(|due| {
            if due.has_overtaken {
                workplace.worker().counters().overtaken.fetch_add(1, Relaxed);
            }
            let queue = &self.ready;
            Bill { queue, due }
        });
        let now = seat.becomes(Doing::Running);
        self.monitor.look();
        if now.free() == 0 && self.threads.reserve_for(self.ready.len()) && !app.start_thread() {
            self.threads.cancel_start();
        }
        workplace.worker().fault("run");
        let begun = self.cadence.begin(|| self.threads.wake_next(self));
        workplace.run(turn.job, app, workspace);
        seat.becomes(Doing::Looking);
        self.cadence.end(begun);
    }
}
