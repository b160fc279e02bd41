//! External interfaces: the control server, the health endpoints, the publish socket, and systemd.

use crate::configuration::Configuration;
use crate::control::{Access, ControlServer, Host, Kind};
use crate::link::Link;
use crate::listeners::Listener;
use crate::log::Log;
use crate::machine::{Moment, ServerStatus};
use crate::publishing::{Publishing, Request};
use crate::settings::ControlSettings;
use crate::systemd::{Report, Reporter, Systemd, Told};
use fairlead_engine::pubsub::Bus;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The external interfaces of the supervisor.
#[derive(Default)]
pub(super) struct Services {
    control: Option<ControlServer>,
    health: Option<ControlServer>,
    /// Servers of a previous configuration, which still send responses.
    closing: Vec<ControlServer>,
    publishing: Option<Publishing>,
    systemd: Option<Reporter>,
    /// The last report to systemd.
    told: Option<(Moment, ServerStatus)>,
}

impl Services {
    /// Serves on the listeners of the configuration.
    pub(super) fn open(configuration: &Configuration) -> io::Result<Services> {
        let mut services = Services {
            systemd: Systemd::from(|name| std::env::var_os(name))?.map(Reporter::new),
            ..Services::default()
        };
        services.listen(configuration)?;
        Ok(services)
    }

    /// Does the same after another program. `told`: the last report to systemd.
    pub(super) fn resume(configuration: &Configuration, told: Option<Told>) -> io::Result<Services> {
        let systemd = Systemd::from(|name| std::env::var_os(name))?;
        let mut services = Services {
            systemd: systemd.map(|systemd| match told {
                Some(told) => Reporter::resume(systemd, told),
                None => Reporter::new(systemd),
            }),
            ..Services::default()
        };
        services.listen(configuration)?;
        Ok(services)
    }

    /// The last report to systemd; nothing without systemd.
    pub(super) fn told(&self) -> Option<Told> {
        self.systemd.as_ref().and_then(Reporter::told)
    }

    /// Returns true if no message for systemd and no response is pending.
    pub(super) fn is_idle(&self) -> bool {
        let told = self.systemd.as_ref().is_none_or(|systemd| systemd.told().is_some());
        told && self.servers().all(ControlServer::is_idle)
    }

    /// Uses another configuration from now on.
    pub(super) fn adopt(&mut self, configuration: &Configuration, log: &Log) {
        let now = Instant::now();
        let mut control = self.control.take();
        let health = self.health.take();
        if let Err(error) = self.listen(configuration) {
            log.error("control_failed", format!("control: {error}"));
        }
        if let (Some(server), Some(former)) = (&mut self.control, &mut control) {
            server.succeed(former);
        }
        for mut former in control.into_iter().chain(health) {
            former.close_gracefully(now);
            self.closing.push(former);
        }
    }

