//! Requests to an authority, within limits: an order always ends and uses little memory, even with a hostile or slow
//! authority.

use crate::dial::{Dialer, Origin};
use crate::input::Input;
use crate::problem::{readable, Problem};
use crate::trust;
use bytes::Bytes;
use http::header::{HeaderValue, CONTENT_LENGTH, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// The longest time from a request to the end of its response.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The longest response, in bytes. A certificate with its chain has a tenth of that.
const ANSWER_MOST: usize = 128 * 1024;

/// Limit for all responses of an order together, in bytes.
const ORDER_MOST: usize = 8 * 1024 * 1024;

/// Limit for the requests of an order, without its hosts; and for each host.
const REQUESTS_MOST: usize = 200;
const REQUESTS_PER_HOST: usize = 10;

/// The HTTP client for the library.
#[derive(Clone)]
pub(crate) struct Client(Arc<Shared>);

struct Shared {
    dialer: Dialer,
    agent: HeaderValue,
    state: Mutex<State>,
}

struct State {
    /// Connections for reuse.
    idle: HashMap<Origin, SendRequest<Full<Bytes>>>,
    requests_left: usize,
    bytes_left: usize,
    /// The pause in seconds that the authority has asked for in its last refusal.
    retry_after: Option<u64>,
}

impl Client {
    pub(crate) fn new(input: &Input) -> Result<Client, Problem> {
        let tls = trust::settings(input.ca.as_deref())?;
        let agent = HeaderValue::from_str(&input.agent).unwrap_or(HeaderValue::from_static("fairlead"));
        Ok(Client(Arc::new(Shared {
            dialer: Dialer::new(tls, input.proxy.clone()),
            agent,
            state: Mutex::new(State {
                idle: HashMap::new(),
                requests_left: REQUESTS_MOST + REQUESTS_PER_HOST * input.hosts.len(),
                bytes_left: ORDER_MOST,
                retry_after: None,
            }),
        })))
    }

    /// The pause in seconds that the authority has asked for in its last refusal.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.0.state().retry_after
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let answer = tokio::time::timeout(TIMEOUT, shared.answer(request)).await;
            let late = |_| {
                Problem::new(
                    "timeout",
                    format!("no response from the authority within {} s", TIMEOUT.as_secs()),
                )
            };
            let answer = answer.map_err(late).and_then(|answer| answer);
            let (answer, is_signed) = answer.map_err(|problem| Error::Other(Box::new(problem)))?;
            // The library checks only the responses to signed requests.
            if !is_signed && !answer.status().is_success() {
                let document = answer
                    .into_body()
                    .collect()
                    .await
                    .map(http_body_util::Collected::to_bytes);
                return Err(Error::Api(serde_json::from_slice(&document.unwrap_or_default())?));
            }
            Ok(BytesResponse::from(answer))
        })
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The complete response, and true if the request was signed. A refusal gets a valid problem document.
    async fn answer(&self, request: Request<BodyWrapper<Bytes>>) -> Result<(Response<Full<Bytes>>, bool), Problem> {
        self.count_request()?;
        let uri = request.uri().clone();
        let is_signed = request.method() == Method::POST;
        let response = self.send(request, &Origin::of(&uri)?).await?;
        if response.status().is_redirection() {
            return Err(Problem::malformed(format!(
                "{uri} redirects to another address; configure that address"
            )));
        }
        let (mut parts, body) = response.into_parts();
        let text = self.read(body, &uri).await?;
        let refused = !parts.status.is_success();
        if refused {
            self.state().retry_after = retry_after(&parts.headers, SystemTime::now());
        }
        // The library rejects any response with a byte that is not text.
        let body = match refused {
            true => readable(parts.status.as_u16(), &String::from_utf8_lossy(&text)),
            false => String::from_utf8_lossy(&text).into_owned().into_bytes(),
        };
        parts.headers.remove(CONTENT_LENGTH);
        Ok((Response::from_parts(parts, Full::from(body)), is_signed))
    }

    fn count_request(&self) -> Result<(), Problem> {
        let mut state = self.state();
        let left = state.requests_left.checked_sub(1);
        state.requests_left =
            left.ok_or_else(|| Problem::new("limit", "the order needs too many requests".to_owned()))?;
        Ok(())
    }

    /// Sends the request over an idle connection, or over a new one. An idle connection may have been closed meanwhile;
    /// the authority accepts a signed request only once (RFC 8555 §6.5), so it may be sent again.
    async fn send(&self, request: Request<BodyWrapper<Bytes>>, origin: &Origin) -> Result<Response<Incoming>, Problem> {
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes);
        let again = || {
            let mut request = Request::new(Full::from(body.clone()));
            *request.method_mut() = parts.method.clone();
            *request.uri_mut() = path_of(&parts.uri);
            *request.headers_mut() = parts.headers.clone();
            request.headers_mut().insert(USER_AGENT, self.agent.clone());
            let host = parts
                .uri
                .authority()
                .and_then(|host| HeaderValue::from_str(host.as_str()).ok());
            request.headers_mut().extend(host.map(|host| (HOST, host)));
            request
        };
        let idle = self.state().idle.remove(origin);
        if let Some(mut connection) = idle {
            if connection.ready().await.is_ok() {
                if let Ok(response) = connection.send_request(again()).await {
                    self.state().idle.insert(origin.clone(), connection);
                    return Ok(response);
                }
            }
        }
        let mut connection = self.dialer.connect(origin).await?;
        let response = connection.send_request(again()).await;
        let response =
            response.map_err(|error| Problem::new("connection", format!("no response from {origin}: {error}")))?;
        self.state().idle.insert(origin.clone(), connection);
        Ok(response)
    }

    async fn read(&self, body: Incoming, uri: &Uri) -> Result<Bytes, Problem> {
        let most = ANSWER_MOST.min(self.state().bytes_left);
        let bytes = Limited::new(body, most)
            .collect()
            .await
            .map_err(|error| match error.is::<LengthLimitError>() {
                true => Problem::new("limit", format!("the response of {uri} is longer than {most} bytes")),
                false => Problem::new("connection", format!("the response of {uri} is incomplete: {error}")),
            })?;
        let bytes = bytes.to_bytes();
        self.state().bytes_left -= bytes.len();
        Ok(bytes)
    }
}

/// The form of an address in a request to a server (RFC 9112 §3.2.1).
fn path_of(uri: &Uri) -> Uri {
    uri.path_and_query()
        .map_or_else(|| Uri::from_static("/"), |path| Uri::from(path.clone()))
}

/// RFC 9110 §10.2.3: seconds, or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    text.parse().ok().or_else(|| {
        let date = httpdate::parse_http_date(text).ok()?;
        Some(date.duration_since(now).ok()?.as_secs() + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_wait_is_a_number_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let wait = |text: &'static str| {
            retry_after(
                &HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]),
                now,
            )
        };
        assert_eq!(wait("3600"), Some(3600));
        assert_eq!(wait("Sun, 09 Sep 2001 01:46:50 GMT"), Some(11));
        assert_eq!(wait("Sun, 09 Sep 2001 01:46:30 GMT"), None);
        assert_eq!(wait("soon"), None);
        assert_eq!(wait("-1"), None);
    }

    #[test]
    fn a_server_gets_a_path() {
        assert_eq!(path_of(&"https://ca.example".parse().expect("an address")), "/");
        assert_eq!(path_of(&"https://ca.example/a?b".parse().expect("an address")), "/a?b");
    }
}
