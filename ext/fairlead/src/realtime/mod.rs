//! Connections that stay open: upgrades (Rack Push), the application's object for a client, and calls of its handler.

mod callbacks;
mod client;
mod events;
mod handover;
mod streams;
mod subscriptions;
mod upgrade;

pub(crate) use client::init;
pub(crate) use subscriptions::kind;
pub(crate) use upgrade::{accept as accept_upgrade, Offer as UpgradeOffer};