    /// Publishes on the socket of the configuration from now on, for processes beside the server.
    pub(super) fn publish(&mut self, configuration: &Configuration, bus: &Arc<Bus>, log: &Log) {
        let listener = configuration.publishing.as_ref();
        let is_same = |running: &Publishing| listener.is_some_and(|listener| running.accepts_on(listener));
        if self.publishing.as_ref().is_some_and(is_same) {
            return;
        }
        self.publishing = None;
        let Some(listener) = listener else {
            if let Some(other) = &configuration.settings.publishing {
                log.warn("publishing", format!("another process listens on {}", other.address));
            }
            return;
        };
        let bus = Arc::clone(bus);
        let publish = move |request: &Request<'_>| {
            let (channel, message) = (request.channel, request.message);
            let posted = match request.is_for_history() {
                true => bus.keep(channel, message, &mut |wait| wait()),
                false => bus.publish(channel, message, &mut |wait| wait()),
            };
            posted.undelivered
        };
        match Publishing::start(listener, Box::new(publish), log.clone()) {
            Ok(publishing) => self.publishing = Some(publishing),
            Err(error) => log.error("publishing_failed", format!("publish socket: {error}")),
        }
    }

    /// Returns true if no message of a process beside the server is being published, and none will be.
    pub(super) fn is_resting(&self) -> bool {
        self.publishing.as_ref().is_none_or(Publishing::is_resting)
    }

    /// Another program is about to take over the publish socket, or is not.
    pub(super) fn rest(&self, rests: bool) {
        match &self.publishing {
            Some(publishing) if rests => publishing.rest(),
            Some(publishing) => publishing.resume(),
            None => {}
        }
    }

    fn listen(&mut self, configuration: &Configuration) -> io::Result<()> {
        let settings = &configuration.settings;
        self.health = configuration
            .health
            .as_ref()
            .map(|listener| server(listener, &Kind::Health))
            .transpose()?;
        if let (Some(listener), Some(control)) = (&configuration.control, &settings.control) {
            self.control = Some(server(listener, &kind(control))?);
        }
        Ok(())
    }

    /// Gives systemd the listeners to keep, if configured.
    pub(super) fn store(&mut self, configuration: &mut Configuration) {
        let (Some(systemd), true) = (&mut self.systemd, configuration.settings.systemd_store) else {
            return;
        };
        for listener in configuration
            .listeners
            .iter_mut()
            .filter(|listener| !listener.settings.kept)
        {
            if systemd.systemd().store(listener.as_fd()).is_ok() {
                listener.settings.kept = true;
            }
        }
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.servers().map(ControlServer::descriptor)
    }

    pub(super) fn pause(&self) -> Option<Duration> {
        let now = Instant::now();
        let deadlines = self.servers().filter_map(ControlServer::deadline);
        let pause = deadlines.min().map(|deadline| deadline.saturating_duration_since(now));
        pause
            .into_iter()
            .chain(self.systemd.as_ref().map(Reporter::interval))
            .min()
    }

    /// Handles the requests that have arrived.
    pub(super) fn turn(&mut self, host: &mut dyn Host) {
        let now = Instant::now();
        for server in self.control.iter_mut().chain(&mut self.health).chain(&mut self.closing) {
            server.turn(now, host);
        }
        self.closing.retain(|server| !server.is_closed());
    }

    /// Returns true if a report to systemd is due.
    pub(super) fn want_report(&mut self, now: Moment, state: ServerStatus) -> bool {
        let Some(systemd) = &self.systemd else { return false };
        let is_due = |told_at| now.saturating_sub(told_at) >= systemd.interval();
        let due = self.told.is_none_or(|(told_at, told)| told != state || is_due(told_at));
        if due {
            self.told = Some((now, state));
        }
        due
    }

    /// Reports changes to systemd.
    pub(super) fn tell(&mut self, report: &Report<'_>) {
        if let Some(systemd) = &mut self.systemd {
            systemd.look(report);
        }
    }

    /// Stops listening. Pending responses are sent by [`Services::turn`].
    pub(super) fn close(&mut self) {
        let now = Instant::now();
        self.publishing = None;
        self.closing
            .extend(self.control.take().into_iter().chain(self.health.take()));
        for server in &mut self.closing {
            server.close_gracefully(now);
        }
    }

    /// Returns true once no response is pending.
    pub(super) fn are_closed(&self) -> bool {
        self.closing.is_empty()
    }

    /// Reports the end to systemd.
    pub(super) fn ended(&mut self) {
        if let Some(systemd) = &mut self.systemd {
            systemd.ended();
        }
    }

    fn servers(&self) -> impl Iterator<Item = &ControlServer> {
        self.control.iter().chain(&self.health).chain(&self.closing)
    }
}

fn server(listener: &Listener, kind: &Kind) -> io::Result<ControlServer> {
    ControlServer::new(vec![listener.copy()?], kind)
}

fn kind(control: &ControlSettings) -> Kind {
    Kind::Control(Access {
        token: control.token.clone(),
        url: control.url.clone(),
        data_only: control.data_only,
    })
}

/// Lines that Ruby formats: they go to the current spawner, while there is one.
#[derive(Clone)]
pub struct RubyLog {
    link: Arc<Mutex<Option<Link>>>,
}

impl RubyLog {
    /// Takes the lines of `log` that are for Ruby, and sends them over `link`.
    pub fn new(link: Option<&Link>, log: &Log) -> RubyLog {
        let ruby_log = RubyLog {
            link: Arc::new(Mutex::new(link.and_then(Link::copy))),
        };
        let link = Arc::clone(&ruby_log.link);
        log.pass_to(Box::new(move |level, event, text| {
            let link = link.lock().unwrap_or_else(PoisonError::into_inner);
            let fields = [level.name().as_bytes(), event.as_bytes(), text.as_bytes()];
            link.as_ref().is_some_and(|link| link.send("log", &fields, &[]))
        }));
        ruby_log
    }

    /// Sends the lines over this link from now on.
    pub(super) fn follow(&self, link: Option<Link>) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = link;
    }
}
