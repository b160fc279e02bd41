//! Tests with the vectors of RFC 8448, and with clients and servers of rustls.

mod any_input;
mod format;
mod hostile;
mod limits;
mod moves;
mod pair;
mod vectors;
