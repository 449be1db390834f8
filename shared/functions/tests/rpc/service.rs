//! A gRPC server for `users.proto`. It has no generated code: messages are handled by their descriptors. The behaviour
//! of `GetUser` depends on the requested name.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::{Buf, BufMut, Bytes};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, Value};
use swirl_servers::eventually;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::service::Routes;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Code, Request, Response, Status, Streaming};

pub const PROTO: &str = include_str!("users.proto");

/// The requests that the server received.
#[derive(Debug, Default)]
pub struct Seen {
    pub metadata: Vec<MetadataMap>,
    /// Calls that are not answered.
    pub slow: usize,
    /// Calls that ended before they were answered.
    pub cancelled: usize,
}

#[derive(Clone)]
pub struct Users {
    pool: DescriptorPool,
    pub seen: Arc<Mutex<Seen>>,
}

/// Serves on a free port, and returns the address.
pub async fn serve() -> (String, Arc<Mutex<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (format!("grpc://{address}"), serve_on(listener))
}

/// Serves over TLS, with a certificate for `localhost` that only this test trusts.
pub async fn serve_tls() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let identity = Identity::from_pem(include_str!("tls-cert.pem"), include_str!("tls-key.pem"));
    let tls = ServerTlsConfig::new().identity(identity);
    let server = Server::builder().tls_config(tls).unwrap();
    serve_with(server, listener);
    format!("grpcs://localhost:{port}")
}

pub fn serve_on(listener: TcpListener) -> Arc<Mutex<Seen>> {
    serve_with(Server::builder(), listener)
}

fn serve_with(mut server: Server, listener: TcpListener) -> Arc<Mutex<Seen>> {
    let users = Users {
        pool: pool(),
        seen: Arc::default(),
    };
    let seen = users.seen.clone();
    let incoming = TcpListenerStream::new(listener);
    let routes = Routes::new(users);
    tokio::spawn(server.add_routes(routes).serve_with_incoming(incoming));
    seen
}

fn pool() -> DescriptorPool {
    // Without the annotations, because only the client side knows them.
    let mut text = PROTO.replace("import \"google/api/annotations.proto\";", "");
    let start = text.find("    option (google.api.http)").unwrap();
    let end = start + text[start..].find(";\n").unwrap() + 1;
    text.replace_range(start..end, "");
    let mut resolver = protox::file::ChainFileResolver::new();
    resolver.add(Source(text));
    resolver.add(protox::file::GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler
        .include_imports(true)
        .open_file("users.proto")
        .unwrap();
    compiler.descriptor_pool()
}

struct Source(String);

impl protox::file::FileResolver for Source {
    fn open_file(&self, name: &str) -> Result<protox::file::File, protox::Error> {
        match name {
            "users.proto" => protox::file::File::from_source(name, &self.0),
            _ => Err(protox::Error::file_not_found(name)),
        }
    }
}

impl NamedService for Users {
    const NAME: &'static str = "acme.v1.UserService";
}

impl tower::Service<http::Request<tonic::body::Body>> for Users {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Self::Response, Infallible>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let users = self.clone();
        Box::pin(async move {
            let name = request.uri().path().rsplit('/').next().unwrap().to_owned();
            let service = users
                .pool
                .get_service_by_name("acme.v1.UserService")
                .unwrap();
            let Some(method) = service.methods().find(|method| method.name() == name) else {
                return Ok(Status::unimplemented("no such method").into_http());
            };
            let codec = Dynamic(method.input());
            let handler = Handler { users, name };
            Ok(Grpc::new(codec).streaming(handler, request).await)
        })
    }
}

type BoxFuture<T> = futures::future::BoxFuture<'static, T>;

struct Handler {
    users: Users,
    name: String,
}

impl StreamingService<DynamicMessage> for Handler {
    type Response = DynamicMessage;
    type ResponseStream = BoxStream<'static, Result<DynamicMessage, Status>>;
    type Future = BoxFuture<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<DynamicMessage>>) -> Self::Future {
        let (users, name) = (self.users.clone(), self.name.clone());
        users
            .seen
            .lock()
            .unwrap()
            .metadata
            .push(request.metadata().clone());
        Box::pin(async move {
            let metadata = request.metadata().clone();
            let mut messages = request.into_inner();
            if name == "Echo" {
                return Ok(Response::new(messages.boxed()));
            }
            let mut received = Vec::new();
            while let Some(message) = messages.message().await? {
                received.push(message);
            }
            let answer = users.answer(&name, &received, &metadata).await?;
            Ok(Response::new(futures::stream::iter(answer).boxed()))
        })
    }
}

