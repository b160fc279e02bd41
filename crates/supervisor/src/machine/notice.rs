//! What people are told of the decisions.

/// A line for the log: its event, its level and its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {}
