//! Listings: their order, their limits, and their counts.

use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_model::instance::{EndStatus, Status};
use swirl_model::scope::{Cursor, Work};
use swirl_model::{Data, WorkflowError};
use swirl_ports::{Counts, Filter, Summary};

use crate::Backend;
use crate::kit::*;

fn end(status: EndStatus) -> Command {
    Command::End {
        status,
        output: None,
        error: None,
    }
}

pub async fn listings_are_newest_first(b: Backend) {
    for id in ["b", "c", "a"] {
        let mut new = new(id);
        new.header.key = (id == "c").then(|| "key".to_owned());
        b.create(new).await;
    }
    b.act(
        &root("b"),
        change(vec![end(EndStatus::Completed)]).at(Cursor::Ended),
    )
    .await;
    let all = Filter {
        limit: 10,
        ..Filter::default()
    };
    let list = async |filter: Filter| -> Vec<String> {
        let found = b.store.list(&filter).await.unwrap();
        found
            .iter()
            .map(|summary| summary.header.id.to_string())
            .collect()
    };
    assert_eq!(list(all.clone()).await, ["a", "c", "b"]);
    let of = |workflow: &str| Filter {
        workflow: Some(workflow.to_owned()),
        ..all.clone()
    };
    assert_eq!(list(of("flow")).await, ["a", "c", "b"]);
    assert_eq!(list(of("flo")).await, Vec::<String>::new());
    assert_eq!(
        list(Filter {
            statuses: vec![Status::Running],
            after: Some(InstanceId::new("a")),
            ..of("flow")
        })
        .await,
        ["c"]
    );
    assert_eq!(
        list(Filter {
            limit: 1,
            ..all.clone()
        })
        .await,
        ["a"]
    );
    assert_eq!(
        list(Filter {
            after: Some(InstanceId::new("a")),
            ..all.clone()
        })
        .await,
        ["c", "b"]
    );
    assert_eq!(
        list(Filter {
            statuses: vec![Status::Completed],
            ..all.clone()
        })
        .await,
        ["b"]
    );
    assert_eq!(
        list(Filter {
            key: Some("key".to_owned()),
            ..all.clone()
        })
        .await,
        ["c"]
    );
    let begins = |prefix: &str| Filter {
        prefix: Some(prefix.to_owned()),
        ..all.clone()
    };
    assert_eq!(list(begins("c")).await, ["c"]);
    assert_eq!(list(begins("")).await, ["a", "c", "b"]);
    assert_eq!(list(begins("ab")).await, Vec::<String>::new());
    let keyed = Filter {
        key: Some("key".to_owned()),
        ..begins("a")
    };
    assert_eq!(list(keyed).await, Vec::<String>::new());
    assert!(
        list(Filter {
            workflow: Some("x".to_owned()),
            ..all.clone()
        })
        .await
        .is_empty()
    );
    assert!(
        list(Filter {
            version: Some("2".to_owned()),
            ..all
        })
        .await
        .is_empty()
    );
}

pub async fn named_instances_are_listed(b: Backend) {
    for id in ["b", "c", "a", "d"] {
        b.create(new(id)).await;
    }
    b.act(
        &root("c"),
        change(vec![end(EndStatus::Completed)]).at(Cursor::Ended),
    )
    .await;
    let named = |ids: &[&str]| Filter {
        ids: Some(ids.iter().map(|id| InstanceId::new(*id)).collect()),
        limit: 10,
        ..Filter::default()
    };
    let page = async |filter: Filter| {
        let page = b.store.page(&filter, &|_| true).await.unwrap();
        let ids = page.rows.iter().map(|row| row.header.id.to_string());
        (ids.collect::<Vec<_>>(), page.examined, page.next)
    };
    let (rows, seen, next) = page(named(&["c", "a", "gone", "c"])).await;
    assert_eq!((rows, seen), (vec!["a".to_owned(), "c".to_owned()], 2));
    assert_eq!(next, None, "no others are examined");
    assert_eq!(page(named(&[])).await.0, Vec::<String>::new());
    let running = Filter {
        statuses: vec![Status::Running],
        ..named(&["c", "a"])
    };
    assert_eq!(page(running).await.0, ["a"]);
    // In pages.
    let mut filter = Filter {
        limit: 1,
        ..named(&["b", "c", "d"])
    };
    let mut all = Vec::new();
    loop {
        let (rows, _, next) = page(filter.clone()).await;
        all.extend(rows);
        filter.from = next;
        if filter.from.is_none() {
            break;
        }
    }
    assert_eq!(all, ["d", "c", "b"]);
}

