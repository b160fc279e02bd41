//! The configuration that a process of the server has reported: its settings, and their descriptors.

use crate::hot_restart_state::{Luggage, Package};
use crate::listeners::{Identity, Listener};
use crate::settings::{ListenerSettings, Settings};
use crate::versions::versions;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};

/// Longest settings, in bytes: an environment is 2 MiB at most.
const LONGEST: u64 = 16 * 1024 * 1024;

/// Settings, with their open listeners.
#[derive(Debug)]
pub struct Configuration {
    /// The plain data.
    pub settings: Settings,
    /// The listeners for clients.
    pub listeners: Vec<Listener>,
    /// The listener of the control server.
    pub control: Option<Listener>,
    /// The listener of the health endpoints.
    pub health: Option<Listener>,
    /// The publish socket; nothing if another server has the one of the settings.
    pub publishing: Option<Listener>,
}

/// Descriptors that settings refer to by index.
struct Descriptors<'a> {
    all: Vec<Option<OwnedFd>>,
    /// Has the listeners that the settings refer to only by address.
    present: Option<&'a Configuration>,
}

impl Configuration {
    /// Reads settings, as JSON, from a file in memory. `descriptors`: the descriptors that came with it. `present`: the
    /// configuration in force, with the listeners that the new one continues to use.
    ///
    /// # Errors
    /// If they cannot be read, or come from an incompatible version: a sentence.
    pub fn read(
        file: OwnedFd,
        descriptors: Vec<OwnedFd>,
        present: Option<&Configuration>,
    ) -> Result<Configuration, String> {
        let settings = read_settings(file)?;
        let mut descriptors = Descriptors {
            all: descriptors.into_iter().map(Some).collect(),
            present,
        };
        Configuration::with_listeners(settings, |settings| descriptors.listener(settings))
    }

    /// Describes the configuration for another supervisor program: its settings, and the identities of the files of its
    /// listeners. Adds their descriptors to `luggage`.
    ///
    /// # Errors
    /// If descriptors are short.
    pub fn save(&self, luggage: &mut Luggage) -> io::Result<(Settings, Vec<Option<Identity>>)> {
        let mut add = |listener: &Listener| {
            let descriptor = Some(luggage.add(listener.as_fd())?);
            Ok::<_, io::Error>(ListenerSettings {
                descriptor,
                ..listener.settings.clone()
            })
        };
        let mut settings = self.settings.clone();
        settings.listeners = self.listeners.iter().map(&mut add).collect::<Result<_, _>>()?;
        if let (Some(settings), Some(listener)) = (&mut settings.control, &self.control) {
            settings.listener = add(listener)?;
        }
        settings.health = self.health.as_ref().map(&mut add).transpose()?;
        settings.publishing = self.publishing.as_ref().map(&mut add).transpose()?;
        Ok((settings, self.all_listeners().map(Listener::identity).collect()))
    }

    /// Restores the configuration.
    ///
    /// # Errors
    /// If a descriptor is missing, or descriptors are short: a sentence.
    pub fn restore(
        settings: Settings,
        identities: &[Option<Identity>],
        package: &Package,
    ) -> Result<Configuration, String> {
        let mut identities = identities.iter().copied();
        Configuration::with_listeners(settings, |settings| {
            let index = settings
                .descriptor
                .ok_or("a listener is missing from the state of the supervisor")?;
            let identity = identities.next().flatten();
            Ok(Listener::restored(
                package.descriptor(index)?,
                settings.clone(),
                identity,
            ))
        })
    }

    /// Calls `listener` for each one, in the order of [`Configuration::all_listeners`]. A server goes on without a publish
    /// socket.
    fn with_listeners(
        settings: Settings,
        mut listener: impl FnMut(&ListenerSettings) -> Result<Listener, String>,
    ) -> Result<Configuration, String> {
        Ok(Configuration {
            listeners: settings.listeners.iter().map(&mut listener).collect::<Result<_, _>>()?,
            control: settings
                .control
                .as_ref()
                .map(|control| listener(&control.listener))
                .transpose()?,
            health: settings.health.as_ref().map(&mut listener).transpose()?,
            publishing: settings.publishing.as_ref().and_then(|one| listener(one).ok()),
            settings,
        })
    }

    /// All listeners: for clients, of the control server, of the health endpoints, and the publish socket.
    pub fn all_listeners(&self) -> impl Iterator<Item = &Listener> {
        let services = self.control.iter().chain(&self.health).chain(&self.publishing);
        self.listeners.iter().chain(services)
    }

    /// Stops listening on the listeners that `other` does not have.
    pub fn remove_listeners_but(&self, other: Option<&Configuration>) {
        let kept: Vec<&Listener> = other.into_iter().flat_map(Configuration::all_listeners).collect();
        for listener in self.all_listeners() {
            if !kept.iter().any(|one| one.is(listener)) {
                listener.remove();
            }
        }
    }
}

impl Descriptors<'_> {
    fn listener(&mut self, settings: &ListenerSettings) -> Result<Listener, String> {
        let mut present = self.present.into_iter().flat_map(Configuration::all_listeners);
        let Some(index) = settings.descriptor else {
            let same = present.find(|one| one.settings.binding == settings.binding);
            return same
                .cloned()
                .ok_or_else(|| format!("cannot listen on {}: the address is in use", settings.address));
        };
        let socket = self.all.get_mut(index).and_then(Option::take);
        let socket = socket.ok_or_else(|| format!("no descriptor came for the listener of {}", settings.address))?;
        let listener = Listener::new(socket, settings.clone());
        Ok(match present.find(|one| one.is(&listener)) {
            Some(former) => former.renamed(settings),
            None => listener,
        })
    }
}

fn read_settings(file: OwnedFd) -> Result<Settings, String> {
    #[derive(serde::Deserialize)]
    struct Version {
        protocol: u32,
    }
    let (mut file, mut text) = (File::from(file), Vec::new());
    file.rewind()
        .map_err(|error| format!("the settings cannot be read: {error}"))?; // the writer has left the offset at the end
    file.take(LONGEST)
        .read_to_end(&mut text)
        .map_err(|error| format!("the settings cannot be read: {error}"))?;
    let unusable = |error: serde_json::Error| format!("the settings cannot be used: {error}");
    let version: Version = serde_json::from_slice(&text).map_err(unusable)?;
    let own = versions().protocol;
    if version.protocol != own {
        let other = version.protocol;
        return Err(format!(
            "the new code speaks protocol {other} and this supervisor {own}"
        ));
    }
    serde_json::from_slice(&text).map_err(unusable)
}
