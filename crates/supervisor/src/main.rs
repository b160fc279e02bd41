//! The supervisor of a server as a program. The command `fairlead` starts it in its own process; see
//! [`fairlead_supervisor`].

use std::process::ExitCode;

fn main() -> ExitCode {
    fairlead_supervisor::program::run()
}
