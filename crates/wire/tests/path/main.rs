//! Tests of paths: refused paths and their errors, accepted paths and their meaning, which is the same on every
//! platform.

mod advisories;
mod attacks;
mod bytes;
mod catalogue;
mod characters;
mod check;
mod classes;
#[path = "../http1/support.rs"]
#[allow(dead_code, reason = "only the random numbers are used here")]
mod http1;
mod legitimate;
mod limits;
mod model;
mod names;
mod platforms;
mod random;
mod support;
