//! The options of TLS.

use super::flags::Flags;
use super::values::{is_some, Version};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::SupportedProtocolVersion;
use serde::{Serialize, Serializer};
use std::fmt::Display;
use std::sync::Arc;

/// TLS settings; present only if a URL asks for TLS.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TlsOptions {
    pub(crate) trust: Trust,
    /// The client's own certificate.
    #[serde(rename = "certificate", serialize_with = "is_some")]
    pub(crate) identity: Option<Arc<Identity>>,
    /// `None`: the newest version that both sides support.
    pub(crate) version: Option<Version>,
    /// A connection resumes the TLS session of the one that it replaces.
    pub(crate) resume: bool,
}

/// Trusted certificates.
#[derive(Clone, Debug)]
pub(crate) enum Trust {
    System,
    Authorities(Vec<CertificateDer<'static>>),
    Anybody,
}

impl Trust {
    /// The value in JSON.
    fn name(&self) -> &'static str {
        match self {
            Trust::System => "system",
            Trust::Authorities(_) => "cacert",
            Trust::Anybody => "anybody",
        }
    }
}

impl Serialize for Trust {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A certificate chain with its key.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Options for every URL that asks for TLS.
pub(super) const TLS: &str = "--insecure --cacert --cert --key --tls-version";
/// Options that also need replaced connections.
pub(super) const RESUMPTION: &str = "--resume --no-resume";

impl TlsOptions {
    /// The TLS versions that the client offers.
    pub(crate) fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        static ONLY_12: [&SupportedProtocolVersion; 1] = [&TLS12];
        static ONLY_13: [&SupportedProtocolVersion; 1] = [&TLS13];
        match self.version {
            None => rustls::DEFAULT_VERSIONS,
            Some(Version::Tls12) => &ONLY_12,
            Some(Version::Tls13) => &ONLY_13,
        }
    }
}

/// The options of TLS; `None` if no URL asks for it.
pub(super) fn tls(flags: &Flags, secure: bool) -> Result<Option<TlsOptions>, String> {
    if !secure {
        return match flags.first_of(TLS).or(flags.first_of(RESUMPTION)) {
            Some(name) => Err(format!("{name} needs an https or wss URL")),
            None => Ok(None),
        };
    }
    let trust = match &flags.cacert {
        Some(file) => Trust::Authorities(certificates("--cacert", file)?),
        None if flags.insecure => Trust::Anybody,
        None => Trust::System,
    };
    Ok(Some(TlsOptions {
        trust,
        identity: identity(flags)?.map(Arc::new),
        version: flags.tls_version,
        resume: flags.resume,
    }))
}

/// The key may be in the certificate's file.
fn identity(flags: &Flags) -> Result<Option<Identity>, String> {
    let Some(cert) = &flags.cert else {
        return match flags.key {
            Some(_) => Err("--key needs --cert".into()),
            None => Ok(None),
        };
    };
    let (option, file) = flags.key.as_ref().map_or(("--cert", cert), |key| ("--key", key));
    let key = PrivateKeyDer::from_pem_slice(&read(option, file)?);
    Ok(Some(Identity {
        chain: certificates("--cert", cert)?,
        key: key.map_err(|error| problem(option, file, error))?,
    }))
}

fn certificates(option: &str, file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = read(option, file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| problem(option, file, error))?;
    if found.is_empty() {
        return Err(problem(option, file, "there is no certificate in it"));
    }
    Ok(found)
}

fn read(option: &str, file: &str) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| problem(option, file, error))
}

fn problem(option: &str, file: &str, why: impl Display) -> String {
    format!("{option}: {file}: {why}")
}

#[cfg(test)]
mod tests {
    use super::super::{options, parse};
    use super::*;

    const HTTPS: &str = "https://localhost/";

    fn refusal(args: &[&str]) -> String {
        let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
        parse(&args).expect_err("should be refused")
    }

    #[test]
    fn the_defaults_are_those_of_a_careful_client_that_remembers_nothing() {
        let tls = options(&[HTTPS]).tls.expect("TLS");
        assert_eq!((tls.trust.name(), tls.version, tls.resume), ("system", None, false));
        assert!(tls.identity.is_none());
        assert_eq!(tls.versions().len(), 2);
    }

    #[test]
    fn options_of_tls_are_taken_over() {
        let tls = options(&[HTTPS, "-k", "--tls-version", "1.2", "--resume"])
            .tls
            .expect("TLS");
        assert_eq!(
            (tls.trust.name(), tls.version, tls.resume),
            ("anybody", Some(Version::Tls12), true)
        );
        assert_eq!(tls.versions(), [&TLS12]);
        assert!(
            !options(&[HTTPS, "--resume", "--no-resume"]).tls.expect("TLS").resume,
            "the last one counts"
        );
    }

    #[test]
    fn wrong_usage_is_named() {
        let table: [(&[&str], &str); 11] = [
            (&["http://h/", "--insecure"], "--insecure needs an https or wss URL"),
            (&["http://h/", "--no-resume"], "--no-resume needs an https or wss URL"),
            (&["ws://h/", "--cacert", "x"], "--cacert needs an https or wss URL"),
            (&["wss://h/", "--resume"], "--resume does not go with echoes"),
            (&[HTTPS, "-k", "--cacert", "x"], "cannot be used with '--cacert <FILE>'"),
            (
                &[HTTPS, "--cacert", "/nowhere/at/all"],
                "--cacert: /nowhere/at/all: No such file",
            ),
            (
                &[HTTPS, "--cacert", "/dev/null"],
                "--cacert: /dev/null: there is no certificate in it",
            ),
            (
                &[HTTPS, "--cert", "/nowhere/at/all"],
                "--cert: /nowhere/at/all: No such file",
            ),
            (&[HTTPS, "--cert", "/dev/null"], "--cert: /dev/null: "),
            (&[HTTPS, "--key", "x"], "--key needs --cert"),
            (&[HTTPS, "--tls-version", "1.1"], "[possible values: 1.2, 1.3]"),
        ];
        for (args, reason) in table {
            let refusal = refusal(args);
            assert!(refusal.contains(reason), "{args:?}: {refusal}");
        }
    }

    #[test]
    fn a_place_to_publish_may_be_the_only_one_that_wants_tls() {
        let args = ["http://h/", "--sse", "--publish", "https://h/", "-k"];
        assert!(parse(&args.map(str::to_owned)).is_ok());
    }
}
