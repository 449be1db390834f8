//! Search attributes: how they find instances, and how they change.

use std::sync::Arc;

use swirl_model::attribute::{Attribute, AttributeKind, Attributes};
use swirl_model::event::Command;
use swirl_model::instance::{EndStatus, Status};
use swirl_model::scope::Cursor;
use swirl_model::time::Timestamp;
use swirl_ports::{AttributeFilter, Bound, Filter, Summary, Values};

use crate::Backend;
use crate::first_turn::{ended_at_once, turn};
use crate::kit::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn text(text: &str) -> Attribute {
    Attribute::Text(text.into())
}

fn values(pairs: &[(&str, Attribute)]) -> Attributes {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| (Arc::from(*name), value.clone()))
        .collect()
}

/// A commit that sets the search attributes of the instance.
fn found_by(pairs: &[(&str, Attribute)]) -> Change {
    change(vec![Command::Index]).attributes(values(pairs))
}

fn by(name: &str, values: Values) -> Filter {
    Filter {
        attribute: Some(AttributeFilter {
            name: name.into(),
            values,
        }),
        limit: 100,
        ..Filter::default()
    }
}

fn range(from: Option<(Attribute, bool)>, to: Option<(Attribute, bool)>) -> Values {
    let bound = |(value, inclusive)| Bound { value, inclusive };
    let kind = [&from, &to].into_iter().flatten().next();
    Values::Range {
        kind: kind.map_or(AttributeKind::Number, |(value, _)| value.kind()),
        from: from.map(bound),
        to: to.map(bound),
    }
}

async fn ids(b: &Backend, filter: Filter) -> Vec<String> {
    let found = b.store.list(&filter).await.unwrap();
    found.iter().map(|row| row.header.id.to_string()).collect()
}

pub async fn instances_are_found_by_attributes(b: Backend) {
    let amounts = [
        ("a", -2.5),
        ("b", 12.0),
        ("c", 0.0),
        ("d", 12.0),
        ("e", 1e9),
    ];
    let orders = [
        ("a", "o1"),
        ("b", "o10"),
        ("c", "o\u{1}"),
        ("d", ""),
        ("e", "p1"),
    ];
    for ((id, amount), (_, order)) in amounts.into_iter().zip(orders) {
        b.create(new(id)).await;
        let pairs = [
            ("amount", Attribute::Number(amount)),
            ("order", text(order)),
            ("orders", text("o1")),
            ("paid", Attribute::Boolean(amount > 0.0)),
            ("due", Attribute::Time(Timestamp(amount as i64))),
        ];
        b.act(&root(id), found_by(&pairs)).await;
    }
    b.create(new("f")).await;
    let number = |value: f64, inclusive| Some((Attribute::Number(value), inclusive));
    let prefix = |prefix: &str| Values::Prefix(prefix.to_owned());
    for (name, values, wanted) in [
        // Largest value first; equal values are ordered newest first.
        ("amount", range(None, None), "e d b c a"),
        ("amount", Values::Equal(Attribute::Number(12.0)), "d b"),
        ("amount", range(number(12.0, false), None), "e"),
        ("amount", range(number(12.0, true), None), "e d b"),
        (
            "amount",
            range(number(0.0, false), number(12.0, true)),
            "d b",
        ),
        ("amount", range(None, number(12.0, false)), "c a"),
        ("amount", range(number(13.0, true), number(12.0, true)), ""),
        ("order", Values::Equal(text("o1")), "a"),
        ("order", Values::Equal(text("")), "d"),
        ("order", Values::Equal(text("o")), ""),
        ("order", prefix("o1"), "b a"),
        ("order", prefix("o"), "b a c"),
        ("order", prefix(""), "e b a c d"),
        ("order", range(Some((text("o1"), false)), None), "e b"),
        ("orders", prefix("o"), "e d c b a"),
        ("paid", Values::Equal(Attribute::Boolean(false)), "c a"),
        ("due", Values::Equal(Attribute::Time(Timestamp(12))), "d b"),
        ("none", prefix(""), ""),
        // A value with another type.
        ("order", Values::Equal(Attribute::Number(1.0)), ""),
    ] {
        let found = ids(&b, by(name, values.clone())).await;
        assert_eq!(found.join(" "), wanted, "{name} {values:?}");
    }
    // A listed instance shows its attributes.
    let found = b.store.list(&by("order", Values::Equal(text("o1")))).await;
    let found = &found.unwrap()[0].attributes;
    assert_eq!(found.get("amount"), Some(&Attribute::Number(-2.5)));
    assert_eq!(found.len(), 5);
    let instance = b.store.instance(&root("c").instance).await.unwrap();
    let instance = instance.unwrap().state;
    assert_eq!(instance.attributes.get("order"), Some(&text("o\u{1}")));
    // Other conditions apply too.
    let running = Filter {
        statuses: vec![Status::Completed],
        ..by("orders", prefix(""))
    };
    assert_eq!(ids(&b, running).await, Vec::<String>::new());
}

