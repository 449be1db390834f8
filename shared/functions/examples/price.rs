//! A function over NATS that returns the price of an item.
//!
//!     cargo run -p swirl-functions --example price -- [HOST:PORT] [SUBJECT]

use futures::StreamExt as _;
use serde_json::{Value, json};

fn price(call: &Value) -> Value {
    let item = call["arguments"]["item"].as_str().unwrap_or_default();
    let price = match item {
        "lamp" => 3990,
        "book" => 1290,
        _ => {
            let message = format!("there is no item `{item}`");
            return json!({"error": {"name": "UnknownItem", "message": message, "retryable": false}});
        }
    };
    json!({"item": item, "price": price})
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:4222".to_owned());
    let subject = arguments.next().unwrap_or("functions.price".to_owned());
    let client = async_nats::connect(&address).await?;
    // Each call goes to one member of the queue group `price`.
    let mut calls = client.queue_subscribe(subject, "price".to_owned()).await?;
    while let Some(message) = calls.next().await {
        let Some(reply) = message.reply else { continue };
        let answer = match serde_json::from_slice(&message.payload) {
            Ok(call) => price(&call),
            Err(error) => json!({"error": {"code": "failed", "message": error.to_string()}}),
        };
        client.publish(reply, answer.to_string().into()).await?;
    }
    Ok(())
}
