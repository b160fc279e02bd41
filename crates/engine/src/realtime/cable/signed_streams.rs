//! Confirms subscriptions to streams with a signed name without the application: it has signed the name for a page that may
//! subscribe. Rails' MessageVerifier makes such signatures, with SHA-256 and JSON.

use super::streams::{StreamOptions, StreamStart, Streamed};
use crate::pubsub::{from_hex, PagePosition, Position};
use crate::realtime::client::Client;
use base64::prelude::{Engine as _, BASE64_STANDARD};
use memchr::memmem;
use ring::hmac::{verify, Key, HMAC_SHA256};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The message of a stream that has lost some: the page loads itself again.
const REFRESH: &[u8] = br#""<turbo-stream action=\"refresh\"></turbo-stream>""#;

/// The channel with signed streams, and the key of their signatures.
#[derive(Debug)]
pub struct SignedStreams {
    channel: Box<str>,
    /// In front of the names, in the channels of the hub.
    prefix: Box<str>,
    key: Key,
    secret: Box<[u8]>,
}

/// A command of a client.
struct Command {
    identifier: String,
    parameters: Value,
}

impl SignedStreams {
    /// Streams of the channel with this class name. `prefix`: of their channels in the hub.
    pub fn new(channel: &str, prefix: &str, secret: &[u8]) -> SignedStreams {
        SignedStreams {
            channel: channel.into(),
            prefix: prefix.into(),
            key: Key::new(HMAC_SHA256, secret),
            secret: secret.into(),
        }
    }

    /// Returns true if it was made from these arguments.
    pub fn is(&self, channel: &str, prefix: &str, secret: &[u8]) -> bool {
        (&*self.channel, &*self.prefix, &*self.secret) == (channel, prefix, secret)
    }

    /// The name in a text with a valid signature.
    fn verified(&self, signed: &str) -> Option<String> {
        let (data, signature) = signed.rsplit_once("--")?;
        let signature = from_hex(signature)?;
        verify(&self.key, data.as_bytes(), &signature).ok()?;
        serde_json::from_slice(&BASE64_STANDARD.decode(data).ok()?).ok()
    }

    /// The subscription to one of these streams that a message asks for, with the channel of its stream.
    fn subscription(&self, message: &[u8]) -> Option<(Command, String)> {
        let command = Command::parse(message, "subscribe")?;
        let text = |name: &str| command.parameters.get(name).and_then(Value::as_str);
        if text("channel") != Some(&*self.channel) {
            return None;
        }
        let name = self.verified(text("signed_stream_name")?)?;
        Some((command, format!("{}{name}", self.prefix)))
    }
}

impl Command {
    /// The command with this name; `None` for others.
    fn parse(message: &[u8], name: &str) -> Option<Command> {
        let mut message: Value = serde_json::from_slice(message).ok()?;
        if message.get("command")? != name {
            return None;
        }
        let Value::String(identifier) = message.get_mut("identifier")?.take() else {
            return None;
        };
        let parameters = serde_json::from_str(&identifier).ok()?;
        Some(Command { identifier, parameters })
    }
}

impl Client {
    /// Confirms subscriptions to signed streams from now on.
    pub fn confirm_signed_streams(&self, streams: &Arc<SignedStreams>) {
        let _ = self.signed_streams.set(Arc::clone(streams));
    }

    /// Returns true if a message of the client may be a command about a signed stream. Most are for other channels.
    pub fn may_be_command(&self, message: &[u8]) -> bool {
        let signed = self.signed_streams.get();
        signed.is_some_and(|signed| memmem::find(message, signed.channel.as_bytes()).is_some())
    }

    /// Runs a message of the client if it is a command about a signed stream; false if it is a message for the application.
    pub fn run_command(&self, message: &[u8]) -> bool {
        let Some(signed) = self.signed_streams.get() else {
            return false;
        };
        if let Some((command, name)) = signed.subscription(message) {
            self.subscribe_signed(&command, &name);
            return true;
        }
        Command::parse(message, "unsubscribe").is_some_and(|command| self.unsubscribe_signed(&command.identifier))
    }

    /// The identifiers of subscriptions that were confirmed here, in no order.
    pub fn confirmed_identifiers(&self) -> Vec<String> {
        self.subscriptions.with_streams(|streams| streams.confirmed())
    }

    /// Keeps a subscription that another process has confirmed, if this one would confirm it, too. Otherwise it returns false, and
    /// the application decides.
    pub fn keep_confirmed(&self, identifier: &str) -> bool {
        let command = serde_json::json!({ "command": "subscribe", "identifier": identifier }).to_string();
        let signed = self.signed_streams.get();
        let subscription = signed.and_then(|signed| signed.subscription(command.as_bytes()));
        let Some((_, name)) = subscription.filter(|_| self.has_confirmed(identifier)) else {
            return false;
        };
        let options = StreamOptions {
            confirmed: true,
            ..StreamOptions::default()
        };
        self.stream(name.as_bytes(), identifier, options).is_some()
    }

