//! The routes and the OpenAPI document that describes them.

use axum::routing::{any, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::{Service, shop};

pub(crate) fn routes() -> Router<Service> {
    Router::new()
        .route("/openapi.json", get(async || Json(document())))
        .route("/items", get(shop::items))
        .route("/items/{item}/price", get(shop::price))
        .route("/orders/{order}/reservation", post(shop::reserve))
        .route(
            "/orders/{order}/reservation/{id}/release",
            post(shop::release),
        )
        .route("/orders/{order}/payment", post(shop::charge))
        .route("/orders/{order}/payment/{id}/refund", post(shop::refund))
        .route("/orders/{order}/shipment", post(shop::ship))
        .route("/greet", post(shop::greet))
        .route("/jobs", post(shop::create_job))
        .route("/jobs/{id}", get(shop::get_job))
        .route("/flaky", post(shop::flaky))
        .route("/slow", get(shop::slow))
        .route("/echo", any(shop::echo))
}

pub(crate) fn document() -> Value {
    let order =
        json!({"name": "order", "in": "path", "required": true, "schema": {"type": "string"}});
    let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}});
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Demo service", "version": "1.0.0"},
        "servers": [{"url": "/"}],
        "paths": {
            "/items": {"get": operation("listItems", "The items for sale", json!([]), None)},
            "/items/{item}/price": {"get": operation("getPrice", "What an item costs, in cents", json!([
                {"name": "item", "in": "path", "required": true, "schema": {"type": "string"}},
                {"name": "quantity", "in": "query", "schema": {"type": "integer", "minimum": 1}}
            ]), None)},
            "/orders/{order}/reservation": {"post": operation("reserveItem", "Reserve pieces of an item (409 when out of stock)",
                json!([order]), Some(object(&[("item", "string"), ("quantity", "integer")])))},
            "/orders/{order}/reservation/{id}/release": {"post": operation("releaseItem", "Undo a reservation",
                json!([order, id]), None)},
            "/orders/{order}/payment": {"post": operation("chargeOrder", "Charge an amount in cents (402 above 100000)",
                json!([order]), Some(object(&[("amount", "integer")])))},
            "/orders/{order}/payment/{id}/refund": {"post": operation("refundOrder", "Undo a payment",
                json!([order, id]), None)},
            "/orders/{order}/shipment": {"post": operation("shipOrder", "Ship an order", json!([order]), None)},
            "/greet": {"post": operation("greet", "Greet somebody", json!([]), Some(object(&[("name", "string")])))},
            "/jobs": {"post": operation("createJob", "Start a job that is done after this many polls (default 2)",
                json!([]), Some(json!({"type": "object", "properties": {"polls": {"type": "integer"}}})))},
            "/jobs/{id}": {"get": operation("getJob", "The status of a job", json!([id]), None)},
            "/flaky": {"post": operation("flaky", "Fails the first calls of a key with 503", json!([
                {"name": "key", "in": "query", "required": true, "schema": {"type": "string"}},
                {"name": "failures", "in": "query", "schema": {"type": "integer", "default": 2}}
            ]), None)},
            "/slow": {"get": operation("slow", "Answers after this many milliseconds", json!([
                {"name": "ms", "in": "query", "schema": {"type": "integer", "default": 1000}}
            ]), None)},
            "/echo": {
                "get": operation("echoGet", "What was received", json!([
                    {"name": "q", "in": "query", "schema": {"type": "string"}}
                ]), None),
                "post": operation("echo", "What was received", json!([]), Some(json!({})))
            }
        }
    })
}

fn object(properties: &[(&str, &str)]) -> Value {
    let names: Vec<_> = properties.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<_, _> = properties
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), json!({"type": kind})))
        .collect();
    json!({"type": "object", "required": names, "properties": properties})
}

fn operation(id: &str, summary: &str, parameters: Value, body: Option<Value>) -> Value {
    let mut operation = json!({
        "operationId": id,
        "summary": summary,
        "parameters": parameters,
        "responses": {"200": {"description": "done", "content": {"application/json": {"schema": {}}}}}
    });
    if let Some(schema) = body {
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    operation
}
