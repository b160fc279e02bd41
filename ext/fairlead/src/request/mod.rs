//! The env of a request (Rack SPEC, "The Environment"): everything an application is told.

mod env;
mod input;

pub(crate) use env::Template;
pub(crate) use input::init as init_input;
