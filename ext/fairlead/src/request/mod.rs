//! The env of a request (Rack SPEC, "The Environment"): everything an application is told.

mod env;
mod input;
mod template;

pub(crate) use env::Env;
pub(crate) use input::init as init_input;
pub(crate) use template::{Template, ThreadTemplate};
