//! Kafka with SASL PLAIN, against a broker that this test implements with the minimal subset of the protocol.

use std::sync::{Arc, Mutex};

use swirl_model::{Data, data};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::services::asyncapi::code;
use crate::services::fixture::basic;
use crate::services::listen::{document, function};

const PRODUCE: i16 = 0;
const METADATA: i16 = 3;
const SASL_HANDSHAKE: i16 = 17;
const API_VERSIONS: i16 = 18;
const SASL_AUTHENTICATE: i16 = 36;

/// Each supported request, with the only version that is implemented.
const VERSIONS: [(i16, i16); 5] = [
    (PRODUCE, 3),
    (METADATA, 1),
    (SASL_HANDSHAKE, 1),
    (API_VERSIONS, 3),
    (SASL_AUTHENTICATE, 0),
];

/// The error code of a rejected login.
const SASL_AUTHENTICATION_FAILED: i16 = 58;

const TOPIC: &str = "light.7";

/// A single broker with one topic that has one partition.
struct Broker {
    address: String,
    /// The offered mechanisms.
    mechanism: &'static str,
    /// The names of received requests. Those after a login are marked.
    seen: Mutex<Vec<String>>,
}

impl Broker {
    async fn start(mechanism: &'static str) -> Arc<Broker> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let broker = Arc::new(Broker {
            address: listener.local_addr().unwrap().to_string(),
            mechanism,
            seen: Mutex::default(),
        });
        let own = broker.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let own = own.clone();
                // It doesn't matter if a connection ends in the middle of a request.
                tokio::spawn(async move { own.serve(stream).await.ok() });
            }
        });
        broker
    }

    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut is_known = false;
        loop {
            let size = stream.read_i32().await?;
            let mut request = vec![0; size as usize];
            stream.read_exact(&mut request).await?;
            let number = |at: usize| i16::from_be_bytes([request[at], request[at + 1]]);
            let key = number(0);
            // The client's name follows after key, version and correlation id.
            let body = &request[10 + number(8).max(0) as usize..];
            let mut answer = Answer(request[4..8].to_vec());
            match key {
                API_VERSIONS => versions(&mut answer),
                SASL_HANDSHAKE => {
                    answer.i16(0).i32(1).text(self.mechanism);
                }
                SASL_AUTHENTICATE => {
                    is_known = body[4..] == *b"\0ada\0s3cret";
                    let error = if is_known {
                        0
                    } else {
                        SASL_AUTHENTICATION_FAILED
                    };
                    answer.i16(error).i16(-1).i32(0);
                }
                // A broker that requires a login closes the connection of a client that continues without one.
                _ if !is_known => return Ok(()),
                METADATA => self.metadata(&mut answer),
                PRODUCE => {
                    answer.i32(1).text(TOPIC).i32(1);
                    // Partition, error, offset and time, then the throttle time.
                    answer.i32(0).i16(0).i64(0).i64(-1).i32(0);
                }
                other => panic!("a request of kind {other}"),
            }
            self.seen.lock().unwrap().push(format!("{key} {is_known}"));
            stream.write_i32(answer.0.len() as i32).await?;
            stream.write_all(&answer.0).await?;
        }
    }

    fn metadata(&self, answer: &mut Answer) {
        let (host, port) = self.address.split_once(':').unwrap();
        // The brokers (only this one, without a rack), then the controller.
        answer.i32(1).i32(1).text(host).i32(port.parse().unwrap());
        answer.i16(-1).i32(1);
        // The topics: no error, the name, not internal, and its partitions.
        answer.i32(1).i16(0).text(TOPIC).byte(0).i32(1);
        // No error, partition, leader, replicas, in-sync replicas.
        answer.i16(0).i32(0).i32(1).i32(1).i32(1).i32(1).i32(1);
    }

    fn has_seen(&self, what: &str) -> bool {
        self.seen.lock().unwrap().iter().any(|seen| seen == what)
    }
}

/// In the compact form of version 3.
fn versions(answer: &mut Answer) {
    answer.i16(0).byte(VERSIONS.len() as u8 + 1);
    for (key, version) in VERSIONS {
        answer.i16(key).i16(version).i16(version).byte(0);
    }
    answer.i32(0).byte(0);
}

struct Answer(Vec<u8>);

impl Answer {
    fn bytes(&mut self, bytes: &[u8]) -> &mut Answer {
        self.0.extend_from_slice(bytes);
        self
    }

    fn byte(&mut self, byte: u8) -> &mut Answer {
        self.bytes(&[byte])
    }

    fn i16(&mut self, number: i16) -> &mut Answer {
        self.bytes(&number.to_be_bytes())
    }

    fn i32(&mut self, number: i32) -> &mut Answer {
        self.bytes(&number.to_be_bytes())
    }

    fn i64(&mut self, number: i64) -> &mut Answer {
        self.bytes(&number.to_be_bytes())
    }

    fn text(&mut self, text: &str) -> &mut Answer {
        self.i16(text.len() as i16).bytes(text.as_bytes())
    }
}

fn of(broker: &Broker) -> String {
    let url = format!("kafka://{}", broker.address);
    document(&url, "light.{id}", serde_json::json!({}))
}

#[tokio::test]
async fn a_message_is_sent_after_a_login() {
    let broker = Broker::start("PLAIN").await;
    let tell = function(&of(&broker), "tell");
    let result = tell.request(data!({"lumens": 1}), None, basic("ada", "s3cret"));
    assert_eq!(result.await.unwrap(), Data::NULL);
    assert!(broker.has_seen("0 true"), "{:?}", broker.seen);
}

#[tokio::test]
async fn a_wrong_password_has_its_own_error() {
    let broker = Broker::start("PLAIN").await;
    for operation in ["tell", "hear"] {
        let arguments = match operation {
            "tell" => data!({"lumens": 1}),
            _ => data!({}),
        };
        let call = function(&of(&broker), operation);
        let result = call.request(arguments, None, basic("ada", "wrong-one"));
        let (found, message) = code(result.await.unwrap_err());
        assert_eq!(found, "auth", "{message}");
        assert!(
            message.contains("SaslAuthenticationFailed") && !message.contains("wrong-one"),
            "{message}"
        );
    }
    assert!(broker.has_seen("36 false") && !broker.has_seen("0 true"));
}

#[tokio::test]
async fn a_missing_mechanism_is_an_error() {
    let broker = Broker::start("SCRAM-SHA-256").await;
    let tell = function(&of(&broker), "tell");
    let result = tell.request(data!({"lumens": 1}), None, basic("ada", "s3cret"));
    let (found, message) = code(result.await.unwrap_err());
    assert_eq!(found, "auth", "{message}");
    assert!(message.contains("unsupported sasl mechanism"), "{message}");
    assert!(!broker.has_seen("36 true"), "no password is sent");
}
