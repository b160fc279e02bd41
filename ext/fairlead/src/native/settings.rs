//! Converts the settings Hash that `lib/` makes from its option table into the engine's [`Config`] and [`Logs`]: one
//! implementation for each type of a field. An option with one of these types needs no code here.

use fairlead_engine::{
    Compression, Config, Context, Descriptors, FairBy, FilesConfig, Format, ForwardedFields, HttpsRedirect, LogSample,
    Logs, Overflow, RemoteAddress, RequestTotals, Scheme, ServerTiming, Setting, Symlinks, TrustedProxies,
};
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

    /// Returns the setting `name`, which must be there. (`RHash::fetch` would call the block of the running method if
    /// it is not.)
    pub(crate) fn get<T: TryConvert>(&self, name: &str) -> Result<T, Error> {
        let value = self.hash.get(self.ruby.to_symbol(name));
        T::try_convert(value.ok_or_else(|| self.missing(name))?)
    }

    /// The name in a setting with a choice of names.
    fn choice(&self, name: &str) -> Result<String, Error> {
        Ok(self.get::<Value>(name)?.to_string())
    }

    pub(crate) fn config(&self) -> Result<Config, Error> {
        let mut config = Config::read(self)?;
        let most = config.descriptors.most_connections();
        config.max_connections = match config.max_connections {
            0 => most,
            asked => asked.min(most),
        };
        Ok(config)
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
        let format = self.setting("access_log_format")?;
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
    ($($type:ty),+ $(,)?) => {
        $(impl Setting<$type> for Settings<'_> {
            type Error = Error;

            fn setting(&self, option: &'static str) -> Result<$type, Error> {
                self.get(option)
            }
        })+
    };
}

plain!(
    bool,
    u32,
    u64,
    usize,
    PathBuf,
    Option<PathBuf>,
    Option<String>,
    Vec<String>,
    Vec<(String, String)>,
    Vec<(Option<String>, PathBuf)>,
    Vec<(Vec<u16>, PathBuf)>,
);

/// Types with a fixed set of names as values.
macro_rules! choices {
    ($($type:ty { $($word:literal => $value:expr),+ $(,)? })+) => {
        $(impl Setting<$type> for Settings<'_> {
            type Error = Error;

            fn setting(&self, option: &'static str) -> Result<$type, Error> {
                match self.choice(option)?.as_str() {
                    $($word => Ok($value),)+
                    other => Err(self.unknown(option, other)),
                }
            }
        })+
    };
}

choices! {
    Symlinks { "inside" => Symlinks::Inside, "none" => Symlinks::None, "all" => Symlinks::All }
    Overflow { "close" => Overflow::Close, "drop" => Overflow::Drop }
    Option<Context> { "none" => None, "message" => Some(Context::PerMessage), "context" => Some(Context::Kept) }
    ForwardedFields {
        "all" => ForwardedFields::All,
        "x_forwarded" => ForwardedFields::XForwarded,
        "forwarded" => ForwardedFields::Forwarded,
    }
    ServerTiming { "false" => ServerTiming::Never, "true" => ServerTiming::Always, "trusted" => ServerTiming::Trusted }
    Option<Scheme> { "" => None, "http" => Some(Scheme::Http), "https" => Some(Scheme::Https) }
}

impl Setting<Format> for Settings<'_> {
    type Error = Error;

    fn setting(&self, option: &'static str) -> Result<Format, Error> {
        let text: String = self.get(option)?;
        text.parse().map_err(|()| self.unknown(option, &text))
    }
}

impl Setting<LogSample> for Settings<'_> {
    type Error = Error;

    fn setting(&self, option: &'static str) -> Result<LogSample, Error> {
        let text: String = self.get(option)?;
        text.parse().map_err(|()| self.unknown(option, &text))
    }
}

