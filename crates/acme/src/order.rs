//! An order from start to end (RFC 8555 §7.4), with the library.

use crate::client::Client;
use crate::events::{Answer, Event, Events};
use crate::input::{Input, KnownAccount};
use crate::problem::Problem;
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error, ExternalAccountKey, Identifier, Key,
    NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use std::borrow::Cow;
use std::time::Duration;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Most repetitions of a step because the authority refuses one nonce after the other. The library tries each request
/// three times.
const NONCES: usize = 4;

/// Time limit for the authority's decision, and the polling interval.
const PATIENCE: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(300));

/// Problems that do not depend on the certificate to be replaced.
const FINAL: [&str; 6] = [
    "badNonce",
    "rateLimited",
    "connection",
    "timeout",
    "limit",
    "accountDoesNotExist",
];

/// The certificate and its chain, in PEM.
pub(crate) async fn order(input: &Input, client: &Client, events: &mut Events) -> Result<String, Problem> {
    let mut known = None;
    for attempt in 1.. {
        let result = attempt_order(input, client, events, &mut known).await;
        match result.map_err(|problem| with_time(problem, client)) {
            Err(problem) if problem.is_bad_nonce() && attempt < NONCES => {}
            result => return result,
        }
    }
    unreachable!("the last attempt has a result")
}

/// The time at which the authority wants a certificate to be renewed (RFC 9773 §4.2).
pub(crate) async fn renewal(input: &Input, client: &Client) -> Result<Event, Problem> {
    let none = || Problem::new("unsupported", "the account or the certificate is missing".to_owned());
    let (Some(account), Some(replaces)) = (&input.account, replaced(input)) else {
        return Err(none());
    };
    let url = account.url.clone().ok_or_else(none)?;
    let account =
        Account::builder_with_http(Box::new(client.clone())).from_parts(url, key_of(account), input.directory.clone());
    let account = account.await.map_err(Problem::from_library)?;
    let (info, again) = account.renewal_info(&replaces).await.map_err(|error| match error {
        Error::Unsupported(what) => Problem::new("unsupported", what.to_owned()),
        error => with_time(Problem::from_library(error), client),
    })?;
    Ok(Event::Renewal {
        start: info.suggested_window.start.unix_timestamp(),
        end: info.suggested_window.end.unix_timestamp(),
        again: again.as_secs(),
    })
}

/// Adds the pause that came with the problem.
fn with_time(problem: Problem, client: &Client) -> Problem {
    Problem {
        retry_after: problem.retry_after.or_else(|| client.retry_after()),
        ..problem
    }
}

async fn attempt_order(
    input: &Input,
    client: &Client,
    events: &mut Events,
    known: &mut Option<Account>,
) -> Result<String, Problem> {
    let account = match known {
        Some(account) => account.clone(),
        None => known.insert(enter(input, client).await?).clone(),
    };
    let mut order = place(input, &account).await?;
    prove(input, &mut order, events).await?;
    order.finalize_csr(&input.csr).await.map_err(Problem::from_library)?;
    order.poll_certificate(&PATIENCE).await.map_err(Problem::from_library)
}

/// The account: the stored one, after a change of its contact, or a new one, which is reported to the server.
async fn enter(input: &Input, client: &Client) -> Result<Account, Problem> {
    let (account, key) = match &input.account {
        Some(known) => match known_account(input, client, known).await? {
            Some(account) => (account, None),
            None => create(input, client).await?,
        },
        None => create(input, client).await?,
    };
    let contact: Vec<&str> = input.contact.iter().map(String::as_str).collect();
    let has_changed = key.is_none()
        && input
            .account
            .as_ref()
            .is_some_and(|known| known.contact != input.contact);
    if has_changed {
        account.update_contacts(&contact).await.map_err(Problem::from_library)?;
    }
    if has_changed || key.is_some() || input.account.as_ref().is_some_and(|known| known.url.is_none()) {
        Event::Account {
            url: account.id().to_owned(),
            key,
        }
        .tell();
    }
    Ok(account)
}

/// Finds the account by its address; or by its key alone, if the authority still knows it.
async fn known_account(input: &Input, client: &Client, known: &KnownAccount) -> Result<Option<Account>, Problem> {
    let builder = Account::builder_with_http(Box::new(client.clone()));
    let directory = input.directory.clone();
    if let Some(url) = &known.url {
        let account = builder.from_parts(url.clone(), key_of(known), directory).await;
        return account.map(Some).map_err(Problem::from_library);
    }
    let key = Key::from_pkcs8_der(key_of(known)).map_err(Problem::from_library)?;
    match builder
        .from_key((key, PrivateKeyDer::Pkcs8(key_of(known))), directory)
        .await
    {
        Ok((account, _)) => Ok(Some(account)),
        Err(error) => match Problem::from_library(error) {
            problem if ["accountDoesNotExist", "externalAccountRequired"].contains(&problem.kind.as_str()) => Ok(None),
            problem => Err(problem),
        },
    }
}

fn key_of(known: &KnownAccount) -> PrivatePkcs8KeyDer<'static> {
    PrivatePkcs8KeyDer::from(known.key.clone())
}

