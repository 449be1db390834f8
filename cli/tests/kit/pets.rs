//! Stands in for the hosts that the kit calls.

use std::net::TcpListener;

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// Returns the service's address. It is served until the test ends.
pub fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let router = Router::new()
            .route(
                "/v2/pet/findByStatus",
                get(async || Json(json!([pet("1")]))),
            )
            .route(
                "/v2/pet/getPetByName/{name}",
                get(async || StatusCode::NOT_FOUND),
            )
            .route(
                "/v2/pet/{id}",
                get(async |Path(id): Path<String>| Json(pet(&id))),
            )
            .route("/basic-auth/{user}/{password}", get(authenticated));
        runtime.unwrap().block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    address
}

fn pet(id: &str) -> Value {
    let id: u32 = id.parse().unwrap();
    let (name, status) = match id {
        1 => ("Milou", "available"),
        _ => ("Rex", "sold"),
    };
    json!({"id": id, "name": name, "status": status})
}

async fn authenticated(
    Path((user, password)): Path<(String, String)>,
    headers: HeaderMap,
) -> (StatusCode, Json<Value>) {
    let expected = BASE64_STANDARD.encode(format!("{user}:{password}"));
    let given = headers.get("authorization");
    let given = given.and_then(|given| given.to_str().ok()?.strip_prefix("Basic "));
    match given == Some(expected.as_str()) {
        true => (StatusCode::OK, Json(json!({"authenticated": true}))),
        false => (StatusCode::UNAUTHORIZED, Json(Value::Null)),
    }
}

/// The document of the pets. It names the host that the kit knows, whose requests come here, too.
pub fn document() -> Value {
    let answers = json!({"200": {"description": "found"}});
    let status = json!({
        "name": "status", "in": "query", "required": true, "type": "array", "items": {"type": "string"},
        "collectionFormat": "multi",
    });
    let id = json!({"name": "petId", "in": "path", "required": true, "type": "integer"});
    json!({
        "swagger": "2.0",
        "info": {"title": "pets", "version": "1"},
        "host": "petstore.swagger.io",
        "basePath": "/v2",
        "schemes": ["https"],
        "paths": {
            "/pet/findByStatus": {"get": {"operationId": "findPetsByStatus", "parameters": [status], "responses": answers}},
            "/pet/{petId}": {"get": {"operationId": "getPetById", "parameters": [id], "responses": answers}},
        },
    })
}
