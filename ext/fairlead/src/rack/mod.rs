//! Rack: the application as the engine's `App`, the env that it is called with, and what it returns.

mod app;
mod early_hints;
mod env;
mod errors;
mod hijack;
mod input;
mod loan;
mod request;
mod response;
mod stop;
mod template;

pub(crate) use app::{OnThread, RackApp};
pub(crate) use env::Env;
pub(crate) use hijack::init_sockets;
pub(crate) use input::init as init_input;
pub(crate) use loan::Loan;
pub(crate) use response::{set_lists, write_fields, Response};
pub(crate) use stop::{is_closed_error, Stop};
pub(crate) use template::{Template, ThreadTemplate};

use magnus::{Error, RModule, Ruby};

/// Defines the classes.
pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    stop::init(ruby)?;
    loan::init(ruby, native)?;
    response::init(ruby, native)?;
    early_hints::init(ruby, native)?;
    hijack::init(ruby, native)
}
