//! The listeners of the server. This process keeps them open while workers start and end.

use crate::settings::ListenerSettings;
use rustix::fs::{fstat, lstat, unlink};
use rustix::net::{shutdown, Shutdown};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Device and inode of a file.
pub type Identity = (u64, u64);

/// The file of a Unix socket of this server.
#[derive(Clone, Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: Identity,
}

impl SocketFile {
    fn at(path: &Path) -> Option<SocketFile> {
        let stat = lstat(path).ok()?;
        Some(SocketFile {
            path: path.into(),
            identity: fairlead_system::files::identity(&stat),
        })
    }

    /// Deletes the file, unless another one has replaced it.
    pub fn remove(&self) {
        if SocketFile::at(&self.path).is_some_and(|present| present.identity == self.identity) {
            let _ = unlink(&self.path);
        }
    }
}

/// A listener.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Its addresses.
    pub settings: ListenerSettings,
    socket: Arc<OwnedFd>,
    file: Option<SocketFile>,
}

impl Listener {
    /// A listener that a process of this server has opened.
    pub fn new(socket: OwnedFd, settings: ListenerSettings) -> Listener {
        Listener {
            file: settings.file.as_ref().and_then(|file| SocketFile::at(file.path())),
            socket: Arc::new(socket),
            settings,
        }
    }

    /// A listener of a previous supervisor program. `identity`: the identity of its file.
    pub fn restored(socket: OwnedFd, settings: ListenerSettings, identity: Option<Identity>) -> Listener {
        let path = settings.file.as_ref().map(|file| file.path().to_path_buf());
        Listener {
            file: path.zip(identity).map(|(path, identity)| SocketFile { path, identity }),
            socket: Arc::new(socket),
            settings,
        }
    }

    /// The identity of its file.
    pub fn identity(&self) -> Option<Identity> {
        self.file.as_ref().map(|file| file.identity)
    }

    /// The same socket with other addresses. The new code knows neither the owner of its file nor if systemd keeps it.
    pub fn renamed(&self, settings: &ListenerSettings) -> Listener {
        let mut listener = self.clone();
        listener.settings.binding.clone_from(&settings.binding);
        listener.settings.address.clone_from(&settings.address);
        listener
    }

    /// Returns true if both are the same socket.
    pub fn is(&self, other: &Listener) -> bool {
        match (fstat(&*self.socket), fstat(&*other.socket)) {
            (Ok(one), Ok(two)) => (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino),
            _ => false,
        }
    }

    /// Stops listening in all processes, and deletes the file of a Unix socket, if it is still the same file. A socket
    /// in systemd's store stays open there.
    pub fn remove(&self) {
        if self.settings.kept {
            return;
        }
        if let Some(file) = &self.file {
            file.remove();
        }
        let _ = shutdown(&*self.socket, Shutdown::Both);
    }

    /// Its inode, if it ends with the server.
    pub fn ending(&self) -> Option<u64> {
        let stat = fstat(&*self.socket).ok().filter(|_| !self.settings.kept)?;
        Some(stat.st_ino)
    }

    /// A copy of the descriptor.
    ///
    /// # Errors
    /// If there is no descriptor.
    pub fn copy(&self) -> std::io::Result<OwnedFd> {
        self.socket.try_clone()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SystemText;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn listener(path: &std::path::Path, kept: bool) -> Listener {
        let socket = UnixListener::bind(path).expect("a socket");
        let settings = ListenerSettings {
            descriptor: Some(0),
            binding: SystemText::default(),
            address: String::new(),
            file: (!kept).then(|| SystemText::from(path.as_os_str().to_owned())),
            kept,
        };
        Listener::new(socket.into(), settings)
    }

    #[test]
    fn a_removed_listener_refuses_connections_although_a_copy_is_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = listener(&path, false);
        let copy = listener.copy().expect("a descriptor");
        assert!(listener.is(&Listener::new(copy, listener.settings.clone())));
        let another_name = folder.path().join("name");
        std::fs::hard_link(&path, &another_name).expect("a second name");
        UnixStream::connect(&another_name).expect("it listens");
        listener.remove();
        assert!(!path.exists());
        UnixStream::connect(&another_name).expect_err("the listener is closed");
    }

    #[test]
    fn a_file_that_has_been_replaced_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let former = listener(&path, false);
        std::fs::remove_file(&path).expect("the file");
        let present = listener(&path, false);
        former.remove();
        UnixStream::connect(&path).expect("the other listener is open");
        assert!(!former.is(&present));
    }

    #[test]
    fn a_kept_listener_goes_on_elsewhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        listener(&path, true).remove();
        assert!(path.exists());
    }
}
