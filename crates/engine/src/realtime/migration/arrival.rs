//! A client that continues in this worker.

use super::lineage::Shared;
use super::saved::SavedClient;
use crate::clock::Millis;
use crate::config::fair_by::Flow;
use crate::pubsub::{Between, Cut, Lost, Publication, Subscriber};
use crate::realtime::carrier::Carrier;
use crate::realtime::client::{Beginning, Client, Events};
use crate::realtime::frames::{Frame, Unsent};
use crate::realtime::inbox::Event;
use crate::realtime::turns::counted_as;
use crate::realtime::{Realtime, Scheduled};
use crate::transport::Link;
use crate::worker::Count;
use std::sync::Arc;

impl Realtime {
    /// Continues with a client of another worker, over its transport. `count`: of the connection. Returns false if the
    /// state is not valid; then the transport is left as it is.
    pub(crate) fn adopt(&self, mut saved: SavedClient, transport: &Link, count: Count) -> bool {
        let shared = saved.memory.shared_with(self.memory());
        if shared != Shared::All {
            saved.cut = Arc::new(Cut::up_to(match shared {
                Shared::History => saved.cut.place(),
                _ => 0,
            }));
        }
        let key = self.clients.reserve();
        let beginning = Beginning {
            key,
            protocol: saved.protocol,
            deflate: saved.deflate,
            deflate_min_bytes: self.worker.config.deflate_min_bytes,
            peer: saved.peer,
            origin: saved.origin,
            owner: saved.owner_for(key),
            flow: saved.flow.map(Flow),
            transport: Arc::clone(transport),
            count: Count::client(&self.worker, counted_as(saved.protocol)),
            timeout: saved.silence.period,
        };
        let client = Client::new(self.me.clone(), beginning);
        let is_watched = self.worker.poller.add_silent(&**transport, key).is_ok();
        if !is_watched || !client.restore(&saved, self) {
            transport.unwatch(&self.worker.poller);
            self.clients.release(key);
            return false;
        }
        client.outbox.lock().carrier = Some(Carrier::Own { _count: Some(count) });
        client.mobility.begin(client.can_migrate(), &self.worker);
        client.inbox.lock().begin();
        if let Some(state) = saved.application.clone() {
            client.departure.note_code(saved.generation);
            client.wait_for_app(state);
        }
        self.clients.put(&client);
        let arrived = Arc::clone(&client);
        let realtime = self.me.clone();
        let is_begun = self.hub.at_cut(Box::new(move |between: &Between<'_>| {
            if let Some(realtime) = realtime.upgrade() {
                arrived.arrive(&realtime, &saved, shared, between);
            }
        }));
        if !is_begun {
            client.end();
        }
        true
    }
}

impl Client {
    /// Restores everything but the subscriptions.
    fn restore(&self, saved: &SavedClient, realtime: &Realtime) -> bool {
        if !self
            .reader
            .lock()
            .restore(saved.decoder.as_deref(), &saved.undecoded, saved.deflate)
        {
            return false;
        }
        self.want(Events(saved.wanted as u8));
        self.keep_alive.restore(saved.silence, Millis::now());
        self.receipts.restore(saved.subscriptions.receipts.clone());
        let mut outbox = self.outbox.lock();
        outbox.begin();
        outbox.frames.push_rest(saved.begun.clone());
        for unsent in &saved.unsent {
            outbox.frames.push(match unsent {
                Unsent::Own(bytes) => Frame::Own(bytes.clone()),
                Unsent::Shared(form) => Frame::Shared(realtime.arrived_forms.share(form)),
            });
        }
        outbox.frames.continue_at(saved.sent);
        outbox.past_bytes = outbox.frames.bytes().min(saved.past as usize);
        outbox.owes_drained = saved.owes_drained;
        outbox.leave_out(Arc::clone(&saved.cut));
        drop(outbox);
        self.recount_message(realtime);
        true
    }

    /// Lets no event run before the app has resumed the client.
    fn wait_for_app(&self, state: Vec<u8>) {
        let mut inbox = self.inbox.lock();
        inbox.hold();
        inbox.push(Event::TakeOver(state));
    }

    /// Restores the subscriptions, delivers the publications that the other worker has not delivered, and reads from now
    /// on. Called by the dispatcher between two publications.
    fn arrive(&self, realtime: &Realtime, saved: &SavedClient, shared: Shared, between: &Between<'_>) {
        let subscriptions = &saved.subscriptions;
        let restored = subscriptions.names.iter().all(|name| self.restore_subscription(name));
        let streams = subscriptions
            .streams
            .iter()
            .all(|saved| self.restore_stream(saved, realtime));
        if subscriptions.has_pings {
            self.send_cable_pings();
        }
        let messages = saved.messages.iter().map(|(text, data)| Event::Message {
            text: *text,
            data: data.clone(),
        });
        // The inbox is held, or there are none.
        self.let_wait(messages.collect(), realtime);
        for (id, channel, message) in &saved.published {
            let publication = Arc::new(Publication::new(Arc::clone(channel), Arc::clone(message)));
            self.tell(Event::Published(*id, publication));
        }
        match self.missed(saved, shared, between) {
            Ok(missed) if restored && streams => missed.iter().for_each(|publication| self.deliver_missed(publication)),
            Ok(_) => self.fail_to_arrive("it has more subscriptions than this worker allows"),
            Err(_) => self.fail_to_arrive("messages for it were lost on its way"),
        }
        // The peer may have sent bytes that nobody has read yet.
        self.keep_alive.hear(Millis::now());
        self.flush();
        self.start_reading(realtime);
        match saved.application {
            Some(_) => self
                .me
                .upgrade()
                .into_iter()
                .for_each(|me| realtime.resuming.add(me, realtime)),
            None => self.release_inbox(),
        }
        if let Some(period) = self.keep_alive.period() {
            realtime.expect(self, Millis::now() + period);
        }
        self.me
            .upgrade()
            .into_iter()
            .for_each(|me| realtime.departures.add(&me));
    }

    /// The publications that the client has not got.
    fn missed(
        &self,
        saved: &SavedClient,
        shared: Shared,
        between: &Between<'_>,
    ) -> Result<Vec<Arc<Publication>>, Lost> {
        let names = self.subscriptions.subscribed();
        let wanted = |channel: &[u8]| names.has(channel);
        match shared {
            Shared::All => between.missed(&saved.cut, &wanted),
            Shared::History => between.missed_in_history(saved.cut.place(), &wanted),
            Shared::Nothing if self.subscriptions.are_there() => Err(Lost),
            Shared::Nothing => Ok(Vec::new()),
        }
    }

    fn deliver_missed(&self, publication: &Arc<Publication>) {
        let (plain, streams) = self.subscriptions.of(&publication.channel);
        for delivery in plain {
            self.deliver(publication, delivery);
        }
        for stream in streams {
            stream.deliver(publication, crate::pubsub::Delivery::Text);
        }
    }

    fn fail_to_arrive(&self, why: &str) {
        self.tell_of_end(format_args!("{why} (close code {})", super::leaving::SERVICE_RESTART));
        self.close(Some(super::leaving::SERVICE_RESTART), "the server restarts");
    }

    /// Lets events run.
    pub(in crate::realtime) fn release_inbox(&self) {
        let mut inbox = self.inbox.lock();
        let is_due = !self.departure.is_handed_over() && inbox.release();
        drop(inbox);
        if is_due {
            if let (Some(realtime), Some(client)) = (self.realtime.upgrade(), self.me.upgrade()) {
                client.resume(&realtime);
                realtime.schedule(Scheduled::Client(client));
            }
        }
    }
}
