//! Records the service that a call contacts, for the call's span, without passing the record through every function
//! type.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Method, Request};
use swirl_model::redact::Redactor;
use swirl_ports::{Exchange, ExchangeProtocol, LastExchange};
use url::Url;

use crate::shown;

tokio::task_local! {
    static NOTED: (LastExchange, Arc<Redactor>);
}

/// Makes a call whose exchanges are recorded. The last one counts: it is that of the call itself, not the one for its
/// token.
pub(crate) async fn noted<F: Future>(
    last: LastExchange,
    secrets: Arc<Redactor>,
    call: F,
) -> F::Output {
    NOTED.scope((last, secrets), call).await
}

/// Records a request that is sent, or its answer.
pub(crate) fn note(method: &Method, url: &Url, status: Option<u16>) {
    with(|secrets| Exchange {
        host: url.host_str().unwrap_or_default().to_owned(),
        port: url.port_or_known_default(),
        protocol: ExchangeProtocol::Http {
            method: method.as_str().to_owned(),
            url: secrets.text(&shown(url)).into_owned(),
            status,
        },
    });
}

/// Records the call of a gRPC method, or its answer. `path`: `/package.Service/Method`.
pub(crate) fn note_grpc(host: &str, port: u16, path: &str, status: Option<i32>) {
    with(|_| {
        let path = path.trim_start_matches('/');
        let (service, method) = path.rsplit_once('/').unwrap_or(("", path));
        Exchange {
            host: host.to_owned(),
            port: Some(port),
            protocol: ExchangeProtocol::Grpc {
                service: service.to_owned(),
                method: method.to_owned(),
                status,
            },
        }
    });
}

/// Records a message that is sent to a broker or awaited from it.
pub(crate) fn note_message(
    system: &'static str,
    (host, port): (&str, u16),
    destination: &str,
    receives: bool,
) {
    with(|secrets| Exchange {
        host: host.to_owned(),
        port: Some(port),
        protocol: ExchangeProtocol::Message {
            system,
            destination: secrets.text(destination).into_owned(),
            receives,
        },
    });
}

/// Records the credentials of a request. Those of a request for a token aren't the call's.
pub(crate) fn note_credentials_of(request: &Request, for_token: bool) {
    let header = request.headers().get(AUTHORIZATION);
    if let Some(Ok(header)) = header.filter(|_| !for_token).map(HeaderValue::to_str) {
        note_credentials(header);
    }
}

/// Records the credentials that a request sends, for `$authorization`.
pub(crate) fn note_credentials(header: &str) {
    let _ = NOTED.try_with(|(last, _)| last.note_credentials(header));
}

/// Does nothing outside of a call, such as when a document is fetched.
fn with(exchange: impl FnOnce(&Redactor) -> Exchange) {
    let _ = NOTED.try_with(|(last, secrets)| last.note(exchange(secrets)));
}

/// The URL as errors show it, with the names of its query.
fn shown(url: &Url) -> String {
    let mut shown = shown::shown(url);
    for (at, (name, _)) in url.query_pairs().enumerate() {
        let name: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
        shown += if at == 0 { "?" } else { "&" };
        shown += &format!("{name}=REDACTED");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn secrets_are_not_recorded() {
        let url =
            Url::parse("http://me:pw@h.example/bot-t0ken-long/send?key=s3cret&a%26b=1#x").unwrap();
        let last = LastExchange::default();
        let secrets = Arc::new(Redactor::new(["t0ken-long"]));
        noted(last.clone(), secrets, async {
            note(&Method::POST, &url, None);
            note(&Method::POST, &url, Some(204));
        })
        .await;
        let found = last.get().unwrap();
        let ExchangeProtocol::Http {
            url: shown, status, ..
        } = &found.protocol
        else {
            panic!("{found:?}")
        };
        assert!(shown.starts_with("http://h.example/bot-"), "{found:?}");
        assert!(
            shown.ends_with("/send?key=REDACTED&a%26b=REDACTED"),
            "{found:?}"
        );
        for secret in ["t0ken", "s3cret", "pw", "#x"] {
            assert!(!shown.contains(secret), "{found:?}");
        }
        assert_eq!((found.port, *status), (Some(80), Some(204)));
        // Outside of a call, nothing is recorded and nothing fails.
        note(&Method::GET, &url, None);
        assert_eq!(last.get(), Some(found));
    }
    #[tokio::test]
    async fn other_protocols_are_recorded_too() {
        let last = LastExchange::default();
        let secrets = Arc::new(Redactor::new(["s3cret-long"]));
        noted(last.clone(), secrets.clone(), async {
            note_grpc("h", 9, "/shop.Users/Get", Some(5));
        })
        .await;
        let protocol = ExchangeProtocol::Grpc {
            service: "shop.Users".to_owned(),
            method: "Get".to_owned(),
            status: Some(5),
        };
        assert_eq!(last.get().unwrap().protocol, protocol);
        noted(last.clone(), secrets, async {
            note_message("mqtt", ("h", 1883), "a/s3cret-long/b", false);
        })
        .await;
        let found = last.get().unwrap();
        assert_eq!((found.host.as_str(), found.port), ("h", Some(1883)));
        let ExchangeProtocol::Message {
            system,
            destination,
            receives,
        } = found.protocol
        else {
            panic!("{:?}", found.protocol)
        };
        assert_eq!((system, receives), ("mqtt", false));
        assert!(
            destination.starts_with("a/") && !destination.contains("s3cret"),
            "{destination}"
        );
    }
}
