//! Rack: the application as the engine's `App`, the env that it is called with, and what it returns.

mod app;
mod early_hints;
mod env;
mod errors;
mod fiber;
mod hijack;
mod input;
mod loan;
mod puma;
mod request;
mod response;
mod session;
mod shape;
mod stop;
mod template;

pub(crate) use app::{OnThread, RackApp};
pub(crate) use env::Env;
pub(crate) use loan::Loan;
pub(crate) use response::{set_lists, write_fields, Response};
pub(crate) use stop::{is_closed_error, Stop};
pub(crate) use template::{Template, ThreadTemplate};

use crate::classes::LOAN;
use magnus::{value::Lazy, Error, Ruby};

/// Defines the methods of what requests and responses bring with them.
pub(crate) fn init(ruby: &Ruby) -> Result<(), Error> {
    Lazy::force(&LOAN, ruby);
    response::init(ruby)?;
    early_hints::init(ruby)?;
    hijack::init(ruby)
}