pub async fn attributes_follow_the_instance(b: Backend) {
    let one = |value: &str| Values::Equal(text(value));
    b.create(new("a")).await;
    b.act(&root("a"), found_by(&[("x", text("1")), ("y", text("1"))]))
        .await;
    b.act(&root("a"), found_by(&[("x", text("2")), ("z", text("1"))]))
        .await;
    for (name, value, wanted) in [
        ("x", "1", false),
        ("x", "2", true),
        ("y", "1", false),
        ("z", "1", true),
    ] {
        let found = ids(&b, by(name, one(value))).await;
        assert_eq!(!found.is_empty(), wanted, "{name} {value}");
    }
    // A commit without attributes changes nothing, and neither does a refused commit.
    b.act(
        &root("a"),
        change(vec![]).attributes(values(&[("x", text("3"))])),
    )
    .await;
    assert_eq!(ids(&b, by("x", one("2"))).await, ["a"]);
    let mut late = b.hold(&root("a")).await;
    b.release(&late).await;
    b.act(&root("a"), change(vec![])).await;
    let refused = b.try_commit(&mut late, found_by(&[("x", text("4"))])).await;
    assert!(refused.is_none());
    assert_eq!(ids(&b, by("x", one("4"))).await, Vec::<String>::new());
    // It can be found after its end, until it is removed.
    let end = |status| Command::End {
        status,
        output: None,
        error: None,
    };
    let last = change(vec![end(EndStatus::Completed)]).at(Cursor::Ended);
    b.act(&root("a"), last).await;
    assert_eq!(ids(&b, by("x", one("2"))).await, ["a"]);
    b.create(new("b")).await;
    let last = found_by(&[("x", text("2"))]).at(Cursor::Idle);
    let last = Change {
        commands: vec![Command::Index, end(EndStatus::Faulted)],
        ..last
    };
    b.act(&root("b"), last).await;
    assert_eq!(ids(&b, by("x", one("2"))).await, ["b", "a"]);
    let mut carried_out = ended_at_once("c", 1);
    let turn = turn(&mut carried_out);
    turn.scope.attributes = values(&[("x", text("2"))]);
    turn.commands.insert(0, Command::Index);
    b.create(carried_out).await;
    assert_eq!(ids(&b, by("x", one("2"))).await, ["c", "b", "a"]);
    let instance = b.store.instance(&root("c").instance).await.unwrap();
    assert_eq!(instance.unwrap().state.attributes.len(), 1);
    b.events.expire(at(300 * DAY_MS)).await.unwrap();
    assert_eq!(ids(&b, by("x", one("2"))).await, Vec::<String>::new());
    // A new instance with the same name has no attributes of the old one.
    b.create(new("a")).await;
    assert_eq!(ids(&b, by("x", one("2"))).await, Vec::<String>::new());
    b.act(&root("a"), found_by(&[("x", text("5"))])).await;
    b.act(&root("a"), found_by(&[])).await;
    let found = ids(&b, by("x", Values::Prefix(String::new()))).await;
    assert_eq!(found, Vec::<String>::new());
    let instance = b.store.instance(&root("a").instance).await.unwrap();
    assert!(instance.unwrap().state.attributes.is_empty());
}

pub async fn pages_by_attribute_state_their_position(b: Backend) {
    for number in 0..30 {
        let id = format!("i{number:02}");
        b.create(new(&id)).await;
        let tens = Attribute::Number(f64::from(number / 10));
        b.act(&root(&id), found_by(&[("tens", tens)])).await;
    }
    let filter = Filter {
        limit: 3,
        examined_max: 7,
        ..by("tens", range(None, None))
    };
    let keep = |row: &Summary| row.header.id.as_str().ends_with('5');
    let (mut found, mut pages, mut seen) = (Vec::new(), 0, 0);
    let mut next = filter.clone();
    loop {
        let page = b.store.page(&next, &keep).await.unwrap();
        pages += 1;
        seen += page.examined;
        found.extend(page.rows.into_iter().map(|row| row.header.id.to_string()));
        let Some(place) = page.next else { break };
        next.from = Some(place);
        assert!(pages < 100, "it comes to no end");
    }
    assert_eq!(found, ["i25", "i15", "i05"]);
    assert_eq!(seen, 30, "each is looked at once");
    assert!(pages > 1, "a page has a bound");
    let lost = Filter {
        from: Some("nowhere".to_owned()),
        ..filter
    };
    let refused = b.store.page(&lost, &keep).await;
    assert!(matches!(refused, Err(swirl_ports::Error::UnknownPlace(_))));
}