    fn subscribe_signed(&self, command: &Command, name: &str) {
        if self.has_confirmed(&command.identifier) {
            return;
        }
        let since = command.parameters.get("since").and_then(Value::as_str);
        let options = StreamOptions {
            since: since.and_then(|sealed| self.start_of_page(name.as_bytes(), sealed)),
            confirmed: true,
            ..StreamOptions::default()
        };
        match self.stream(name.as_bytes(), &command.identifier, options) {
            None => self.reply(&command.identifier, "reject_subscription"),
            Some((_, Streamed::After(_))) => {}
            Some((_, Streamed::Lost)) => self.send_to(&command.identifier, REFRESH),
        }
    }

    /// The start for a page with a sealed position. If another server has made the position, messages are lost. `None` if it
    /// is no position for this channel.
    pub fn start_of_page(&self, channel: &[u8], sealed: &str) -> Option<StreamStart> {
        let realtime = self.realtime.upgrade()?;
        let history = realtime.hub.history()?;
        match history.open(channel, sealed) {
            Some(page) => Some(StreamStart::Page(self.own_page(page))),
            None => history.is_foreign(sealed).then_some(StreamStart::Unknown),
        }
    }

    /// The position after the messages that a page has received; `Some(None)` if some later ones are lost. `None` as for
    /// [`Client::start_of_page`].
    pub fn position_of_page(&self, channel: &[u8], sealed: &str) -> Option<Option<Position>> {
        let start = self.start_of_page(channel, sealed)?;
        let realtime = self.realtime.upgrade()?;
        Some(match start {
            StreamStart::Page(page) => realtime.hub.history()?.resume(page),
            StreamStart::Position(position) => Some(position),
            StreamStart::Unknown => None,
        })
    }

    /// The page of this client: a cache may have given a page to several clients, and each has received other messages.
    fn own_page(&self, page: PagePosition) -> PagePosition {
        let mut hasher = DefaultHasher::new();
        (page.page, self.peer.map(|peer| peer.ip())).hash(&mut hasher);
        PagePosition {
            page: hasher.finish().max(1),
            ..page
        }
    }

    /// Sends a message of the protocol about a subscription.
    pub(super) fn reply(&self, identifier: &str, kind: &str) {
        let reply = serde_json::json!({ "identifier": identifier, "type": kind });
        self.write(reply.to_string().as_bytes(), true);
    }

    /// Sends a message of a stream that was not published.
    fn send_to(&self, identifier: &str, message: &[u8]) {
        let mut text = br#"{"identifier":"#.to_vec();
        text.extend_from_slice(Value::from(identifier).to_string().as_bytes());
        text.extend_from_slice(br#","message":"#);
        text.extend_from_slice(message);
        text.push(b'}');
        self.write(&text, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by `ActiveSupport::MessageVerifier.new("secret", digest: "SHA256", serializer: JSON).generate("room")`.
    const SIGNED: &str = "InJvb20i--c6767fcc43bd1c52db471c20499b4fd6fe1e32a421b21f2b00a3f25efb3c9995";

    fn streams() -> SignedStreams {
        SignedStreams::new("Turbo::StreamsChannel", "app:", b"secret")
    }

    #[test]
    fn only_a_name_with_a_valid_signature_is_accepted() {
        let streams = streams();
        assert_eq!(streams.verified(SIGNED).as_deref(), Some("room"));
        for forged in [
            "",
            "--",
            "InJvb20i",
            "InJvb20i--",
            &SIGNED.to_uppercase(),
            &SIGNED.replace("InJvb20i", "InJvb21i"),
            &SIGNED[..SIGNED.len() - 1],
            &format!("{SIGNED}0"),
        ] {
            assert_eq!(streams.verified(forged), None, "{forged}");
        }
    }

    #[test]
    fn other_commands_and_channels_are_for_the_application() {
        let message = |command: &str, channel: &str, name: &str| {
            let identifier = serde_json::json!({ "channel": channel, "signed_stream_name": name }).to_string();
            serde_json::json!({ "command": command, "identifier": identifier })
                .to_string()
                .into_bytes()
        };
        let asks = |message: &[u8]| streams().subscription(message).map(|(_, name)| name);
        assert_eq!(
            asks(&message("subscribe", "Turbo::StreamsChannel", SIGNED)),
            Some("app:room".into())
        );
        assert_eq!(asks(&message("message", "Turbo::StreamsChannel", SIGNED)), None);
        assert_eq!(asks(&message("subscribe", "Turbo::StreamsChannel::Own", SIGNED)), None);
        assert_eq!(asks(&message("subscribe", "Turbo::StreamsChannel", "forged")), None);
        for garbage in [
            &b""[..],
            b"null",
            b"[]",
            b"{\"command\":\"subscribe\"}",
            b"{\"command\":\"subscribe\",\"identifier\":1}",
        ] {
            assert_eq!(asks(garbage), None);
        }
    }
}
