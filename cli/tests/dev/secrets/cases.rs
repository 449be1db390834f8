//! Workflows that each use the secrets in a different way.

use std::net::SocketAddr;

use serde_json::{Value, json};

/// A workflow, and whether it completes.
pub struct Case {
    pub id: String,
    pub document: Value,
    pub completes: bool,
}

pub fn all(address: SocketAddr) -> Vec<Case> {
    let mut cases = Vec::new();
    let rest = |mode: &str| json!({"operation": format!("http://{address}/openapi.json#{mode}")});
    for mode in ["refuse", "break", "redirect", "lie", "succeed"] {
        cases.push(case(
            mode,
            address,
            rest(mode),
            arguments(),
            mode == "succeed",
        ));
        for auth in ["basic", "bearer", "oauth2"] {
            let function = with(rest(mode), auth);
            let id = format!("{mode}-{auth}");
            cases.push(case(
                &id,
                address,
                function,
                json!({"item": "a"}),
                mode == "succeed",
            ));
        }
    }
    // A service that rejects a token gets another one.
    let function = with(rest("refuse-all"), "oauth2");
    cases.push(case(
        "refuse-all-oauth2",
        address,
        function,
        arguments(),
        false,
    ));
    for auth in ["bad-token", "long-token", "bearer-key"] {
        let function = with(rest("succeed"), auth);
        let id = format!("auth-{auth}");
        let completes = auth == "bearer-key";
        cases.push(case(
            &id,
            address,
            function,
            json!({"item": "a"}),
            completes,
        ));
    }
    for kind in ["exact", "given", "command"] {
        let function = json!({"type": kind, "operation": "do"});
        cases.push(case(
            &format!("custom-{kind}"),
            address,
            function,
            arguments(),
            false,
        ));
    }
    for kind in ["graphql", "graphql-result"] {
        let function = json!({"type": "graphql",
            "operation": format!("http://{address}/{kind}#query#field")});
        let arguments = json!({"key": "${ $SECRETS.KEY }", "token": "${ $SECRETS.TOKEN }"});
        let function = with(function, "oauth2");
        let completes = kind == "graphql-result";
        let mut case = case(kind, address, function, arguments, completes);
        let call = &mut case.document["states"][0]["actions"][0]["functionRef"];
        call["selectionSet"] = json!("{ echo }");
        cases.push(case);
    }
    for kind in ["odata", "odata-result"] {
        let function =
            json!({"type": "odata", "operation": format!("http://{address}/{kind}#People")});
        let arguments = json!({"queryOptions": {"filter": "Name eq '${ $SECRETS.KEY }'"}});
        cases.push(case(
            kind,
            address,
            with(function, "basic"),
            arguments,
            kind == "odata-result",
        ));
    }
    cases.push(handled(address));
    cases
}

fn with(mut function: Value, auth: &str) -> Value {
    function["authRef"] = json!(auth);
    function
}

fn arguments() -> Value {
    json!({
        "item": "${ $SECRETS.KEY }", "q": "${ $SECRETS.KEY }", "X-Token": "${ $SECRETS.TOKEN }",
        "key": "${ $SECRETS.KEY }", "text": "between ${ $SECRETS.KEY } and ${ $SECRETS.TOKEN }",
    })
}

fn case(
    id: &str,
    address: SocketAddr,
    mut function: Value,
    arguments: Value,
    completes: bool,
) -> Case {
    function["name"] = json!("call");
    let document = json!({
        "id": id, "version": "1.0.0", "specVersion": "0.8", "secrets": ["KEY", "TOKEN"],
        "auth": auth(address), "functions": [function],
        "states": [{
            "name": "Call", "type": "operation", "end": true,
            // A service's answer is the user's data (docs/language.md#decision-84), so an echo would be stored
            // unchanged.
            "actions": [{
                "functionRef": {"refName": "call", "arguments": arguments},
                "actionDataFilter": {"useResults": false},
            }],
        }],
    });
    Case {
        id: id.to_owned(),
        document,
        completes,
    }
}

/// The error becomes data.
fn handled(address: SocketAddr) -> Case {
    let function = json!({"operation": format!("http://{address}/openapi.json#break")});
    let mut case = case("handled", address, function, arguments(), true);
    case.document["errors"] = json!([{"name": "Broken", "code": "500"}]);
    case.document["states"][0]["onErrors"] = json!([{"errorRef": "Broken", "transition": "Note"}]);
    let note = json!({"name": "Note", "type": "inject", "data": {}, "end": true,
        "stateDataFilter": {"output": "${ {error: $WORKFLOW.error, canary} }"}});
    case.document["states"].as_array_mut().unwrap().push(note);
    case
}

fn auth(address: SocketAddr) -> Value {
    let oauth2 = |name: &str, authority: &str, id: &str| {
        json!({"name": name, "scheme": "oauth2", "properties": {
            "authority": format!("http://{address}/{authority}/token"),
            "grantType": "clientCredentials", "clientId": id,
            "clientSecret": "${ $SECRETS.KEY }"}})
    };
    json!([
        {"name": "basic", "scheme": "basic",
            "properties": {"username": "me", "password": "${ $SECRETS.KEY }"}},
        {"name": "bearer", "scheme": "bearer", "properties": {"token": "${ $SECRETS.TOKEN }"}},
        oauth2("oauth2", "good-token", "client-1"),
        oauth2("bad-token", "bad-token", "client-22"),
        oauth2("long-token", "long-token", "client-333"),
        // Not all of it is ASCII, and servers decode headers in different ways.
        {"name": "bearer-key", "scheme": "bearer", "properties": {"token": "${ $SECRETS.KEY }"}},
    ])
}
