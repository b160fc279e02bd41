//! `Fairlead::Native::Tls`: the TLS settings of a listener, which can be replaced while engines use it.

use crate::gvl::compute_without_gvl;
use fairlead_engine::{CertificateSettings, ClientAuthentication, Source, TicketKeys, Tls, TlsSettings};
use magnus::{function, method, prelude::*, Error, RArray, RHash, RModule, RString, Ruby, TryConvert, Value};
use std::sync::Arc;

#[magnus::wrap(class = "Fairlead::Native::Tls", free_immediately, size)]
pub(super) struct NativeTls {
    tls: Arc<Tls>,
}

pub(super) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Tls", ruby.class_object())?;
    crate::classes::know::<NativeTls>(ruby);
    class.define_singleton_method("new", function!(NativeTls::new, 1))?;
    class.define_method("replace", method!(NativeTls::replace, 1))?;
    class.define_method("warnings", method!(NativeTls::warnings, 0))?;
    class.define_method("fingerprint", method!(NativeTls::fingerprint, 0))
}

impl NativeTls {
    /// `new(settings)`; an ArgumentError says what is wrong with them, as a sentence.
    fn new(ruby: &Ruby, hash: RHash) -> Result<NativeTls, Error> {
        let tls = load(ruby, hash, Tls::new)?;
        Ok(NativeTls { tls: Arc::new(tls) })
    }

    /// `replace(settings)`: applies to new connections. Invalid settings change nothing. Returns true if the settings
    /// differ from the previous ones.
    fn replace(ruby: &Ruby, this: &NativeTls, hash: RHash) -> Result<bool, Error> {
        load(ruby, hash, |settings| this.tls.replace(settings))
    }

    /// Fingerprint in hexadecimal digits; see [`Tls::fingerprint`].
    fn fingerprint(&self) -> String {
        let digits = self.tls.fingerprint();
        digits.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn warnings(&self) -> Vec<String> {
        self.tls.warnings()
    }

    /// For a listener. Its sessions are resumed with these keys, or with keys of this process if there are none.
    pub(super) fn shared(&self, keys: Option<&'static TicketKeys>) -> Arc<Tls> {
        if let Some(keys) = keys {
            self.tls.share_keys(keys);
        }
        Arc::clone(&self.tls)
    }
}

/// Settings larger than this, in bytes, leave much free memory behind when they have been read.
const LARGE: usize = 1 << 20;

/// Reads the settings without the GVL, because a revocation list may have millions of entries.
fn load<T: Send>(
    ruby: &Ruby,
    hash: RHash,
    code: impl FnOnce(&TlsSettings) -> Result<T, String> + Send,
) -> Result<T, Error> {
    let settings = settings(ruby, hash)?;
    let list = settings.revocation_lists.as_ref();
    let is_large = list.is_some_and(|list| list.bytes.len() > LARGE);
    let loaded = compute_without_gvl(ruby, || {
        let loaded = code(&settings);
        drop(settings);
        if is_large {
            crate::memory::trim();
        }
        loaded
    })?;
    loaded.map_err(|text| refused(ruby, text))
}

fn refused(ruby: &Ruby, text: String) -> Error {
    Error::new(ruby.exception_arg_error(), text)
}

fn settings(ruby: &Ruby, hash: RHash) -> Result<TlsSettings, Error> {
    let certificates: RArray = get(ruby, hash, "certificates")?;
    let ticket_keys: RArray = get(ruby, hash, "ticket_keys")?;
    let mode: String = get(ruby, hash, "verify_mode")?;
    Ok(TlsSettings {
        certificates: certificates
            .into_iter()
            .map(certificate)
            .collect::<Result<_, Error>>()?,
        client_authentication: match mode.as_str() {
            "none" => ClientAuthentication::None,
            "peer" => ClientAuthentication::Optional,
            _ => ClientAuthentication::Required,
        },
        client_authorities: source(get(ruby, hash, "ca")?)?,
        revocation_lists: source(get(ruby, hash, "crl")?)?,
        is_tls13_only: get(ruby, hash, "tls13_only")?,
        http2: get(ruby, hash, "http2")?,
        acme_challenges: get(ruby, hash, "acme_challenges")?,
        ticket_keys: ticket_keys
            .into_iter()
            .map(source)
            .filter_map(Result::transpose)
            .collect::<Result<_, Error>>()?,
    })
}

fn get<T: TryConvert>(ruby: &Ruby, hash: RHash, name: &str) -> Result<T, Error> {
    let value = hash.get(ruby.to_symbol(name));
    T::try_convert(value.unwrap_or_else(|| ruby.qnil().as_value()))
}

/// `[chain, key, ocsp or nil]`; each item is a pair as below.
fn certificate(value: Value) -> Result<CertificateSettings, Error> {
    let parts = RArray::try_convert(value)?;
    Ok(CertificateSettings {
        chain: source(parts.entry(0)?)?.unwrap_or_default(),
        key: source(parts.entry(1)?)?.unwrap_or_default(),
        ocsp: source(parts.entry(2)?)?,
    })
}

/// `[name, bytes]`, or nil.
fn source(value: Value) -> Result<Option<Source>, Error> {
    if value.is_nil() {
        return Ok(None);
    }
    let pair = RArray::try_convert(value)?;
    let bytes: RString = pair.entry(1)?;
    // SAFETY: the bytes are copied at once, while the array keeps the String alive and no Ruby runs.
    let bytes = unsafe { bytes.as_slice() }.to_vec();
    Ok(Some(Source::new(pair.entry::<String>(0)?, bytes)))
}