pub async fn pages_state_their_position(b: Backend) {
    for number in 0..30 {
        b.create(new(&format!("i{number:02}"))).await;
    }
    let filter = Filter {
        limit: 3,
        examined_max: 7,
        ..Filter::default()
    };
    // One in ten matches, so most pages end at their limit.
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
    // The next page begins after the last row of a full page.
    let all = |_: &Summary| true;
    let page = b.store.page(&filter, &all).await.unwrap();
    assert_eq!(page.rows.len(), 3);
    let next = Filter {
        from: page.next,
        ..filter.clone()
    };
    let page = b.store.page(&next, &all).await.unwrap();
    assert_eq!(page.rows[0].header.id.as_str(), "i26");
    for (from, after) in [(Some("nowhere"), None), (None, Some("gone"))] {
        let lost = Filter {
            from: from.map(str::to_owned),
            after: after.map(InstanceId::new),
            ..filter.clone()
        };
        let refused = b.store.page(&lost, &all).await;
        assert!(matches!(refused, Err(swirl_ports::Error::UnknownPlace(_))));
    }
}

/// A listing has many rows, and texts of errors come from definitions and services.
pub async fn rows_have_a_bounded_size(b: Backend) {
    let mut new = new("a");
    new.header.input = Data::string("x".repeat(100_000));
    b.create(new).await;
    let failed = Command::End {
        status: EndStatus::Faulted,
        output: None,
        error: Some(WorkflowError::new("Refused", "é".repeat(50_000))),
    };
    b.act(&root("a"), change(vec![failed])).await;
    let filter = Filter {
        limit: 10,
        ..Filter::default()
    };
    let rows = b.store.list(&filter).await.unwrap();
    let error = rows[0].error.clone().unwrap();
    assert_eq!(error.name, "Refused");
    assert!(error.message.starts_with('é') && error.message.ends_with('…'));
    assert!(error.message.len() < 3_000, "{}", error.message.len());
    let whole = b.store.instance(&InstanceId::new("a")).await.unwrap();
    let whole = whole.unwrap();
    assert_eq!(whole.state.error.unwrap().message.len(), 100_000);
    assert_eq!(whole.header.input, Data::string("x".repeat(100_000)));
}

pub async fn instances_are_counted(b: Backend) {
    for id in ["a", "b", "c"] {
        b.create(new(id)).await;
    }
    let mut other = new("d");
    other.header.definition = definition("other");
    b.create(other).await;
    b.act(
        &root("b"),
        change(vec![end(EndStatus::Completed)]).at(Cursor::Ended),
    )
    .await;
    let workflows = ["flow".into(), "none".into(), "other".into()];
    let (all, each) = b.store.counts(&workflows).await.unwrap();
    let counts = |running, completed| Counts {
        running,
        completed,
        ..Counts::default()
    };
    assert_eq!(all, counts(3, 1));
    assert_eq!(each, [counts(2, 1), counts(0, 0), counts(1, 0)]);
}

pub async fn instances_are_counted_by_version(b: Backend) {
    let versions = [
        ("a", "1"),
        ("b", "1"),
        ("c", "2"),
        ("d", "2"),
        ("e", "1.0\u{e9}"),
    ];
    for (id, version) in versions {
        let mut new = new(id);
        new.header.definition.version = version.into();
        b.create(new).await;
    }
    // Others, whose names begin or end like this one's.
    for (id, workflow) in [("x", "flow2"), ("y", "flo"), ("z", "workflow")] {
        let mut new = new(id);
        new.header.definition = definition(workflow);
        b.create(new).await;
    }
    for (id, status) in [("b", EndStatus::Completed), ("c", EndStatus::Faulted)] {
        let cursor = match status {
            EndStatus::Faulted => blocked(Work::Begin),
            _ => Cursor::Ended,
        };
        b.act(&root(id), change(vec![end(status)]).at(cursor)).await;
    }
    let found = b.store.counts_by_version("flow").await.unwrap();
    let counts = |running, faulted| Counts {
        running,
        faulted,
        ..Counts::default()
    };
    let expected = [
        ("1", counts(1, 0)),
        ("1.0\u{e9}", counts(1, 0)),
        ("2", counts(1, 1)),
    ];
    let shown: Vec<_> = found
        .versions
        .iter()
        .map(|(version, one)| (&**version, *one))
        .collect();
    assert_eq!(shown, expected);
    assert!(found.is_complete);
    let none = b.store.counts_by_version("none").await.unwrap();
    assert!(none.versions.is_empty() && none.is_complete);
}
