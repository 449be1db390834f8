//! Chains of instances on a Redis server. Several processes work on the same instances and events, and each of them
//! stands still now and then, at a point that the seed chooses.
//!
//! The other simulations have the embedded store, in which an event and all that follows from it for instances is one
//! step. On Redis it is many steps of many processes, with rules of their own. Only this simulation sees a fault in
//! these rules.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::event::{Command, EventMatch};
use swirl_model::ids::ScopeRef;
use swirl_model::instance::EndStatus;
use swirl_model::scope::Cursor;
use swirl_ports::{Acquired, Held, Released};
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;
use swirl_simulation::random::Random;
use tokio::time::Sleep;

const PROCESSES: usize = 3;
const CHAINS: usize = 2;
const EVENTS: usize = 6;
/// So that a run ends even if an event is lost.
const ROUNDS_MAX: usize = 400;

/// A process that stands still now and then.
struct Halting<T> {
    inner: Pin<Box<dyn Future<Output = T>>>,
    pause: Option<Pin<Box<Sleep>>>,
    random: Random,
}

impl<T> Future for Halting<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Some(pause) = &mut self.pause {
            if pause.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.pause = None;
        }
        let polled = self.inner.as_mut().poll(context);
        if polled.is_pending() && self.random.percent(15) {
            let micros = 200 + self.random.below(5_000) as u64;
            // Time has to pass: other processes act meanwhile. The pause wakes the process.
            let mut pause = Box::pin(tokio::time::sleep(Duration::from_micros(micros)));
            if pause.as_mut().poll(context).is_pending() {
                self.pause = Some(pause);
            }
        }
        polled
    }
}

#[derive(Default)]
struct World {
    /// The events that no process has taken yet, by chain and number.
    unsent: Vec<(usize, usize)>,
    woken: BTreeSet<ScopeRef>,
    /// By chain: the events that were consumed, in order, and the instances that did.
    consumed: BTreeMap<usize, Vec<String>>,
    /// The current instance of each chain.
    links: BTreeMap<usize, usize>,
}

fn by_order() -> EventMatch {
    filter("t", &[("order", None)])
}

fn link(chain: usize, number: usize) -> String {
    format!("c{chain}n{number}")
}

async fn begin(b: &Backend, chain: usize, number: usize) -> Vec<ScopeRef> {
    let id = link(chain, number);
    b.create(new(&id)).await;
    let order = Command::Correlate(vec![("order".into(), chain.to_string())]);
    let wait = Command::Subscribe(subscription(1, vec![by_order()]));
    // Another process may look at it before.
    let mut held = loop {
        match b.store.acquire(&root(&id), LEASE_MS).await.unwrap() {
            Acquired::Held(held) => break held,
            // Time has to pass: the other process works.
            Acquired::Busy => tokio::time::sleep(Duration::from_millis(1)).await,
            Acquired::Gone => panic!("{id} has ended before it waited"),
        }
    };
    let change = Change {
        release: true,
        ..change(vec![order, wait])
    };
    let outcome = b.commit(&mut held, change).await;
    let mut woken = outcome.wake;
    if !outcome.released {
        b.store.drain(&held.lease).await.unwrap();
        b.release(&held).await;
        woken.push(root(&id));
    }
    woken
}

/// Releases a scope. What has come meanwhile is left to another process.
async fn let_go(b: &Backend, world: &RefCell<World>, held: &Held) {
    while b.release(held).await == Released::More {
        b.store.drain(&held.lease).await.unwrap();
        world.borrow_mut().woken.insert(held.lease.scope.clone());
    }
}

/// If the instance has an event, it ends with it, and its chain continues.
async fn step(b: &Backend, world: &RefCell<World>, scope: &ScopeRef) {
    let id = scope.instance.as_str();
    let (chain, number) = id[1..].split_once('n').unwrap();
    let (chain, number): (usize, usize) = (chain.parse().unwrap(), number.parse().unwrap());
    let Acquired::Held(mut held) = b.store.acquire(scope, LEASE_MS).await.unwrap() else {
        return;
    };
    let Some(item) = held.inbox.first().cloned() else {
        return let_go(b, world, &held).await;
    };
    let end = Command::End {
        status: EndStatus::Completed,
        output: None,
        error: None,
    };
    let last = Change {
        release: true,
        ..change(vec![end]).at(Cursor::Ended).consumed(&[&item.id])
    };
    if b.try_commit(&mut held, last).await.is_none() {
        return let_go(b, world, &held).await;
    }
    {
        let mut world = world.borrow_mut();
        world.links.insert(chain, number + 1);
        let consumed = world.consumed.entry(chain).or_default();
        consumed.extend(event_ids(&[item]));
    }
    let woken = begin(b, chain, number + 1).await;
    world.borrow_mut().woken.extend(woken);
}