impl Users {
    async fn answer(
        &self,
        method: &str,
        received: &[DynamicMessage],
        metadata: &MetadataMap,
    ) -> Result<Vec<Result<DynamicMessage, Status>>, Status> {
        let first = received.first();
        let number = |field| {
            let value = first.and_then(|first| Some(first.get_field_by_name(field)?.as_i32()));
            value.flatten().unwrap_or(0)
        };
        match method {
            "AddUser" => Ok(vec![Ok(self.message("google.protobuf.Empty"))]),
            "Import" => {
                let mut imported = self.message("acme.v1.Imported");
                imported.set_field_by_name("count", Value::I32(received.len() as i32));
                Ok(vec![Ok(imported)])
            }
            "ListUsers" => {
                let padding = "x".repeat(number("padding") as usize);
                let count = number("count");
                let user = |age| Ok(self.user(&format!("user{age}{padding}"), age));
                let mut users: Vec<_> = (1..=count.abs()).map(user).collect();
                if count < 0 {
                    users.push(Err(Status::data_loss("the list is torn")));
                }
                Ok(users)
            }
            _ => {
                let name = first
                    .and_then(|first| Some(first.get_field_by_name("name")?.as_str()?.to_owned()));
                self.get(&name.unwrap_or_default(), metadata).await
            }
        }
    }

    async fn get(
        &self,
        name: &str,
        metadata: &MetadataMap,
    ) -> Result<Vec<Result<DynamicMessage, Status>>, Status> {
        let authorization = metadata.get("authorization");
        match name {
            "slow" => {
                let _guard = Guard(self.seen.clone());
                self.seen.lock().unwrap().slow += 1;
                std::future::pending::<()>().await;
                unreachable!()
            }
            "nobody" => Ok(Vec::new()),
            "twins" => Ok(vec![Ok(self.user(name, 1)), Ok(self.user(name, 2))]),
            "guarded" if authorization.is_none_or(|a| a == "Bearer old-token") => {
                Err(Status::unauthenticated("who are you?"))
            }
            "telltale" => Err(Status::internal(format!("got {authorization:?}"))),
            _ => match name.parse::<i32>() {
                Ok(code) => Err(Status::new(Code::from_i32(code), format!("code {code}"))),
                Err(_) => Ok(vec![Ok(self.user(name, 36))]),
            },
        }
    }

    fn message(&self, name: &str) -> DynamicMessage {
        DynamicMessage::new(self.pool.get_message_by_name(name).unwrap())
    }

    fn user(&self, name: &str, age: i32) -> DynamicMessage {
        let mut user = self.message("acme.v1.User");
        user.set_field_by_name("name", Value::String(name.to_owned()));
        user.set_field_by_name("age", Value::I32(age));
        user
    }
}

/// Counts a call that is dropped.
struct Guard(Arc<Mutex<Seen>>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.lock().unwrap().cancelled += 1;
    }
}

/// Waits until the server has noticed the early end of a call.
pub async fn cancelled(seen: &Mutex<Seen>) {
    eventually("the call's early end", async || {
        (seen.lock().unwrap().cancelled > 0).then_some(())
    })
    .await;
}

struct Dynamic(MessageDescriptor);

impl Codec for Dynamic {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Dynamic;
    type Decoder = Dynamic;

    fn encoder(&mut self) -> Dynamic {
        Dynamic(self.0.clone())
    }

    fn decoder(&mut self) -> Dynamic {
        Dynamic(self.0.clone())
    }
}

impl Encoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, item: DynamicMessage, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(Bytes::from(item.encode_to_vec()));
        Ok(())
    }
}

impl Decoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let bytes = buffer.copy_to_bytes(buffer.remaining());
        let message = DynamicMessage::decode(self.0.clone(), bytes);
        message
            .map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}
