//! Parts of an engine. Each part refers to the parts that it needs among the parts above it; it knows neither the parts
//! below it nor the engine.

use super::clients::NewClients;
use super::flows::{self, Flows};
use super::giving_way::GivingWay;
use super::held::Held;
use super::http2::Http2Driver;
use super::job::Job;
use super::memory::Memory;
use super::migration::{
    AbandonedRequests, Admission, ClientMigration, ConnectionMigration, IncomingConnections, Relays, RequestMigration,
};
use super::native::{FileSender, Handshakes, LookUpThreads};
use super::overload::Overload;
use super::sink::Sink;
use super::statistics::Statistics;
use super::uploads::Uploads;
use super::without_app::WithoutApp;
use crate::cluster::queues::SharedQueues;
use crate::config::Config;
use crate::connection::connections::Connections;
use crate::connection::stream_queue::StreamTurns;
use crate::exchange::{BodySender, Deadlines, Services};
use crate::files::Files;
use crate::http2::Http2Connections;
use crate::limits::budget::Budgets;
use crate::pubsub::Hub;
use crate::realtime::{Host, Realtime};
use crate::scheduler::Scheduler;
use crate::spool::{Relief, Spool};
use crate::transport::listener::Endpoint;
use crate::worker::Worker;
use std::sync::{Arc, Weak};

/// See the head of this file.
pub(super) struct Parts {
    pub(super) worker: Arc<Worker>,
    /// Endpoints of the listeners, in the order that all workers share. The reactor has the sockets.
    pub(super) endpoints: Arc<[Arc<Endpoint>]>,
    /// Budgets of all clients.
    pub(super) budgets: Arc<Budgets>,
    pub(super) services: Arc<Services>,
    pub(super) connections: Arc<Connections>,
    pub(super) scheduler: Arc<Scheduler<Job>>,
    pub(super) flows: Flows,
    pub(super) held: Arc<Held>,
    pub(super) statistics: Statistics,
    pub(super) memory: Arc<Memory>,
    pub(super) without_app: Arc<WithoutApp>,
    pub(super) clients: Arc<NewClients>,
    pub(super) file_sender: Arc<FileSender>,
    pub(super) look_ups: Arc<LookUpThreads>,
    pub(super) handshakes: Arc<Handshakes>,
    pub(super) admission: Arc<Admission>,
    pub(super) relays: Arc<Relays>,
    pub(super) overload: Overload,
    pub(super) request_migration: RequestMigration,
    pub(super) connection_migration: ConnectionMigration,
    pub(super) client_migration: ClientMigration,
    pub(super) giving_way: Arc<GivingWay>,
    pub(super) uploads: Arc<Uploads>,
    pub(super) http2: Http2Driver,
}

/// Foundation of all parts.
pub(super) struct Foundation {
    pub(super) worker: Arc<Worker>,
    pub(super) endpoints: Arc<[Arc<Endpoint>]>,
    pub(super) files: Files,
    /// Subscriptions of the clients.
    pub(super) hub: Arc<Hub>,
    /// Memory that all workers share; `None` for a single process.
    pub(super) queues: Option<Arc<SharedQueues>>,
}

/// References from the parts to the type that moves connections.
pub(super) struct Upward {
    pub(super) sink: Weak<dyn Sink>,
    pub(super) taker: Weak<dyn StreamTurns>,
    pub(super) host: Weak<dyn Host>,
    pub(super) relief: Weak<dyn Relief>,
}

impl Parts {
    pub(super) fn new(foundation: Foundation, upward: Upward) -> Parts {
        let Foundation {
            worker,
            endpoints,
            files,
            hub,
            queues,
        } = foundation;
        let sink = || Weak::clone(&upward.sink);
        let ledger = queues.as_ref().map(|queues| &queues.scoreboard().ledger);
        let budgets = budgets(&worker.config);
        let spool = Spool::new(&worker.config);
        let realtime = Realtime::new(
            Arc::clone(&worker),
            hub,
            Arc::clone(&spool),
            Arc::clone(&budgets),
            upward.host,
        );
        let services = Arc::new(Services {
            worker: Arc::clone(&worker),
            spool,
            files,
            realtime,
            relief: upward.relief,
            deadlines: Deadlines::default(),
            body_sender: BodySender::new(&worker),
        });
        let connections = Connections::new(Arc::clone(&worker));
        let order = flows::order(&worker.config, ledger);
        let scheduler = Arc::new(Scheduler::new(Arc::clone(&worker), &order));
        let held = Held::new(&scheduler);
        let queued_streams = Arc::default();
        let without_app = Arc::new(WithoutApp::new(&services, &endpoints));
        let handshakes = Handshakes::new(&worker, &connections, sink());
        let admission = Admission::new(&worker, queues.as_ref());
        let arrivals = IncomingConnections::new(&worker, &connections, &endpoints);
        let relays = Relays::new(&worker, &connections);
        let abandoned = AbandonedRequests::new(&worker);
        let http2_connections = Arc::new(Http2Connections::new(&services.spool));
        let giving_way = GivingWay::new(&services, &connections, &http2_connections, &budgets);
        let uploads = Uploads::new(&services, &connections, &http2_connections, &giving_way, sink());
        Parts {
            flows: Flows::new(&worker.config, ledger),
            statistics: Statistics::new(&services, &scheduler, &held, &queued_streams),
            memory: Memory::new(&services, &connections, &scheduler),
            clients: NewClients::new(&services, &connections, sink()),
            file_sender: FileSender::new(&worker, sink()),
            look_ups: LookUpThreads::new(&services, &connections, &without_app, sink()),
            overload: Overload::new(&scheduler, &admission, &without_app, &abandoned),
            request_migration: RequestMigration::new(&scheduler, &admission, &arrivals, &relays, &abandoned),
            connection_migration: ConnectionMigration::new(&services, &connections, &admission, &arrivals, &handshakes),
            client_migration: ClientMigration::new(&services, &admission, &endpoints),
            http2: Http2Driver {
                worker: Arc::clone(&worker),
                connections: Arc::clone(&connections),
                budgets: Arc::clone(&budgets),
                http2_connections,
                giving_way: Arc::clone(&giving_way),
                uploads: Arc::clone(&uploads),
                queued_streams,
                taker: upward.taker,
            },
            held,
            without_app,
            handshakes,
            admission,
            relays,
            giving_way,
            uploads,
            worker,
            endpoints,
            budgets,
            services,
            connections,
            scheduler,
        }
    }

    /// Starts the native threads that work on connections.
    pub(super) fn start(&self) -> std::io::Result<()> {
        self.file_sender.start()?;
        self.look_ups.start()?;
        if self.endpoints.iter().any(|endpoint| endpoint.tls.is_some()) {
            self.handshakes.start()?;
        }
        self.services.spool.start(&self.worker)
    }
}

/// Divides the totals of an engine into budgets.
fn budgets(config: &Config) -> Arc<Budgets> {
    let requests = config.request_totals.most_memory();
    let responses = config.response_memory_total_bytes;
    let (bodies, files) = (config.descriptors.most_bodies(), config.descriptors.most_files());
    Budgets::new([requests, responses, bodies as u64, files as u64, 0])
}