impl Setting<RemoteAddress> for Settings<'_> {
    type Error = Error;

    fn setting(&self, option: &'static str) -> Result<RemoteAddress, Error> {
        let text: String = self.get(option)?;
        text.parse().map_err(|()| self.unknown(option, &text))
    }
}

impl Setting<HttpsRedirect> for Settings<'_> {
    type Error = Error;

    fn setting(&self, option: &'static str) -> Result<HttpsRedirect, Error> {
        let text: String = self.get(option)?;
        text.parse().map_err(|()| self.unknown(option, &text))
    }
}

impl Setting<FairBy> for Settings<'_> {
    type Error = Error;

    fn setting(&self, option: &'static str) -> Result<FairBy, Error> {
        Ok(self
            .choice(option)?
            .parse()
            .unwrap_or_else(|never: std::convert::Infallible| match never {}))
    }
}

impl Setting<TrustedProxies> for Settings<'_> {
    type Error = Error;

    fn setting(&self, option: &'static str) -> Result<TrustedProxies, Error> {
        TrustedProxies::parse(self.get(option)?).map_err(|text| self.unknown(option, &text))
    }
}

/// Seconds.
impl Setting<Duration> for Settings<'_> {
    type Error = Error;

    fn setting(&self, option: &'static str) -> Result<Duration, Error> {
        Duration::try_from_secs_f64(self.get(option)?).map_err(|error| {
            Error::new(
                self.ruby.exception_arg_error(),
                format!("the setting {option}: {error}"),
            )
        })
    }
}

/// Pairs of a path and seconds.
impl Setting<Vec<(String, Duration)>> for Settings<'_> {
    type Error = Error;

    fn setting(&self, option: &'static str) -> Result<Vec<(String, Duration)>, Error> {
        let rules = self.get::<Vec<(String, f64)>>(option)?.into_iter();
        let rules = rules.map(|(path, seconds)| match Duration::try_from_secs_f64(seconds) {
            Ok(time) => Ok((path, time)),
            Err(_) => Err(self.unknown(option, &seconds.to_string())),
        });
        rules.collect()
    }
}

impl Setting<Arc<Descriptors>> for Settings<'_> {
    type Error = Error;

    fn setting(&self, _field: &'static str) -> Result<Arc<Descriptors>, Error> {
        Ok(super::process::descriptors(self.get("max_connections")?))
    }
}

/// The disk has room for one body of the largest size, even if the total is less.
impl Setting<Arc<RequestTotals>> for Settings<'_> {
    type Error = Error;

    fn setting(&self, _field: &'static str) -> Result<Arc<RequestTotals>, Error> {
        let disk = match self.get("body_disk_total_bytes")? {
            0 => u64::MAX,
            total => self.get::<u64>("body_max_bytes")?.max(total),
        };
        Ok(RequestTotals::new(self.get("request_memory_total_bytes")?, disk))
    }
}

impl Setting<fn()> for Settings<'_> {
    type Error = Error;

    fn setting(&self, _field: &'static str) -> Result<fn(), Error> {
        Ok(crate::memory::trim)
    }
}

impl Setting<fn() -> u64> for Settings<'_> {
    type Error = Error;

    fn setting(&self, _field: &'static str) -> Result<fn() -> u64, Error> {
        Ok(crate::memory::resident)
    }
}

impl Setting<FilesConfig> for Settings<'_> {
    type Error = Error;

    fn setting(&self, _field: &'static str) -> Result<FilesConfig, Error> {
        FilesConfig::read(self)
    }
}

impl Setting<Option<Compression>> for Settings<'_> {
    type Error = Error;

    fn setting(&self, _field: &'static str) -> Result<Option<Compression>, Error> {
        self.get::<bool>("compress")?
            .then(|| Compression::read(self))
            .transpose()
    }
}

fn borrow(fd: i32) -> BorrowedFd<'static> {
    // SAFETY: lib/ keeps the descriptors of the logs open for as long as the process serves; it replaces the file
    // behind a number when logs are rotated, and never closes the number.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