async fn process(b: Backend, world: Rc<RefCell<World>>, mut random: Random) {
    for _ in 0..ROUNDS_MAX {
        let (all, over) = {
            let world = world.borrow();
            let consumed = world.consumed.values().map(Vec::len);
            let all = consumed.sum::<usize>() >= CHAINS * EVENTS;
            (all, world.unsent.is_empty())
        };
        if all && over {
            return;
        }
        let unsent = match random.percent(40) {
            true => world.borrow_mut().unsent.pop(),
            false => None,
        };
        if let Some((chain, number)) = unsent {
            let id = format!("{chain}-{number}");
            let event = event(&id, "t", &[("order", &chain.to_string())]);
            let ingested = b.ingest(&event, &[by_order()]).await;
            world.borrow_mut().woken.extend(ingested.woken);
            b.events.acknowledge(&event, at(0)).await.unwrap();
            continue;
        }
        let woken = world.borrow_mut().woken.pop_first();
        let scope = match woken {
            Some(scope) => scope,
            // A worker that waits for news of the current instance.
            None if random.percent(60) => {
                let chain = random.below(CHAINS);
                let number = world.borrow().links.get(&chain).copied();
                root(&link(chain, number.unwrap_or_default()))
            }
            None => {
                let found = b.store.runnable(10).await.unwrap();
                world.borrow_mut().woken.extend(found);
                continue;
            }
        };
        step(&b, &world, &scope).await;
    }
}

/// Returns what went wrong.
async fn run(server: &RedisServer, seed: u64) -> Vec<String> {
    let mut random = Random::new(seed);
    let mut backends = Vec::new();
    for _ in 0..PROCESSES {
        let options = Options {
            namespace: format!("seed{seed}"),
            grace_ms: 0,
            repeat_ms: 0,
            ..Options::single(server.url())
        };
        backends.push(Backend::of(
            Arc::new(Redis::connect(options).await.unwrap()),
            (),
        ));
    }
    let mut unsent: Vec<(usize, usize)> = (0..CHAINS)
        .flat_map(|chain| (0..EVENTS).map(move |number| (chain, number)))
        .collect();
    for place in (1..unsent.len()).rev() {
        unsent.swap(place, random.below(place + 1));
    }
    // Some events are there before the first instance.
    for (chain, number) in unsent.split_off(unsent.len() - random.below(6)) {
        let id = format!("{chain}-{number}");
        let event = event(&id, "t", &[("order", &chain.to_string())]);
        backends[0].ingest(&event, &[by_order()]).await;
        backends[0].events.acknowledge(&event, at(0)).await.unwrap();
    }
    let world = Rc::new(RefCell::new(World {
        unsent,
        ..World::default()
    }));
    for chain in 0..CHAINS {
        let woken = begin(&backends[0], chain, 0).await;
        world.borrow_mut().woken.extend(woken);
    }
    let processes = backends.into_iter().map(|b| Halting {
        inner: Box::pin(process(b, world.clone(), Random::new(random.next()))),
        pause: None,
        random: Random::new(random.next()),
    });
    futures::future::join_all(processes).await;
    let world = world.borrow();
    let mut found = Vec::new();
    for chain in 0..CHAINS {
        let mut consumed = world.consumed.get(&chain).cloned().unwrap_or_default();
        consumed.sort();
        let sent: Vec<String> = (0..EVENTS).map(|n| format!("{chain}-{n}")).collect();
        if consumed != sent {
            found.push(format!("seed {seed}: chain {chain} consumed {consumed:?}"));
        }
    }
    found
}

#[tokio::test]
async fn each_event_is_for_one_link_of_its_chain() {
    let server = RedisServer::start().unwrap();
    let mut found = Vec::new();
    for seed in 0..8 {
        found.extend(run(&server, seed).await);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
