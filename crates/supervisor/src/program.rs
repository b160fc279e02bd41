//! The program: its start, and its end.

use crate::hot_restart_state::{Arrival, Comeback, News};
use crate::signals::Signals;
use crate::start::{Beginning, Start};
use crate::supervisor::{Ended, Supervisor};
use crate::versions::versions;
use fairlead_system::own_program;
use rustix::process::{kill_process, waitpid, Pid, Signal, WaitOptions};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::ExitCode;
use std::time::Duration;

/// Exit status after TERM, if the configuration requires it (`raise_exception_on_sigterm`).
const TERMINATED: u8 = 128 + 15;

/// Number of attempts of this program to continue, and the pause between them.
const ATTEMPTS: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(100);

/// Runs the program.
pub fn run() -> ExitCode {
    serve().unwrap_or_else(|reason| {
        eprintln!("fairlead: {}", reason.replace('\n', "\nfairlead: "));
        ExitCode::FAILURE
    })
}

fn serve() -> Result<ExitCode, String> {
    if std::env::args_os().nth(1).is_some_and(|word| word == "--versions") {
        println!("{} {}", versions().protocol, versions().layout);
        return Ok(ExitCode::SUCCESS);
    }
    own_program::note();
    let signals = Signals::open().map_err(|error| error.to_string())?;
    let mut supervisor = match Beginning::receive()? {
        Beginning::Command(start) => begin(*start, signals)?,
        Beginning::Arrival(arrival) => take_over(arrival, signals)?,
        Beginning::Comeback(comeback) => come_back(&comeback, signals)?,
    };
    let ended = supervisor.run();
    if let Some(reason) = &ended.defeat {
        supervisor.tell_of_defeat(reason);
    }
    Ok(exit_code(&ended))
}

fn begin(start: Start, signals: Signals) -> Result<Supervisor, String> {
    let first = start.first;
    Supervisor::new(start, signals).inspect_err(|_| end_first(first))
}

/// Replaces a program of another version. If that fails, even by a panic, the other program gets everything back.
fn take_over(arrival: Arrival, signals: Signals) -> Result<Supervisor, String> {
    let taken = catch_unwind(AssertUnwindSafe(|| Supervisor::take_over(&arrival, signals)));
    match taken.unwrap_or_else(|_| Err("its supervisor panicked".into())) {
        Ok(mut supervisor) => {
            supervisor.begin_as_guest(arrival);
            Ok(supervisor)
        }
        Err(reason) => {
            let Err(error) = arrival.give_back(&reason, &News::default());
            Err(format!(
                "{reason}; the previous supervisor cannot take over again: {error}"
            ))
        }
    }
}

/// Continues, with several attempts: no other program could do it.
fn come_back(comeback: &Comeback, signals: Signals) -> Result<Supervisor, String> {
    let mut signals = Some(signals);
    let mut failures = 0;
    loop {
        let opened = signals
            .take()
            .map_or_else(|| Signals::open().map_err(|error| error.to_string()), Ok);
        match opened.and_then(|signals| Supervisor::come_back(comeback, signals)) {
            Err(_) if failures < ATTEMPTS => {
                failures += 1;
                std::thread::sleep(BETWEEN);
            }
            result => return result,
        }
    }
}

/// Ends the process that the command has forked, because no supervisor can start.
fn end_first(first: Pid) {
    let _ = kill_process(first, Signal::KILL);
    let _ = waitpid(Some(first), WaitOptions::empty());
}

fn exit_code(ended: &Ended) -> ExitCode {
    match ended {
        Ended { defeat: Some(_), .. } => ExitCode::FAILURE,
        Ended { by_term: true, .. } => ExitCode::from(TERMINATED),
        Ended { status, .. } => ExitCode::from(u8::try_from(*status).unwrap_or(1)),
    }
}
