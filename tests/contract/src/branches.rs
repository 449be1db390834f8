//! The data of branches. Stores keep only the difference from the fork's data.

use swirl_model::event::Command;
use swirl_model::scope::{Scope, Work};
use swirl_model::{Data, data};
use swirl_ports::execution::Record;

use crate::Backend;
use crate::kit::*;

/// The initial data of all branches: a long list, and an object that contains another one.
fn common() -> Data {
    let list: Vec<Data> = (0..400).map(|n| data!({"id": n, "text": "item"})).collect();
    let mut data = data!({"n": 1, "gone": [1], "order": {"paid": false}});
    data.set("items", Data::array(list.clone()));
    let mut order = data.get("order").unwrap_or_default();
    order.set("lines", Data::array(list));
    data.set("order", order);
    data
}

fn record(held: &swirl_ports::Held) -> &Scope {
    match &held.record {
        Record::Scope(scope) => scope,
        Record::Branch { .. } => panic!("it has no record"),
    }
}

async fn view(b: &Backend, id: &str, branch: &str) -> Data {
    let id = swirl_model::ids::InstanceId::new(id);
    let (_, open) = b.store.view(&id).await.unwrap().unwrap();
    let all = b.store.scopes(&id).await.unwrap();
    let of = |scopes: &[Scope]| {
        let mut scopes = scopes.iter().filter(|scope| scope.id.as_str() == branch);
        scopes.next().map(|scope| scope.data.clone())
    };
    assert_eq!(of(&open), of(&all));
    of(&all).unwrap()
}

pub async fn branches_keep_their_data(b: Backend) {
    b.create(new("a")).await;
    let Command::Fork(mut wide) = fork("r", 1, 4, 4, 4) else {
        panic!("no fork")
    };
    wide.data = common();
    let begun = change(vec![Command::Fork(wide)]).at(forked(1, 4));
    b.act(&root("a"), begun).await;

    // The changes: none, a different value, a different order without a member, more members in an object.
    let mut other_order = Data::object();
    for key in ["order", "items", "n"] {
        other_order.set(key, common().get(key).unwrap());
    }
    for (branch, lazily) in [(0, true), (1, true), (2, false), (3, true)] {
        let name = format!("r.1.{branch}");
        let hold = async |lazily: bool| match lazily {
            true => b.hold_lazily(&scope("a", &name)).await,
            false => b.hold(&scope("a", &name)).await,
        };
        let mut held = hold(lazily).await;
        let Record::Branch { fork, .. } = &held.record else {
            panic!("{name} has begun")
        };
        let mut wanted = fork.data.clone();
        match branch {
            0 => {}
            1 => wanted = data!([1, 2]),
            2 => wanted = other_order.clone(),
            _ => {
                let mut order = wanted.get("order").unwrap();
                order.set("paid", data!(true));
                wanted.set("order", order);
                wanted.set("item", data!({"id": 7}));
            }
        }
        let first = change(vec![]).at(blocked(Work::Sleep)).data(wanted.clone());
        b.commit(&mut held, first).await;
        if held.lease.is_taken() {
            b.release(&held).await;
        }
        let shown = view(&b, "a", &name).await;
        assert_eq!(shown.to_string(), wanted.to_string(), "{name}");

        // It continues from there, in either way of reading.
        for (round, lazily) in [(1, true), (2, false), (3, true)] {
            let mut held = hold(lazily).await;
            assert_eq!(record(&held).data.to_string(), wanted.to_string());
            assert_eq!(record(&held).rev, round);
            if wanted.is_object() {
                wanted.set("round", data!(round));
            }
            let more = change(vec![]).at(blocked(Work::Sleep)).data(wanted.clone());
            b.commit(&mut held, more).await;
            if held.lease.is_taken() {
                b.release(&held).await;
            }
            let shown = view(&b, "a", &name).await;
            assert_eq!(shown.to_string(), wanted.to_string(), "{name}, {round}");
        }
    }
}
