//! The supervisor of a server as a program. The command `fairlead` starts it in its own process; see [`fairlead_supervisor`].

use fairlead_supervisor::signals::Signals;
use fairlead_supervisor::start::Start;
use fairlead_supervisor::supervisor::{Ended, Supervisor};
use std::process::ExitCode;

/// Exit status after TERM, if the configuration wants TERM to show there (`raise_exception_on_sigterm`).
const TERMINATED: u8 = 128 + 15;

fn main() -> ExitCode {
    run().unwrap_or_else(|reason| {
        eprintln!("fairlead: {}", reason.replace('\n', "\nfairlead: "));
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, String> {
    let signals = Signals::open().map_err(|error| error.to_string())?;
    let start = Start::receive()?;
    let mut supervisor = Supervisor::new(start, Some(signals))?;
    let ended = supervisor.run();
    if let Some(reason) = &ended.defeat {
        supervisor.tell_of_defeat(reason);
    }
    Ok(exit_code(&ended))
}

fn exit_code(ended: &Ended) -> ExitCode {
    match ended {
        Ended { defeat: Some(_), .. } => ExitCode::FAILURE,
        Ended { by_term: true, .. } => ExitCode::from(TERMINATED),
        Ended { status, .. } => ExitCode::from(u8::try_from(*status).unwrap_or(1)),
    }
}
