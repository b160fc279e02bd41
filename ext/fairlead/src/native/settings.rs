//! From the settings Hash that `lib/` makes from its option table to the engine's [`Config`] and [`Logs`].

use fairlead_engine::{Compression, Config, Context, FilesConfig, Format, Logs, Overflow, RequestTotals, Symlinks};
use magnus::{Error, RHash, Ruby, TryConvert, Value};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The settings, by name.
pub(crate) struct Settings<'a> {
    ruby: &'a Ruby,
    hash: RHash,
}

impl<'a> Settings<'a> {
    pub(crate) fn new(ruby: &'a Ruby, hash: RHash) -> Settings<'a> {
        Settings { ruby, hash }
    }

    /// The value of `name`, which must be there.
    pub(crate) fn get<T: TryConvert>(&self, name: &str) -> Result<T, Error> {
        self.hash.fetch(self.ruby.to_symbol(name))
    }

    fn seconds(&self, name: &str) -> Result<Duration, Error> {
        let seconds: f64 = self.get(name)?;
        Duration::try_from_secs_f64(seconds)
            .map_err(|error| Error::new(self.ruby.exception_arg_error(), format!("{name}: {error}")))
    }

    pub(crate) fn config(&self) -> Result<Config, Error> {
        let max_connections = self.get("max_connections")?;
        let descriptors = super::process::descriptors(max_connections);
        Ok(Config {
            min_threads: self.get("min_threads")?,
            max_threads: self.get("max_threads")?,
            head_timeout: self.seconds("head_timeout")?,
            head_max_bytes: self.get("head_max_bytes")?,
            head_max_fields: self.get("head_max_fields")?,
            target_max_bytes: self.get("target_max_bytes")?,
            body_timeout: self.seconds("body_timeout")?,
            body_min_rate: self.get("body_min_rate")?,
            body_max_bytes: self.get("body_max_bytes")?,
            body_memory_bytes: self.get("body_memory_bytes")?,
            temp_dir: PathBuf::from(self.get::<String>("temp_dir")?),
            keep_alive_timeout: self.seconds("keep_alive_timeout")?,
            write_timeout: self.seconds("write_timeout")?,
            write_min_rate: self.get("write_min_rate")?,
            response_memory_bytes: self.get("response_memory_bytes")?,
            response_disk_bytes: self.get("response_disk_bytes")?,
            response_memory_total_bytes: self.get("response_memory_total_bytes")?,
            response_disk_total_bytes: self.get("response_disk_total_bytes")?,
            max_connections: match max_connections {
                0 => descriptors.most_connections(),
                asked => asked,
            },
            descriptors,
            request_totals: self.request_totals()?,
            trim_memory: crate::memory::trim,
            waiting_room: self.get("waiting_room")?,
            early_hints: self.get("early_hints")?,
            message_max_bytes: self.get("message_max_bytes")?,
            client_pending_bytes: self.get("client_pending_bytes")?,
            messages_pending_bytes: self.get("messages_pending_bytes")?,
            client_overflow: self.client_overflow()?,
            ping_interval: self.get("ping_interval")?,
            max_pings: self.get("max_pings")?,
            deflate: self.deflate()?,
            deflate_min_bytes: self.get("deflate_min_bytes")?,
            files: self.files()?,
            compression: self.compression()?,
        })
    }

    /// One body has room on the disk in any case, if no other one is there.
    fn request_totals(&self) -> Result<Arc<RequestTotals>, Error> {
        let disk = match self.get("body_disk_total_bytes")? {
            0 => u64::MAX,
            total => self.get::<u64>("body_max_bytes")?.max(total),
        };
        Ok(RequestTotals::new(self.get("request_memory_total_bytes")?, disk))
    }

    fn files(&self) -> Result<FilesConfig, Error> {
        let roots: Vec<(Option<String>, PathBuf)> = self.get("sendfile_root")?;
        Ok(FilesConfig {
            public_dir: self.get("public_dir")?,
            hidden: self.get("public_hidden")?,
            symlinks: self.symlinks()?,
            cache_control: self.get("public_cache_control")?,
            sendfile_roots: roots,
            cache_bytes: self.get("file_cache_bytes")?,
        })
    }

    fn symlinks(&self) -> Result<Symlinks, Error> {
        match self.get::<Value>("public_symlinks")?.to_string().as_str() {
            "inside" => Ok(Symlinks::Inside),
            "none" => Ok(Symlinks::None),
            "all" => Ok(Symlinks::All),
            other => Err(self.unknown("public_symlinks", other)),
        }
    }

    fn compression(&self) -> Result<Option<Compression>, Error> {
        if !self.get::<bool>("compress")? {
            return Ok(None);
        }
        Ok(Some(Compression {
            min_bytes: self.get("compress_min_bytes")?,
            types: self.get("compress_types")?,
        }))
    }

    fn client_overflow(&self) -> Result<Overflow, Error> {
        match self.get::<Value>("client_overflow")?.to_string().as_str() {
            "close" => Ok(Overflow::Close),
            "drop" => Ok(Overflow::Drop),
            other => Err(self.unknown("client_overflow", other)),
        }
    }

    fn deflate(&self) -> Result<Option<Context>, Error> {
        match self.get::<Value>("deflate")?.to_string().as_str() {
            "none" => Ok(None),
            "message" => Ok(Some(Context::PerMessage)),
            "context" => Ok(Some(Context::Kept)),
            other => Err(self.unknown("deflate", other)),
        }
    }

    fn unknown(&self, name: &str, value: &str) -> Error {
        Error::new(self.ruby.exception_arg_error(), format!("{name}: {value}"))
    }

    pub(crate) fn logs(&self, prefix: String) -> Result<Logs, Error> {
        let format = self.get::<Value>("access_log_format")?.to_string();
        let format = Format::from_name(&format).ok_or_else(|| self.unknown("access_log_format", &format))?;
        let access: Option<i32> = self.get("access_log_fd")?;
        let errors: Option<i32> = self.get("error_log_fd")?;
        Ok(Logs {
            access: access.map(|fd| (borrow(fd), format)),
            errors: errors.map(borrow),
            prefix,
        })
    }
}

fn borrow(fd: i32) -> BorrowedFd<'static> {
    // SAFETY: lib/ keeps the descriptors of the logs open for as long as the process serves; it replaces the file behind a
    // number when logs are rotated, and never closes the number.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
