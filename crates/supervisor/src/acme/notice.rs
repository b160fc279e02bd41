//! Log lines about certificates from an authority.

use super::order::Order;
use super::Wall;
use crate::control::date::words;
use crate::log::Level;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its importance.
    pub level: Level,
    /// The name of its event.
    pub event: &'static str,
    /// Its text.
    pub text: String,
}

fn info(event: &'static str, text: String) -> Line {
    let level = Level::Info;
    Line { level, event, text }
}

fn warn(event: &'static str, text: String) -> Line {
    let level = Level::Warn;
    Line { level, event, text }
}

/// The first line about an order: its certificate, or the time of the next attempt.
pub(super) fn first(order: &Order, now: Wall) -> Option<Line> {
    let Some(failure) = &order.failure else {
        return present(order);
    };
    let (hosts, at, count, reason) = (hosts(order), words(order.at()), failure.count, &failure.reason);
    let text = format!(
        "acme: the next attempt to get a certificate for {hosts} is at {at}, failed attempts: {count}: {reason}; {}",
        in_use(order, now)
    );
    Some(warn("acme_waits", text))
}

pub(super) fn present(order: &Order) -> Option<Line> {
    let certificate = order.certificate.as_ref()?;
    let (until, from) = (words(certificate.expires_at), words(certificate.renew_at));
    let hosts = hosts(order);
    let text = format!("acme: the certificate for {hosts} is valid until {until}; it is renewed from {from} on");
    Some(info("acme_present", text))
}

pub(super) fn failed(order: &Order, now: Wall) -> Line {
    let reason = order.failure.as_ref().map_or("", |failure| &failure.reason);
    let (hosts, at, in_use) = (hosts(order), words(order.at()), in_use(order, now));
    let text = format!("acme: there is no new certificate for {hosts}: {reason}; next attempt at {at}; {in_use}");
    warn("acme_failed", text)
}

pub(super) fn failure_unwritten(order: &Order, reason: &str) -> Line {
    let text = format!(
        "acme: cannot write the failure of the order for {} to acme_dir: {reason}; it is forgotten when the server ends",
        hosts(order)
    );
    warn("acme_failure_unwritten", text)
}

pub(super) fn busy(order: &Order, folder: &str) -> Line {
    let text = format!(
        "acme: another process has locked the order for {} in {folder}/locks; waiting until it has finished or ended",
        hosts(order)
    );
    info("acme_busy", text)
}

pub(super) fn restored(order: &Order) -> Line {
    let text = format!(
        "acme: rewrote the certificate file of {} from memory: it was missing or damaged",
        hosts(order)
    );
    warn("acme_restored", text)
}

pub(super) fn not_restored(order: &Order, reason: &str, now: Wall) -> Line {
    let text = format!(
        "acme: cannot rewrite the missing or damaged certificate file of {}: {reason}; trying again; {}",
        hosts(order),
        in_use(order, now)
    );
    warn("acme_not_restored", text)
}

pub(super) fn suggested(order: &Order, at: Wall) -> Line {
    let (authority, hosts, at) = (&order.settings.authority, hosts(order), words(at));
    let text = format!("acme: {authority} asks to renew the certificate for {hosts} at {at}");
    info("acme_suggested", text)
}

pub(super) fn dir_unusable(reason: &str) -> Line {
    let text = format!("{reason}; no certificate is ordered or renewed until this is fixed");
    warn("acme_dir_unusable", text)
}

fn hosts(order: &Order) -> String {
    order.settings.hosts.join(", ")
}

fn in_use(order: &Order, now: Wall) -> String {
    match &order.certificate {
        None => "no certificate is in use".into(),
        Some(certificate) if certificate.expires_at <= now => "the certificate in use has expired".into(),
        Some(certificate) => format!(
            "the certificate in use is valid until {}",
            words(certificate.expires_at)
        ),
    }
}
