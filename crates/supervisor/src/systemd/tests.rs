use super::reporter::PATIENCE;
use super::*;
use rustix::net::{bind, recvmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use tempfile::TempDir;

/// The other end of the socket.
struct Notified {
    folder: TempDir,
    socket: OwnedFd,
}

impl Notified {
    fn new() -> Notified {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = socket(&SocketAddrUnix::new(folder.path().join("notify")).expect("a path"));
        Notified { folder, socket }
    }

    fn systemd(&self) -> Systemd {
        self.systemd_with(&[])
    }

    fn systemd_with(&self, variables: &[(&str, &str)]) -> Systemd {
        let path = self.folder.path().join("notify");
        let socket = [(SOCKET, path.to_str().expect("text"))];
        from(&[&socket, variables].concat()).expect("systemd")
    }

    /// The next message and its descriptor; `None` if there is none.
    fn next(&self) -> Option<(String, Option<OwnedFd>)> {
        let mut text = [0; 1_000];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut text)];
        let received = recvmsg(&self.socket, &mut into, &mut control, RecvFlags::DONTWAIT).ok()?;
        let descriptor = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        Some((
            String::from_utf8_lossy(&text[..received.bytes]).into_owned(),
            descriptor,
        ))
    }

    /// All messages that have arrived; only the first line of reloads.
    fn messages(&self) -> Vec<String> {
        let texts = std::iter::from_fn(|| self.next()).map(|(text, _)| text);
        texts
            .map(|text| text.lines().next().unwrap_or_default().to_owned())
            .collect()
    }

    /// The messages without texts.
    fn states(&self) -> Vec<String> {
        let messages = self.messages().into_iter();
        messages.filter(|text| !text.starts_with("STATUS=")).collect()
    }
}

fn socket(address: &SocketAddrUnix) -> OwnedFd {
    let socket = sockets::open(AddressFamily::UNIX, SocketType::DGRAM).expect("a socket");
    bind(&socket, address).expect("an address");
    socket
}

fn from(variables: &[(&str, &str)]) -> Option<Systemd> {
    let find = |name: &str| {
        variables
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.into())
    };
    Systemd::from(find).expect("a descriptor")
}

/// Fills the queue of systemd; returns the number of messages in it.
fn fill(systemd: &mut Systemd) -> usize {
    let sent = (0..).find(|_| {
        systemd.alive();
        systemd.is_behind()
    });
    sent.expect("a full queue")
}

fn report(state: NotifyState) -> Report<'static> {
    Report {
        state,
        restart: None,
        workers: 2,
        booted: 2,
        busy_threads: 2,
        threads: 6,
        queued: 8,
    }
}

fn restart(number: u64) -> Report<'static> {
    Report {
        restart: Some(Restart { number, error: None }),
        ..report(NotifyState::Ready)
    }
}

