//! Definitions that are rejected at deployment.

use swirl_functions::Caller;
use swirl_functions::http::Http;
use swirl_model::{Data, data};

use crate::rpc::fixture::{URI, config, function, prepare};
use crate::rpc::service::PROTO;

fn refused(operation: &str, metadata: Data, proto: &str) -> String {
    let caller = Caller::new(Http::new(config()).unwrap());
    let problems = prepare(&caller, &function(operation, metadata), proto).unwrap_err();
    assert_eq!(problems.len(), 1);
    problems[0].to_string()
}

#[test]
fn uncallable_functions_are_rejected() {
    let server = data!({"server": "grpc://users:9000"});
    for (operation, metadata, expected) in [
        (
            "UserService#GetUser",
            data!({"server": "users:9000"}),
            "`metadata.server`: `users:9000` is not a valid address",
        ),
        (
            "UserService#GetUser",
            data!({"server": 7}),
            "`metadata.server` must be a string",
        ),
        (
            "UserService#getUser",
            server.clone(),
            "did you mean `GetUser`?",
        ),
        (
            "UsersService#GetUser",
            server.clone(),
            "did you mean `UserService`?",
        ),
        ("UserService", server.clone(), "with `#` between them"),
    ] {
        let error = refused(&format!("{URI}#{operation}"), metadata, PROTO);
        assert!(error.contains(expected), "{error}");
    }
    let operation = format!("{URI}#UserService#GetUser");
    let error = refused(
        &operation,
        server.clone(),
        "syntax = \"proto3\";\nservce UserService {}",
    );
    assert!(
        error.contains("`file://users.proto`: users.proto:2:"),
        "{error}"
    );
    let error = refused("other.proto#S#M", server, PROTO);
    assert!(
        error.contains("it isn't among the definition's resources"),
        "{error}"
    );
}

/// It may be given where the definition runs.
#[test]
fn a_service_without_an_address_is_deployed() {
    let caller = Caller::new(Http::new(config()).unwrap());
    let function = function(&format!("{URI}#UserService#GetUser"), Data::NULL);
    assert!(prepare(&caller, &function, PROTO).is_ok());
}

#[test]
fn the_proto_file_is_a_needed_document() {
    let workflow = swirl_model::workflow::Workflow {
        functions: vec![function(&format!("{URI}#UserService#GetUser"), Data::NULL)],
        ..Default::default()
    };
    let needed: Vec<_> = Caller::needs(&workflow)
        .iter()
        .map(|needed| needed.uri.clone())
        .collect();
    assert_eq!(needed, [URI]);
}

/// A file in the folder of its package, with an import. Missing files are requested until all are there.
#[test]
fn imports_are_needed_documents() {
    let root = "http://h/protos/acme/v1/s.proto";
    let function = function(
        &format!("{root}#acme.v1.S#M"),
        data!({"server": "grpc://h:1"}),
    );
    let workflow = swirl_model::workflow::Workflow {
        functions: vec![function],
        ..Default::default()
    };
    let caller = Caller::new(Http::new(config()).unwrap());
    let head = "syntax = \"proto3\"; package acme.v1;";
    let mut resources = vec![(
        root.to_owned(),
        format!("{head} import \"acme/v1/m.proto\"; service S {{ rpc M(A) returns (A); }}"),
    )];
    let needed = |resources: &[_]| -> Vec<String> {
        let needed = caller.gather(&workflow).missing(resources);
        needed.into_iter().map(|needed| needed.uri).collect()
    };
    let missing = needed(&resources);
    assert_eq!(missing, ["http://h/protos/acme/v1/m.proto"]);
    let problems = caller
        .prepare(&crate::rpc::fixture::definition(), &workflow, &resources)
        .unwrap_err();
    assert!(
        problems[0]
            .message
            .contains("import 'acme/v1/m.proto' not found"),
        "{}",
        problems[0]
    );
    let text =
        format!("{head} import \"google/protobuf/empty.proto\"; message A {{ int32 a = 1; }}");
    resources.push((missing[0].clone(), text));
    assert!(needed(&resources).is_empty());
    caller
        .prepare(&crate::rpc::fixture::definition(), &workflow, &resources)
        .unwrap();
}
