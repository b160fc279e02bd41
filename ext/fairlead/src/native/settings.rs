//! From the settings Hash that `lib/` makes from its option table to the engine's [`Config`] and [`Logs`].

use fairlead_engine::{Compression, Config, Context, FilesConfig, Format, Logs, Overflow, RequestTotals, Symlinks};
use magnus::{Error, RHash, Ruby, TryConvert, Value};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A value of the option table, as the engine has it.
trait Setting: Sized {
    fn read(settings: &Settings<'_>, name: &str) -> Result<Self, Error>;
}

/// Makes a [`Config`]: first the fields that have the name of an option, then those that are made of several options.
macro_rules! config {
    ($settings:ident: $($name:ident),+; $($field:ident: $value:expr),+ $(,)?) => {
        Config {
            $($name: Setting::read($settings, stringify!($name))?,)+
            $($field: $value,)+
        }
    };
}

/// The settings, by name.
pub(crate) struct Settings<'a> {
    ruby: &'a Ruby,
    hash: RHash,
}

impl<'a> Settings<'a> {
    pub(crate) fn new(ruby: &'a Ruby, hash: RHash) -> Settings<'a> {
        Settings { ruby, hash }
    }

    /// The value of `name`, which must be there. (`RHash::fetch` would call the block of the running method if it is not.)
    pub(crate) fn get<T: TryConvert>(&self, name: &str) -> Result<T, Error> {
        let value = self.hash.get(self.ruby.to_symbol(name));
        T::try_convert(value.ok_or_else(|| self.missing(name))?)
    }

    /// A setting with a choice of names: the name.
    fn choice(&self, name: &str) -> Result<String, Error> {
        Ok(self.get::<Value>(name)?.to_string())
    }

    pub(crate) fn config(&self) -> Result<Config, Error> {
        let max_connections = self.get("max_connections")?;
        let descriptors = super::process::descriptors(max_connections);
        Ok(config! { self:
            min_threads, max_threads, waiting_room, early_hints,
            head_timeout, head_max_bytes, head_max_fields, target_max_bytes,
            body_timeout, body_min_rate, body_max_bytes, body_memory_bytes, temp_dir,
            keep_alive_timeout, write_timeout, write_min_rate,
            response_memory_bytes, response_disk_bytes, response_memory_total_bytes, response_disk_total_bytes,
            message_max_bytes, client_pending_bytes, messages_pending_bytes, client_overflow,
            ping_interval, max_pings, deflate, deflate_min_bytes;
            max_connections: match max_connections {
                0 => descriptors.most_connections(),
                asked => asked,
            },
            descriptors: descriptors,
            request_totals: self.request_totals()?,
            trim_memory: crate::memory::trim,
            files: self.files()?,
            compression: self.compression()?,
        })
    }

    /// The disk has room for one body of the largest size, whatever the total says.
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
            symlinks: Setting::read(self, "public_symlinks")?,
            cache_control: self.get("public_cache_control")?,
            sendfile_roots: roots,
            cache_bytes: self.get("file_cache_bytes")?,
        })
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

    fn missing(&self, name: &str) -> Error {
        Error::new(
            self.ruby.exception_key_error(),
            format!("the setting {name} is missing"),
        )
    }

    fn unknown(&self, name: &str, value: &str) -> Error {
        Error::new(
            self.ruby.exception_arg_error(),
            format!("the setting {name} cannot be {value}"),
        )
    }

    pub(crate) fn logs(&self, prefix: String) -> Result<Logs, Error> {
        let format = self.choice("access_log_format")?;
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

/// Types that magnus converts.
macro_rules! plain {
    ($($kind:ty),+) => {
        $(impl Setting for $kind {
            fn read(settings: &Settings<'_>, name: &str) -> Result<Self, Error> {
                settings.get(name)
            }
        })+
    };
}

plain!(bool, u32, u64, usize, PathBuf);

/// Ruby has seconds.
impl Setting for Duration {
    fn read(settings: &Settings<'_>, name: &str) -> Result<Self, Error> {
        Duration::try_from_secs_f64(settings.get(name)?).map_err(|error| {
            Error::new(
                settings.ruby.exception_arg_error(),
                format!("the setting {name}: {error}"),
            )
        })
    }
}

impl Setting for Symlinks {
    fn read(settings: &Settings<'_>, name: &str) -> Result<Self, Error> {
        match settings.choice(name)?.as_str() {
            "inside" => Ok(Symlinks::Inside),
            "none" => Ok(Symlinks::None),
            "all" => Ok(Symlinks::All),
            other => Err(settings.unknown(name, other)),
        }
    }
}

impl Setting for Overflow {
    fn read(settings: &Settings<'_>, name: &str) -> Result<Self, Error> {
        match settings.choice(name)?.as_str() {
            "close" => Ok(Overflow::Close),
            "drop" => Ok(Overflow::Drop),
            other => Err(settings.unknown(name, other)),
        }
    }
}

/// What a connection keeps between compressed messages; `None` if messages are not compressed.
impl Setting for Option<Context> {
    fn read(settings: &Settings<'_>, name: &str) -> Result<Self, Error> {
        match settings.choice(name)?.as_str() {
            "none" => Ok(None),
            "message" => Ok(Some(Context::PerMessage)),
            "context" => Ok(Some(Context::Kept)),
            other => Err(settings.unknown(name, other)),
        }
    }
}

fn borrow(fd: i32) -> BorrowedFd<'static> {
    // SAFETY: lib/ keeps the descriptors of the logs open for as long as the process serves; it replaces the file behind a
    // number when logs are rotated, and never closes the number.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
