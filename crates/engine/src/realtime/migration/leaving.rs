//! The steps of a client that leaves its worker.

use super::departure::Step;
use super::handover::{Handover, MOST_STATE};
use super::retirement::Hindrance;
use super::saved::SavedSubscriptions;
use super::{SavedClient, SavedSilence};
use crate::clock::Millis;
use crate::limits::holders::Owner;
use crate::pubsub::Between;
use crate::realtime::carrier::Carrier;
use crate::realtime::client::{Client, Protocol};
use crate::realtime::inbox::Event;
use crate::realtime::Realtime;
use std::sync::Arc;

/// Close code of a server that restarts (registered with IANA).
pub(in crate::realtime) const SERVICE_RESTART: u16 = 1012;

/// The state of a client, and the locks that keep it as it is until the client is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Prepared {
    /// The client cannot be saved at this moment.
    Later,
    /// It has ended, or its transport cannot migrate.
    Never,
    /// `send` has sent it.
    Sent,
}

impl Client {
    /// The app's answer to [`Event::HandOver`]. After a state the client counts as closed in this process: it takes no
    /// messages of the app, and its blocks do not run. Has no effect at other times.
    pub fn hand_over(&self, handover: Handover) {
        let realtime = self.realtime.upgrade();
        let is_given_back = |realtime: &Arc<Realtime>| realtime.is_given_back(realtime.worker.config.generation);
        let application = match handover {
            Handover::State(_) if realtime.as_ref().is_some_and(is_given_back) => {
                self.tell_of_stay("the workers that continue have older code");
                return self.stay(Hindrance::App);
            }
            Handover::State(state) if state.len() > MOST_STATE => {
                self.tell_of_stay("its state is longer than 1 MiB");
                return self.stay(Hindrance::App);
            }
            Handover::State(state) => Some(state),
            Handover::Native => None,
            Handover::Refused => return self.stay(Hindrance::App),
        };
        if self.departure.hand_over(application) {
            self.inbox.lock().hold();
            if let Some(realtime) = realtime {
                realtime.worker.poller.wake();
            }
        }
    }

    /// Continues to serve the client here; it closes before its worker ends.
    pub(in crate::realtime) fn stay(&self, hindrance: Hindrance) {
        let Some(realtime) = self.realtime.upgrade() else {
            return;
        };
        let closes_at = realtime.departures.close_time(&realtime, hindrance);
        if self.departure.refuse(closes_at) {
            realtime.expect(self, closes_at);
            self.resume(&realtime);
        }
    }

    fn tell_of_stay(&self, why: &str) {
        if let Some(realtime) = self.realtime.upgrade() {
            let line = format!("{} cannot migrate: {why}; closing it later", self.describe());
            realtime.worker.log.error(format_args!("{line}"));
        }
    }

    /// True if another worker could take the connection over.
    pub(in crate::realtime) fn can_migrate(&self) -> bool {
        if !matches!(self.protocol(), Protocol::WebSocket | Protocol::EventStream { .. }) {
            return false;
        }
        let outbox = self.outbox.lock();
        let is_own = matches!(outbox.carrier, Some(Carrier::Own { .. }));
        is_own
            && outbox
                .transport
                .as_ref()
                .is_some_and(|transport| transport.can_export())
    }

    /// Begins to leave: reads nothing more, and asks the app for its state. Returns false if the client stays.
    pub(super) fn leave(&self, now: Millis) -> bool {
        if !self.is_open() {
            return false;
        }
        if !self.can_migrate() {
            self.stay(Hindrance::Connection);
            return false;
        }
        let Some(realtime) = self.realtime.upgrade() else {
            return false;
        };
        if self.would_lose_messages(&realtime) {
            self.tell_of_stay("the new release shares no history");
            self.stay(Hindrance::App);
            return false;
        }
        // With one lock: otherwise the app could resume the client in between.
        let mut inbox = self.inbox.lock();
        if let Some(state) = inbox.take_state() {
            self.departure.hand_on(state);
            drop(inbox);
            self.stop_reading();
            return true;
        }
        drop(inbox);
        let is_asked = self.departure.ask(now);
        if is_asked {
            self.stop_reading();
            self.tell(Event::HandOver);
        } else if self.departure.closes_at().is_some() {
            self.stay(Hindrance::App); // the time may be shorter by now
        }
        is_asked
    }

