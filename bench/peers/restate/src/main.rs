//! A Restate service that makes ten HTTP calls in sequence, each of them a durable step.

use std::net::SocketAddr;

use restate_sdk::prelude::*;
use serde_json::{Value, json};

const CALLS: u32 = 10;

struct Steps(reqwest::Client);

#[service]
impl Steps {
    /// The request contains the address of the service to call.
    #[handler]
    async fn run(&self, context: Context<'_>, request: Json<Value>) -> HandlerResult<Json<Value>> {
        let request = request.into_inner();
        let Some(service) = request["service"].as_str() else {
            return Err(TerminalError::new("the request names no service").into());
        };
        let mut last = Value::Null;
        for n in 0..CALLS {
            let call = context.run(|| async move {
                let answer = self.0.post(service).json(&json!({"n": n})).send().await?;
                let answer: Value = answer.error_for_status()?.json().await?;
                Ok(Json(answer))
            });
            last = call.name("step").await?.into_inner();
        }
        Ok(Json(last))
    }
}

#[tokio::main]
async fn main() {
    let listen = std::env::args().nth(1);
    let listen = listen.and_then(|address| address.parse::<SocketAddr>().ok());
    let listen = listen.expect("the address to listen on is the first argument");
    let steps = Steps(reqwest::Client::new());
    HttpServer::new(Endpoint::builder().bind(steps).build())
        .listen_and_serve(listen)
        .await;
}
