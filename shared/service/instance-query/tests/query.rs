//! The meaning of queries, the instances that they select, and the errors of invalid ones.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use swirl_instance_query::{Declared, Query};
use swirl_model::WorkflowError;
use swirl_model::attribute::{Attribute, AttributeKind};
use swirl_model::data::Data;
use swirl_model::ids::{DefinitionId, InstanceId};
use swirl_model::instance::{Header, Status};
use swirl_model::time::Timestamp;
use swirl_model::trace::Trace;
use swirl_ports::{Summary, Values};

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn summary() -> Summary {
    let mut error = WorkflowError::new("FunctionError", "busy");
    error.state = Some("Charge".to_owned());
    Summary {
        header: Arc::new(Header {
            id: InstanceId::new("order-7"),
            definition: DefinitionId {
                workflow: "order".into(),
                version: "1.0".into(),
            },
            version: "1.0".to_owned(),
            input: Data::object(),
            started_at: Timestamp(NOW.0 - 60_000),
            parent: None,
            continued_from: None,
            scheduled_at: None,
            key: Some("k".to_owned()),
            instance_key: None,
            timeout: None,
            depth: 0,
            hops: 0,
            trace: Trace::default(),
            retention: Default::default(),
        }),
        status: Status::Faulted,
        suspended: false,
        ended_at: Some(NOW),
        error: Some(error),
        attributes: [
            ("orderId".into(), Attribute::Text("o1".into())),
            ("amount".into(), Attribute::Number(12.5)),
            ("paid".into(), Attribute::Boolean(false)),
            ("due".into(), Attribute::Time(Timestamp(NOW.0 + 1000))),
        ]
        .into(),
    }
}

fn declared() -> Declared {
    let mut declared = Declared::default();
    for (name, kind) in [
        ("orderId", AttributeKind::Text),
        ("amount", AttributeKind::Number),
        ("paid", AttributeKind::Boolean),
        ("due", AttributeKind::Time),
    ] {
        declared.add(&name.into(), kind);
    }
    declared
}

fn means(text: &str) -> bool {
    let query = Query::parse(text, NOW).unwrap();
    query.check(&declared()).unwrap();
    query.matches(&summary())
}

#[test]
fn who_is_meant() {
    for text in [
        "",
        "workflow = \"order\" and status = faulted and started > -1h and @orderId = \"o1\"",
        "workflow = order",
        "id ^= order- AND NOT version = '2.0'",
        "status in (completed, faulted)",
        "error = FunctionError and state = \"Charge\"",
        "status = completed or (status = faulted and suspended = false)",
        "started < now and started >= -1m and ended = 2023-11-14T22:13:20Z",
        "parent != x and errorCode != 503",
        "not parent = x",
        "@amount > 12 and @amount <= 12.5",
        "@paid = false",
        "@due > now",
        "@orderId ^= o",
        "@orderId in (o2, o1)",
        "key = k",
    ] {
        assert!(means(text), "{text}");
    }
    for text in [
        "status != faulted",
        "status in (completed, running)",
        "suspended = true",
        "instanceKey = k",
        "started > -30s",
        "@amount = 12",
        "@orderId ^= p",
        "@orderId < o1",
        "parent ^= \"\"",
        "not (status = faulted or status = running)",
    ] {
        assert!(!means(text), "{text}");
    }
}

#[test]
fn an_index_serves_what_must_hold() {
    let filter = |text: &str| Query::parse(text, NOW).unwrap().filter(&declared());
    let found =
        filter("workflow = order and version = \"1.0\" and status = faulted and started > -1h");
    assert_eq!(found.workflow.as_deref(), Some("order"));
    assert_eq!(found.version.as_deref(), Some("1.0"));
    assert_eq!(found.statuses, [Status::Faulted]);
    assert_eq!(found.since, Some(Timestamp(NOW.0 - 70 * 60_000)));
    // One side of an `or` need not hold.
    let found = filter("workflow = order or status = faulted");
    assert_eq!((found.workflow, found.statuses), (None, vec![]));
    let found =
        filter("status in (faulted, running) and not version = \"1\" and status != running");
    assert_eq!(found.statuses, [Status::Faulted]);
    assert_eq!(filter("not status = faulted").statuses, []);
    let found = filter("@amount > 1 and @orderId ^= o and @amount < 9")
        .attribute
        .unwrap();
    assert_eq!(found.values, Values::Prefix("o".to_owned()));
    let found = filter("@amount > 1 and @amount < 9").attribute.unwrap();
    let Values::Range { from, to, .. } = found.values else {
        panic!("{:?}", found.values)
    };
    assert_eq!(from.unwrap().value, Attribute::Number(1.0));
    assert_eq!(to.unwrap().value, Attribute::Number(9.0));
}

