//! Describes exchanges with services by OpenTelemetry's semantic conventions for their protocols.

use opentelemetry::Value;
use swirl_ports::ExchangeProtocol;

use crate::span::SpanRole;

/// Adds the attributes of an exchange in its protocol, and returns the kind of its span.
pub fn describe(
    protocol: &ExchangeProtocol,
    attributes: &mut Vec<(&'static str, Value)>,
) -> SpanRole {
    match protocol {
        ExchangeProtocol::Http {
            method,
            url,
            status,
        } => {
            attributes.push(("http.request.method", method.clone().into()));
            attributes.push(("url.full", url.clone().into()));
            let status = status.map(i64::from);
            attributes.extend(status.map(|status| ("http.response.status_code", status.into())));
            SpanRole::Client
        }
        ExchangeProtocol::Grpc {
            service,
            method,
            status,
        } => {
            attributes.push(("rpc.system", "grpc".to_owned().into()));
            attributes.push(("rpc.service", service.clone().into()));
            attributes.push(("rpc.method", method.clone().into()));
            let status = status.map(i64::from);
            attributes.extend(status.map(|status| ("rpc.grpc.status_code", status.into())));
            SpanRole::Client
        }
        ExchangeProtocol::Message {
            system,
            destination,
            receives,
        } => {
            let operation = if *receives { "receive" } else { "send" };
            attributes.push(("messaging.system", (*system).to_owned().into()));
            attributes.push(("messaging.operation.name", operation.to_owned().into()));
            attributes.push(("messaging.operation.type", operation.to_owned().into()));
            attributes.push(("messaging.destination.name", destination.clone().into()));
            if *receives {
                SpanRole::Consumer
            } else {
                SpanRole::Producer
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_has_its_attribute_names() {
        let describe = |protocol: ExchangeProtocol| {
            let mut attributes = Vec::new();
            let kind = describe(&protocol, &mut attributes);
            let lines = attributes
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            (kind, lines.collect::<Vec<_>>().join(" "))
        };
        let message = |receives| ExchangeProtocol::Message {
            system: "mqtt",
            destination: "a/b".to_owned(),
            receives,
        };
        let cases = [
            (
                ExchangeProtocol::Http {
                    method: "GET".to_owned(),
                    url: "http://h/".to_owned(),
                    status: Some(503),
                },
                SpanRole::Client,
                "http.request.method=GET url.full=http://h/ http.response.status_code=503",
            ),
            (
                ExchangeProtocol::Grpc {
                    service: "shop.Users".to_owned(),
                    method: "Get".to_owned(),
                    status: None,
                },
                SpanRole::Client,
                "rpc.system=grpc rpc.service=shop.Users rpc.method=Get",
            ),
            (
                ExchangeProtocol::Grpc {
                    service: "shop.Users".to_owned(),
                    method: "Get".to_owned(),
                    status: Some(0),
                },
                SpanRole::Client,
                "rpc.system=grpc rpc.service=shop.Users rpc.method=Get rpc.grpc.status_code=0",
            ),
            (
                message(false),
                SpanRole::Producer,
                "messaging.system=mqtt messaging.operation.name=send messaging.operation.type=send \
                 messaging.destination.name=a/b",
            ),
            (
                message(true),
                SpanRole::Consumer,
                "messaging.system=mqtt messaging.operation.name=receive messaging.operation.type=receive \
                 messaging.destination.name=a/b",
            ),
        ];
        for (protocol, kind, attributes) in cases {
            assert_eq!(
                describe(protocol.clone()),
                (kind, attributes.to_owned()),
                "{protocol:?}"
            );
        }
    }
}
