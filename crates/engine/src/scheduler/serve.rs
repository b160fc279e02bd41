//! The loop of one thread: take a job, run it to completion; with nothing to run, poll.
//!
//! At most one thread polls. Nobody else is woken while requests finish quickly; a waiting thread is woken exactly when
//! the one that runs the app stops using the language's lock ([`Engine::suspend`](crate::Engine::suspend)). The rules are in
//! `states/`.

use super::states::{Doing, Seat};
use super::{Queued, Scheduler, Workplace};
use crate::app::App;
use std::time::Duration;

/// After a turn that panicked: one that always does shall not fill the log.
const PANIC_PAUSE: Duration = Duration::from_millis(10);

impl<J: Queued> Scheduler<J> {
    /// Serves on this thread until the engine has drained or stopped, or the app says that the thread is interrupted, or has
    /// forked and this is the child. Returns at once if `max_threads` serve already.
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
        self.threads.hand_over(workplace);
    }

    /// One job, or one wait for it.
    fn turn<W: Workplace<Job = J>>(
        &self,
        workplace: &W,
        seat: &Seat<'_>,
        app: &impl App,
        workspace: &mut W::Workspace,
    ) {
        workplace.worker().fault("turn");
        match self.next_job(workplace) {
            Some(job) => self.run(workplace, seat, job, app, workspace),
            None => {
                // Counted before the language's lock is given up: what comes from then on ends the wait.
                let interrupts = self.threads.interrupts();
                let mut has_waited = false;
                app.block(&mut || {
                    has_waited = true;
                    self.threads.wait(seat, workplace, interrupts);
                });
                if has_waited {
                    seat.becomes(Doing::Looking);
                }
            }
        }
    }

    fn next_job<W: Workplace<Job = J>>(&self, workplace: &W) -> Option<J> {
        if let Some(job) = workplace.take_transfer() {
            return Some(job);
        }
        if self.cadence.may_go_on() {
            if let Some(job) = self.ready.pop() {
                return Some(job);
            }
        }
        // This poll keeps the language's lock: it does not wait.
        workplace.poll_now();
        self.ready.pop()
    }

    fn run<W: Workplace<Job = J>>(
        &self,
        workplace: &W,
        seat: &Seat<'_>,
        job: J,
        app: &impl App,
        workspace: &mut W::Workspace,
    ) {
        let now = seat.becomes(Doing::Running);
        self.monitor.look();
        if now.free() == 0 && self.threads.reserve_for(self.ready.len()) && !app.start_thread() {
            self.threads.cancel_start();
        }
        workplace.worker().fault("run");
        let begun = self.cadence.begin(|| self.threads.hand_over(workplace));
        workplace.run(job, app, workspace);
        seat.becomes(Doing::Looking);
        self.cadence.end(begun);
    }
}