#[test]
fn named_instances_are_looked_up() {
    let ids = |text: &str| {
        let filter = Query::parse(text, NOW).unwrap().filter(&declared());
        assert!(filter.ids.is_none() || filter.attribute.is_none(), "{text}");
        let ids = filter.ids?;
        Some(ids.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let these = |all: &[&str]| Some(all.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
    assert_eq!(ids("id = a"), these(&["a"]));
    assert_eq!(ids("id in (a, \"b c\")"), these(&["a", "b c"]));
    assert_eq!(
        ids("(id = a or id in (b, c)) and status = faulted"),
        these(&["a", "b", "c"])
    );
    assert_eq!(
        ids("id in (a, b) and id in (b, c) and @amount > 1"),
        these(&["b"])
    );
    assert_eq!(ids("id = a and id = b"), these(&[]));
    for text in [
        "id = a or status = faulted",
        "not id = a",
        "id != a",
        "id ^= a",
        "parent = a",
    ] {
        assert_eq!(ids(text), None, "{text}");
    }
    let begins = Query::parse("id ^= a", NOW).unwrap().filter(&declared());
    assert_eq!(begins.prefix.as_deref(), Some("a"));
}

#[test]
fn two_types_of_a_name_have_no_index() {
    let mut declared = declared();
    declared.add(&"orderId".into(), AttributeKind::Number);
    let query = Query::parse("@orderId = 7", NOW).unwrap();
    query.check(&declared).unwrap();
    assert_eq!(query.filter(&declared).attribute, None);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let refused = |text: &str| {
        let query = Query::parse(text, NOW);
        let error = query
            .and_then(|query| query.check(&declared()))
            .unwrap_err();
        error.shown(text)
    };
    let texts = [
        "statis = faulted",
        "status = broken",
        "status = suspended",
        "status < faulted",
        "started > yesterday",
        "status = faulted workflow = order",
        "status = faulted and",
        "(status = faulted",
        "workflow = \"order",
        "workflow order",
        "status in faulted",
        "status in (faulted running)",
        "\"order\" = workflow",
        "@ = 1",
        "@customer = 1",
        "@amount = much",
        "@amount ^= 1",
        "suspended = yes",
        "a % b",
        "workflow = 'a\\b'",
    ];
    let all: Vec<String> = texts.iter().map(|text| refused(text)).collect();
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn a_query_has_limits() {
    let parse = |text: String| Query::parse(&text, NOW).map(|_| ()).unwrap_err().message;
    assert_eq!(parse("x".repeat(5000)), "a query has at most 4096 bytes");
    let deep = format!("{}id = a{}", "(".repeat(40), ")".repeat(40));
    assert_eq!(parse(deep), "this is nested more than 32 times");
    let long = vec!["id = a"; 65].join(" or ");
    assert_eq!(parse(long), "a query has at most 64 comparisons");
    let list = vec!["a"; 101].join(",");
    assert_eq!(
        parse(format!("id in ({list})")),
        "a list has at most 100 values"
    );
}

#[test]
fn waiting_instances_are_running() {
    let parse = |text: &str| Query::parse(text, NOW);
    for text in [
        "status = waiting",
        "workflow = order and (status = waiting and started > -1h)",
    ] {
        let query = parse(text).unwrap();
        assert!(query.waiting(), "{text}");
        assert_eq!(query.filter(&declared()).statuses, [Status::Running]);
    }
    assert!(!parse("status = running").unwrap().waiting());
    assert!(parse("status in (waiting)").unwrap().waiting());
    for (text, said) in [
        (
            "status = waiting or status = faulted",
            "can only be joined to the rest with 'and'",
        ),
        (
            "not status = waiting",
            "can only be joined to the rest with 'and'",
        ),
        (
            "status != waiting",
            "instances that don't wait can't be queried",
        ),
        (
            "status in (waiting, faulted)",
            "'waiting' can't be in a list",
        ),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}