    /// Bytes that the peer has not got.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.outbox.lock().frames.bytes()
    }

    pub(super) fn departure_step(&self) -> Step {
        match self.is_open() {
            true => self.departure.step(),
            false => Step::Over,
        }
    }

    /// Closes the client at this time, because no worker takes it.
    pub(super) fn give_departure_up(&self, closes_at: Millis) {
        self.departure.give_up(closes_at);
        if closes_at <= Millis::now() {
            self.close_for_restart();
        }
    }

    /// Closes a client that the app has handed over: the app is not asked again.
    pub(in crate::realtime) fn close_for_restart(&self) {
        self.close(Some(SERVICE_RESTART), "the server restarts");
    }

    /// Announces the end of the server to the app, or closes the client if the app does not know it.
    pub(in crate::realtime) fn announce_end(&self) {
        if self.departure.is_handed_over() {
            self.close_for_restart();
        } else if !self.close_unresumed() {
            self.announce_shutdown();
        }
    }

    /// Closes a client that the app has not resumed in this process: it knows nothing of it. Returns false if it has.
    fn close_unresumed(&self) -> bool {
        let is_unresumed = self.inbox.lock().take_state().is_some();
        if is_unresumed {
            self.close_for_restart();
            self.release_inbox();
        }
        is_unresumed
    }

    /// Ends the subscriptions at a cut. Returns false if there is no dispatcher.
    pub(super) fn prepare_departure(&self, realtime: &Realtime) -> bool {
        let Some(client) = self.me.upgrade() else { return true };
        if !self.departure.prepare() {
            return true;
        }
        let (hub, worker) = (Arc::clone(&realtime.hub), Arc::clone(&realtime.worker));
        realtime.hub.at_cut(Box::new(move |between: &Between<'_>| {
            let cut = client.outbox.lock().received(between.cut());
            if client.departure.cut(cut, || client.end_subscriptions(&hub)) {
                worker.poller.wake();
            }
        }))
    }

    /// Ends all subscriptions, and returns them. The names without a subscriber are kept for the end of the client.
    fn end_subscriptions(&self, hub: &crate::pubsub::Hub) -> SavedSubscriptions {
        let receipts = self.receipts.save();
        let saved = self.subscriptions.save();
        let left = self.subscriptions.remove_all(self.id, hub);
        self.subscriptions.keep_left(left);
        SavedSubscriptions { receipts, ..saved }
    }

    /// Saves the client, and calls `send` with its state and its socket. If `send` returns true, another process has the
    /// client: nothing more is read from its socket or written to it here.
    pub(super) fn send_away(&self, send: &mut dyn FnMut(&SavedClient, &rustix::fd::OwnedFd) -> bool) -> Prepared {
        let Some((departing, realtime)) = self.departure.departing().zip(self.realtime.upgrade()) else {
            return Prepared::Never;
        };
        let Some(mut reader) = self.reader.try_lock() else {
            return Prepared::Later;
        };
        let mut outbox = self.outbox.lock();
        let Some(transport) = outbox.transport.clone().filter(|_| self.is_open()) else {
            return Prepared::Never;
        };
        let inbox = self.inbox.lock();
        let Some(events) = inbox.waiting() else {
            return Prepared::Later;
        };
        let (mut published, mut messages, mut owes_drained) = (Vec::new(), Vec::new(), outbox.owes_drained);
        for event in events {
            match event {
                Event::Published(id, publication) => {
                    published.push((*id, publication.channel.clone(), publication.message.clone()));
                }
                Event::Message { text, data } => messages.push((*text, data.clone())),
                Event::Drained => owes_drained = true,
                _ => {}
            }
        }
        drop(inbox);
        let Some((decoder, undecoded)) = reader.save() else {
            return Prepared::Never;
        };
        let Some(export) = transport.export() else {
            return Prepared::Later;
        };
        let (begun, sent, unsent) = outbox.frames.unsent();
        let saved = SavedClient {
            protocol: self.protocol(),
            deflate: self.encoder.deflate(),
            origin: self.origin,
            peer: self.peer,
            tls: export.tls,
            owner: self.owner,
            flow: self.flow.map(|flow| flow.0),
            decoder,
            undecoded,
            begun,
            sent,
            unsent,
            past: outbox.past_bytes as u64,
            owes_drained,
            wanted: self.wanted().0.into(),
            silence: self.keep_alive.save(Millis::now()),
            cut: departing.cut,
            memory: realtime.memory(),
            generation: self.code(&realtime),
            left: Millis::now(),
            subscriptions: departing.subscriptions,
            published,
            messages,
            application: departing.application,
        };
        if !send(&saved, export.socket) {
            transport.stay();
            return Prepared::Later;
        }
        self.departure.leave();
        self.leave_socket(&mut outbox);
        reader.end();
        // The socket is closed here now: if the other process ends, the peer notices it.
        let link = outbox.transport.take();
        drop(outbox);
        drop(reader);
        drop((link, transport));
        self.tell(Event::Departed);
        Prepared::Sent
    }
}

impl SavedClient {
    /// The owner in this process. A client without an address owns itself, by its key.
    pub(super) fn owner_for(&self, key: u64) -> Owner {
        match self.owner {
            Owner::Key(_) => Owner::Key(key),
            network => network,
        }
    }
}

/// Ages of a keep-alive.
impl SavedSilence {
    pub(in crate::realtime) fn since(period: u32, heard: Millis, pinged: Millis, now: Millis) -> SavedSilence {
        let age = |time: Millis| (now - time).as_millis() as u64;
        SavedSilence {
            period,
            heard: age(heard),
            pinged: age(pinged),
        }
    }
}