async fn create(input: &Input, client: &Client) -> Result<(Account, Option<Vec<u8>>), Problem> {
    let contact: Vec<&str> = input.contact.iter().map(String::as_str).collect();
    let wanted = NewAccount {
        contact: &contact,
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let external = input.external_account.as_ref();
    let external = external.map(|account| ExternalAccountKey::new(account.kid.clone(), &account.key));
    let builder = Account::builder_with_http(Box::new(client.clone()));
    let created = builder
        .create(&wanted, input.directory.clone(), external.as_ref())
        .await;
    let (account, credentials) = created.map_err(Problem::from_library)?;
    let key = credentials.private_key().secret_pkcs8_der().to_vec();
    Ok((account, Some(key)))
}

/// Places the order; as a replacement of a certificate, if the authority supports that (RFC 9773 §5).
async fn place(input: &Input, account: &Account) -> Result<Order, Problem> {
    let hosts: Vec<Identifier> = input.hosts.iter().cloned().map(Identifier::Dns).collect();
    if let Some(replaced) = replaced(input) {
        match account.new_order(&NewOrder::new(&hosts).replaces(replaced)).await {
            Ok(order) => return Ok(order),
            Err(Error::Unsupported(_)) => {}
            Err(error) => match Problem::from_library(error) {
                problem if FINAL.contains(&problem.kind.as_str()) => return Err(problem),
                // The certificate has been replaced already, or the authority does not know it.
                _ => {}
            },
        }
    }
    account
        .new_order(&NewOrder::new(&hosts))
        .await
        .map_err(Problem::from_library)
}

fn replaced(input: &Input) -> Option<CertificateIdentifier<'static>> {
    input.replaces.clone().map(|name| CertificateIdentifier {
        authority_key_identifier: Cow::Owned(name.authority),
        serial: Cow::Owned(name.serial),
    })
}

/// Proves control of the hosts. All challenge responses are in place before the authority is asked to check the first
/// one. The authority may already have verified some hosts.
async fn prove(input: &Input, order: &mut Order, events: &mut Events) -> Result<(), Problem> {
    let kind = match input.challenge.as_str() {
        "tls-alpn-01" => ChallengeType::TlsAlpn01,
        _ => ChallengeType::Http01,
    };
    let answers = answers(order, &kind).await?;
    if !answers.is_empty() {
        Event::Answers { answers }.tell();
        events.next().await?;
        begin(order, &kind).await?;
    }
    if matches!(order.state().status, OrderStatus::Ready) {
        return Ok(());
    }
    match order.poll_ready(&PATIENCE).await {
        Ok(OrderStatus::Ready) => Ok(()),
        Ok(_) => Err(refusal(order)
            .await?
            .unwrap_or_else(|| Problem::new("unauthorized", "the order is invalid".to_owned()))),
        Err(error @ Error::Api(_)) if matches!(order.state().status, OrderStatus::Invalid) => {
            Err(refusal(order).await?.unwrap_or_else(|| Problem::from_library(error)))
        }
        Err(error) => Err(Problem::from_library(error)),
    }
}

async fn answers(order: &mut Order, kind: &ChallengeType) -> Result<Vec<Answer>, Problem> {
    let mut answers = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(Problem::from_library)?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let host = authorization.identifier().to_string();
        let offered: Vec<String> = authorization
            .challenges
            .iter()
            .map(|challenge| name_of(&challenge.r#type))
            .collect();
        let challenge = authorization.challenge(kind.clone()).ok_or_else(|| {
            let text = format!(
                "{host}: the authority does not offer {}, but {}",
                name_of(kind),
                offered.join(", ")
            );
            Problem::new("unsupportedChallenge", text)
        })?;
        answers.push(Answer {
            host,
            token: challenge.token.clone(),
            authorization: challenge.key_authorization().as_str().to_owned(),
        });
    }
    Ok(answers)
}

fn name_of(kind: &ChallengeType) -> String {
    let name = match kind {
        ChallengeType::Http01 => "http-01",
        ChallengeType::Dns01 => "dns-01",
        ChallengeType::TlsAlpn01 => "tls-alpn-01",
        ChallengeType::DeviceAttest01 => "device-attest-01",
        ChallengeType::Unknown(name) => name,
        _ => "another one",
    };
    name.to_owned()
}

/// Asks the authority to check all challenges.
async fn begin(order: &mut Order, kind: &ChallengeType) -> Result<(), Problem> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(Problem::from_library)?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let host = authorization.identifier().to_string();
        if let Some(mut challenge) = authorization.challenge(kind.clone()) {
            challenge
                .set_ready()
                .await
                .map_err(|error| Problem::from_library(error).of_host(&host))?;
        }
    }
    Ok(())
}

/// The reason of a failed authorization, if the authority reports one.
async fn refusal(order: &mut Order) -> Result<Option<Problem>, Problem> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(Problem::from_library)?;
        authorization.refresh().await.map_err(Problem::from_library)?;
        let host = authorization.identifier().to_string();
        let error = authorization
            .challenges
            .iter()
            .find_map(|challenge| challenge.error.as_ref());
        if let Some(error) = error {
            return Ok(Some(Problem::from_document(error).of_host(&host)));
        }
    }
    Ok(None)
}