#[test]
fn messages_arrive_at_a_path_and_at_an_abstract_name() {
    let mut notified = Notified::new();
    let check = |notified: &Notified, mut systemd: Systemd| {
        systemd.ready();
        systemd.status("fine");
        systemd.alive();
        systemd.stopping();
        assert_eq!(
            notified.messages(),
            ["READY=1", "STATUS=fine", "WATCHDOG=1", "STOPPING=1"]
        );
        assert!(!systemd.is_behind());
    };
    check(&notified, notified.systemd());
    let name = format!("fairlead-test-{}", std::process::id());
    notified.socket = socket(&SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name"));
    check(&notified, from(&[(SOCKET, &format!("@{name}"))]).expect("systemd"));
}

#[test]
fn a_reload_has_its_time() {
    let notified = Notified::new();
    let now = || clock_gettime(ClockId::Monotonic);
    let before = now();
    notified.systemd().reloading();
    let (text, _) = notified.next().expect("a message");
    let microseconds = text.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("a time");
    let time: i64 = microseconds.parse().expect("a number");
    let bounds = [before, now()].map(|time| time.tv_sec * 1_000_000 + time.tv_nsec / 1_000);
    assert!((bounds[0]..=bounds[1]).contains(&time), "{time}");
}

#[test]
fn listeners_are_given_away_one_by_one() {
    let notified = Notified::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    notified.systemd().store(listener.as_fd()).expect("a descriptor");
    let (text, descriptor) = notified.next().expect("a message");
    assert_eq!(text, "FDSTORE=1\nFDNAME=fairlead\nFDPOLL=0");
    let stored = std::net::TcpListener::from(descriptor.expect("a descriptor"));
    assert_eq!(
        stored.local_addr().expect("an address"),
        listener.local_addr().expect("an address")
    );
}

#[test]
fn messages_that_find_the_queue_full_are_sent_later() {
    let notified = Notified::new();
    let mut systemd = notified.systemd();
    let filling = fill(&mut systemd);
    systemd.ready();
    for number in 0..3 {
        systemd.status(&format!("text {number}"));
        systemd.reloading();
        systemd.ready();
        systemd.alive();
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    systemd.store(listener.as_fd()).expect("a descriptor");
    systemd.stopping();
    assert!(!systemd.flush());

    let mut messages = notified.messages();
    while !systemd.flush() {
        messages.extend(notified.messages());
    }
    messages.extend(notified.messages());
    let (filling, later) = messages.split_at(filling);
    assert!(filling.iter().all(|text| text == "WATCHDOG=1"));
    let expected = [
        "READY=1",
        "STATUS=text 2",
        "RELOADING=1",
        "READY=1",
        "WATCHDOG=1",
        "FDSTORE=1",
        "STOPPING=1",
    ];
    assert_eq!(later, expected);
}

#[test]
fn a_systemd_that_is_gone_is_no_error() {
    let mut systemd = from(&[(SOCKET, "/nowhere/notify")]).expect("systemd");
    systemd.ready();
    assert!(!systemd.is_behind());
}

#[test]
fn without_a_socket_that_it_knows_there_is_none() {
    let skipped = [(SOCKET, "/run/x"), (SKIP, "1")];
    let others = [
        [(SOCKET, "")],
        [(SOCKET, "/")],
        [(SOCKET, "@")],
        [(SOCKET, "vsock:2:1")],
    ];
    assert!(from(&[]).is_none() && from(&skipped).is_none());
    assert!(others.iter().all(|variables| from(variables).is_none()));
    let long = format!("/{}", "x".repeat(200));
    Systemd::from(|name| (name == SOCKET).then(|| long.clone().into())).expect_err("it is too long");
}

#[test]
fn the_watchdog_is_for_the_process_that_it_names() {
    let notified = Notified::new();
    let watchdog = |variables: &[(&str, &str)]| notified.systemd_with(variables).watchdog();
    let time = ("WATCHDOG_USEC", "2500000");
    let own = std::process::id().to_string();
    let expected = Some(Duration::from_millis(2_500));
    assert_eq!(watchdog(&[time]), expected);
    assert_eq!(watchdog(&[time, ("WATCHDOG_PID", &own)]), expected);
    assert_eq!(watchdog(&[time, ("WATCHDOG_PID", "1")]), None);
    assert_eq!(watchdog(&[("WATCHDOG_USEC", "0")]), None);
}

#[test]
fn each_state_is_told_once() {
    use NotifyState::{Draining, Ready, Restarting, Starting};
    let notified = Notified::new();
    let mut reporter = Reporter::new(notified.systemd());
    for state in [
        Starting, Ready, Ready, Restarting, Restarting, Ready, Draining, Draining, Ready,
    ] {
        reporter.look(&report(state));
    }
    reporter.ended();
    assert_eq!(notified.states(), ["READY=1", "RELOADING=1", "READY=1", "STOPPING=1"]);
}

#[test]
fn a_restart_between_two_looks_is_told() {
    let notified = Notified::new();
    let mut reporter = Reporter::new(notified.systemd());
    for report in [report(NotifyState::Ready), restart(1), restart(1), restart(2)] {
        reporter.look(&report);
    }
    let expected = ["READY=1", "RELOADING=1", "READY=1", "RELOADING=1", "READY=1"];
    assert_eq!(notified.states(), expected);
}

#[test]
fn an_end_that_came_between_two_looks_is_told() {
    let notified = Notified::new();
    let mut reporter = Reporter::new(notified.systemd());
    reporter.look(&report(NotifyState::Ready));
    reporter.ended();
    assert_eq!(notified.states(), ["READY=1", "STOPPING=1"]);
}

#[test]
fn the_text_says_how_it_is_and_is_sent_when_it_changes() {
    let notified = Notified::new();
    let mut reporter = Reporter::new(notified.systemd());
    let failed = Restart {
        number: 1,
        error: Some("config.ru:1: no\nmore"),
    };
    let mut report = report(NotifyState::Ready);
    reporter.look(&report);
    reporter.look(&report);
    report.restart = Some(failed);
    reporter.look(&report);
    (report.workers, report.restart) = (0, None);
    reporter.look(&report);
    let texts: Vec<String> = notified
        .messages()
        .into_iter()
        .filter(|text| text.contains("STATUS"))
        .collect();
    let end = "2/6 threads busy, 8 requests waiting";
    let expected = [
        format!("STATUS=ready: 2/2 workers, {end}"),
        format!("STATUS=ready: 2/2 workers, {end}; last restart failed: config.ru:1: no"),
        format!("STATUS=ready: {end}"),
    ];
    assert_eq!(texts, expected);
}

#[test]
fn it_looks_twice_in_the_time_of_the_watchdog_and_gives_a_sign_of_life_each_time() {
    let notified = Notified::new();
    let mut reporter = Reporter::new(notified.systemd_with(&[("WATCHDOG_USEC", "400000")]));
    assert_eq!(reporter.interval(), Duration::from_millis(200));
    reporter.look(&report(NotifyState::Ready));
    reporter.look(&report(NotifyState::Ready));
    assert_eq!(notified.states(), ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]);
    let slow = Reporter::new(notified.systemd_with(&[("WATCHDOG_USEC", "60000000")]));
    assert_eq!(slow.interval(), Duration::from_secs(1));
}

#[test]
fn it_looks_soon_while_messages_wait_and_sends_them() {
    let notified = Notified::new();
    let mut reporter = Reporter::new(notified.systemd());
    fill(reporter.systemd());
    reporter.look(&report(NotifyState::Ready));
    assert_eq!(reporter.interval(), PATIENCE);
    while reporter.interval() == PATIENCE {
        notified.messages();
        reporter.look(&report(NotifyState::Ready));
    }
    assert!(notified.states().contains(&"READY=1".to_owned()));
}
