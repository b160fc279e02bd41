//! Rack: the application as the engine's `App`, the env of a call, and the response of the application.

mod app;
mod early_hints;
mod env;
mod errors;
mod fiber;
mod hijack;
mod input;
mod puma;
mod request;
mod response;
mod response_ref;
mod session;
mod shape;
mod stop;
mod template;

pub(crate) use app::{OnThread, RackApp};
pub(crate) use env::Env;
pub(crate) use response::{set_lists, write_fields, Response};
pub(crate) use response_ref::ResponseRef;
pub(crate) use stop::{is_closed_error, Stop};
pub(crate) use template::{Template, ThreadTemplate};

use crate::classes::RESPONSE_REF;
use magnus::{value::Lazy, Error, Ruby};

/// Defines the methods of the objects that belong to requests and responses.
pub(crate) fn init(ruby: &Ruby) -> Result<(), Error> {
    Lazy::force(&RESPONSE_REF, ruby);
    response::init(ruby)?;
    early_hints::init(ruby)?;
    hijack::init(ruby)
}
