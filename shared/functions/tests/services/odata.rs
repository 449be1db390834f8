//! Queries of OData services.

use serde_json::{Value, json};
use swirl_model::workflow::FunctionKind;
use swirl_model::{Data, data};

use crate::services::fixture::{Callable, Server, basic, config, error_parts, json};

fn function(server: &Server) -> Callable {
    let operation = format!("{}/V3/OData/OData.svc#Persons", server.base);
    Callable::new(FunctionKind::Odata, &operation)
}

#[tokio::test]
async fn the_specifications_example_runs() {
    let persons = json!({"odata.metadata": "x", "value": [{"Id": 0}, {"Id": 1}]});
    let answer = persons.clone();
    let server = Server::start(move |_| json(200, &answer)).await;
    let arguments = data!({
        "queryOptions": {
            "expand": "PersonDetail/Person",
            "select": "Id, PersonDetail/Person/Name",
            "top": 5,
            "orderby": "PersonDetail/Person/Name"
        }
    });
    let result = function(&server).call(arguments).await.unwrap();
    assert_eq!(Value::from(&result), persons);
    let seen = &server.seen()[0];
    assert_eq!(
        (seen.method.as_str(), seen.uri.path()),
        ("GET", "/V3/OData/OData.svc/Persons")
    );
    assert_eq!(
        seen.uri.query().unwrap(),
        "$expand=PersonDetail/Person&$select=Id,%20PersonDetail/Person/Name&$top=5&$orderby=PersonDetail/Person/Name"
    );
    assert_eq!(seen.header("accept"), "application/json");
    assert_eq!(seen.header("idempotency-key"), "key-1");
}

#[tokio::test]
async fn one_entity_is_requested_by_its_key() {
    let server = Server::start(|seen| match seen.uri.path() {
        "/V3/OData/OData.svc/Persons('Ada%20L''s')" => json(200, &json!({"Name": "Ada L's"})),
        "/V3/OData/OData.svc/Persons(7)" => (204, "application/json", String::new()),
        _ => (404, "text/plain", "nobody".to_owned()),
    })
    .await;
    let get = function(&server);
    let found = get.call(data!({"key": "Ada L's"})).await.unwrap();
    assert_eq!(found, data!({"Name": "Ada L's"}));
    assert_eq!(get.call(data!({"key": 7})).await.unwrap(), Data::NULL);
    let (_, code, status, message) = error_parts(get.call(data!({"key": "8"})).await.unwrap_err());
    assert_eq!((code.as_str(), status), ("404", Some(404)));
    assert!(
        message.contains("Persons(8): 404 Not Found: nobody"),
        "{message}"
    );
}

#[tokio::test]
async fn errors_have_the_services_code() {
    let texts = json!({"code": "Bad-1", "message": {"lang": "en", "value": "No such property"}});
    for (answer, code, message) in [
        (
            json!({"error": {"code": "Bad-1", "message": "No such property"}}),
            "Bad-1",
            "Persons: 400: No such property",
        ),
        (
            json!({"odata.error": texts}),
            "Bad-1",
            "Persons: 400: No such property",
        ),
        (
            json!({"error": texts}),
            "Bad-1",
            "Persons: 400: No such property",
        ),
        (
            json!({"error": {"code": "", "message": "m"}}),
            "400",
            "Persons: 400: m",
        ),
        (
            json!({"problem": 1}),
            "400",
            "400 Bad Request: {\"problem\":1}",
        ),
    ] {
        let server = Server::start(move |_| json(400, &answer)).await;
        let error = function(&server).call(data!({})).await.unwrap_err();
        let (name, found, status, text) = error_parts(error);
        assert_eq!(
            (name.as_str(), found.as_str(), status),
            ("FunctionError", code, Some(400))
        );
        assert!(text.contains(message), "{text}");
    }
}

#[tokio::test]
async fn credentials_are_sent_and_not_shown() {
    let server = Server::start(|seen| {
        let got = seen.header("authorization");
        json(
            403,
            &json!({"error": {"code": "no", "message": format!("not with {got}")}}),
        )
    })
    .await;
    let auth = basic("ada", "s3cret-password");
    let error = function(&server)
        .request(data!({}), None, auth)
        .await
        .unwrap_err();
    let (_, code, _, text) = error_parts(error);
    assert_eq!(code, "no");
    assert!(text.contains("not with Basic ***"), "{text}");
    assert_eq!(
        server.seen()[0].header("authorization"),
        "Basic YWRhOnMzY3JldC1wYXNzd29yZA=="
    );
}

#[tokio::test]
async fn wrong_arguments_are_not_sent() {
    let server = Server::start(|_| json(200, &json!({}))).await;
    let error = function(&server)
        .call(data!({"queryOptions": {"top": "many"}}))
        .await;
    let (_, code, _, message) = error_parts(error.unwrap_err());
    assert_eq!(code, "arguments");
    assert!(
        message.contains("the query option `top` must be a whole number"),
        "{message}"
    );
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn uncallable_functions_are_rejected_at_deployment() {
    for (operation, reason) in [
        ("Persons", "must be the URL of an OData service"),
        ("file://x.svc#Persons", "must be an http or https URL"),
    ] {
        let made = Callable::with(FunctionKind::Odata, operation, data!(null), &[], config());
        let error = made.err().unwrap();
        assert!(error.contains(reason), "{operation}: {error}");
    }
}
