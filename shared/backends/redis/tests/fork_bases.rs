//! The common data of a fork's branches is read once, and never confused with that of another fork.

use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_model::scope::{Cursor, Work};
use swirl_model::{Data, data};
use swirl_ports::execution::Record;
use swirl_ports::{Acquired, Committed};
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

async fn connect(server: &RedisServer) -> (Redis, Backend) {
    let store = Redis::connect(Options::single(server.url())).await.unwrap();
    let shared = Arc::new(store.clone());
    let backend = Backend::of(shared, ());
    (store, backend)
}

/// After a failover that lost the last writes, or after an expiry, a worker's cached origin isn't used for another fork
/// with the same name.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_instance_with_the_same_name_uses_no_cached_origin() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    let (_, forking) = connect(&server).await;
    for round in 0..2 {
        let mut instance = new("a");
        instance.header.input = data!({"round": round});
        b.create(instance).await;
        let Command::Fork(mut common) = fork("r", 1, 2, 2, 2) else {
            panic!("no fork")
        };
        common.data = data!({"round": round});
        let begun = change(vec![Command::Fork(common)]).at(forked(1, 2));
        forking.act(&root("a"), begun).await;
        for branch in ["r.1.0", "r.1.1"] {
            let held = b.hold_lazily(&scope("a", branch)).await;
            assert_eq!(held.header.input, data!({"round": round}));
            let Record::Branch { fork, .. } = held.record else {
                panic!("it has begun")
            };
            assert_eq!(fork.data, data!({"round": round}));
        }
        assert_eq!(store.known_fork_bases(), round + 1, "the second branch's");
        let key = server.cli(&["--scan", "--pattern", "*}:i:a"]).unwrap();
        server.cli(&["DEL", key.trim()]).unwrap();
    }
}

/// The branches run one after another, as in a sequential foreach, and the scope commits before each.
#[tokio::test(flavor = "multi_thread")]
async fn the_common_data_of_branches_is_read_once() {
    const BRANCHES: u32 = 5;
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    let (_, forking) = connect(&server).await;
    b.create(new("a")).await;
    let Command::Fork(mut large) = fork("r", 1, BRANCHES, 1, 1) else {
        panic!("no fork")
    };
    large.data = data!({"text": "x".repeat(4 << 20)});
    let begun = change(vec![Command::Fork(large)]).at(forked(1, BRANCHES));
    forking.act(&root("a"), begun).await;
    for branch in 0..BRANCHES {
        let held = b.hold_lazily(&scope("a", &format!("r.1.{branch}"))).await;
        let Record::Branch { fork, .. } = held.record else {
            panic!("it has begun")
        };
        assert_eq!((fork.open, fork.needed), (branch + 1, branch + 1));
        let more = Command::ExtendFork {
            fork: 1,
            open: branch + 2,
            needed: branch + 2,
        };
        let extended = change(vec![more]).at(forked(1, BRANCHES));
        b.act(&root("a"), extended).await;
    }
    assert_eq!(store.known_fork_bases(), u64::from(BRANCHES) - 1);
}

/// A worker goes on with the branches of a fork that it has made.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_forks_reads_nothing_of_the_fork() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    for (round, branches) in [1, 3].into_iter().enumerate() {
        let id = format!("i{round}");
        let mut instance = new(&id);
        instance.header.input = data!({"round": round});
        b.create(instance).await;
        let Command::Fork(mut common) = fork("r", 1, branches, branches, branches) else {
            panic!("no fork")
        };
        common.data = data!({"round": round, "list": [1.5, null, "ä"]});
        let wanted = common.data.clone();
        let begun = change(vec![Command::Fork(common)]).at(forked(1, branches));
        let before = store.known_fork_bases();
        b.act(&root(&id), begun).await;
        for branch in 0..branches {
            let held = b.hold_lazily(&scope(&id, &format!("r.1.{branch}"))).await;
            assert_eq!(held.header.input, data!({"round": round}));
            let Record::Branch { fork, index } = held.record else {
                panic!("it has begun")
            };
            assert_eq!((fork.data, index), (wanted.clone(), branch));
            assert_eq!((fork.open, fork.total), (branches, branches));
        }
        assert_eq!(store.known_fork_bases() - before, u64::from(branches));
    }
}

/// The process that forks believes that no branch has begun. If one has, its commit doesn't take effect, and then it
/// reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_began_elsewhere_isnt_begun_again() {
    let server = RedisServer::start().unwrap();
    let (_, b) = connect(&server).await;
    let (_, other) = connect(&server).await;
    let report = || change(vec![Command::Report(done())]).at(Cursor::Ended);
    for place in ["held", "waiting", "over"] {
        b.create(new(place)).await;
        let forks = change(vec![fork("r", 1, 2, 2, 2)]).at(forked(1, 2));
        b.act(&root(place), forks).await;
        let branch = scope(place, "r.1.0");
        match place {
            "held" => drop(other.hold(&branch).await),
            "waiting" => drop(
                other
                    .act(&branch, change(vec![]).at(blocked(Work::Sleep)))
                    .await,
            ),
            _ => drop(other.act(&branch, report()).await),
        }
        let guess = b.hold_lazily(&branch).await;
        assert!(matches!(guess.record, Record::Branch { .. }));
        let committed = b.commit_of(&guess, report()).await;
        assert!(matches!(committed, Committed::Refused), "{committed:?}");
        let read = b.store.read_snapshot(&branch, 1_000).await.unwrap();
        match (place, read) {
            ("held", Acquired::Busy) | ("over", Acquired::Gone) => {}
            ("waiting", Acquired::Held(read)) if matches!(read.record, Record::Scope(_)) => {}
            (_, read) => panic!("{place}: {read:?}"),
        }
    }
}

/// A refused guess says that the others would be wrong, too.
#[tokio::test(flavor = "multi_thread")]
async fn branches_of_a_fork_that_stands_still_are_guessed_once() {
    let server = RedisServer::start().unwrap();
    let (_, b) = connect(&server).await;
    let (_, other) = connect(&server).await;
    let report = || change(vec![Command::Report(done())]).at(Cursor::Ended);
    for id in ["suspended", "closed"] {
        b.create(new(id)).await;
        b.act(
            &root(id),
            change(vec![fork("r", 1, 3, 3, 3)]).at(forked(1, 3)),
        )
        .await;
        if id == "closed" {
            let closes = change(vec![Command::CloseFork(1)]);
            other.act(&root(id), closes).await;
        } else {
            let id = InstanceId::new(id);
            other.store.suspend(&id, true, None).await.unwrap();
        }
        let guess = b.hold_lazily(&scope(id, "r.1.0")).await;
        let committed = b.commit_of(&guess, report()).await;
        assert!(matches!(committed, Committed::Refused), "{committed:?}");
        for branch in ["r.1.0", "r.1.1"] {
            let read = b.store.read_snapshot(&scope(id, branch), 1_000).await;
            let read = read.unwrap();
            assert!(matches!(read, Acquired::Busy | Acquired::Gone), "{read:?}");
        }
    }
    let id = InstanceId::new("suspended");
    other.store.suspend(&id, false, None).await.unwrap();
    b.act(&scope("suspended", "r.1.0"), report()).await;
}

/// Each branch's record has only its own data, whichever process wrote the previous one.
#[tokio::test(flavor = "multi_thread")]
async fn the_common_data_of_branches_is_written_once() {
    let server = RedisServer::start().unwrap();
    let (_, b) = connect(&server).await;
    let (_, other) = connect(&server).await;
    b.create(new("a")).await;
    let Command::Fork(mut large) = fork("r", 1, 3, 3, 3) else {
        panic!("no fork")
    };
    let list = Data::array((0..50_000).map(Data::int).collect());
    large.data.set("list", list.clone());
    let begun = change(vec![Command::Fork(large)]).at(forked(1, 3));
    b.act(&root("a"), begun).await;
    let key = server.cli(&["--scan", "--pattern", "*}:i:a"]).unwrap();
    for branch in ["r.1.0", "r.1.1", "r.1.2"] {
        let place = scope("a", branch);
        for (round, (by, lazily)) in [(&b, true), (&other, true), (&b, false), (&other, false)]
            .into_iter()
            .enumerate()
        {
            let mut held = match lazily {
                true => by.hold_lazily(&place).await,
                false => by.hold(&place).await,
            };
            let mut data = scope_of(&held.record).data;
            assert_eq!(data.get("list"), Some(list.clone()));
            if round > 0 {
                assert_eq!(data.get("round"), Some(data!(round - 1)), "{branch}");
            }
            data.set("round", data!(round));
            let slept = change(vec![]).at(blocked(Work::Sleep)).data(data);
            by.commit(&mut held, slept).await;
            by.release(&held).await;
            let size = server.cli(&["HSTRLEN", key.trim(), &format!("r:{branch}")]);
            let size: usize = size.unwrap().trim().parse().unwrap();
            assert!(size < 1_000, "{branch} takes {size} bytes in round {round}");
        }
    }
}

/// Reads don't cache a fork with a single branch. It is read with the record that needs it.
#[tokio::test(flavor = "multi_thread")]
async fn a_single_branch_is_read_by_any_process() {
    let server = RedisServer::start().unwrap();
    let (_, b) = connect(&server).await;
    let (_, other) = connect(&server).await;
    b.create(new("a")).await;
    let Command::Fork(mut large) = fork("r", 1, 1, 1, 1) else {
        panic!("no fork")
    };
    large.data.set("text", data!("x".repeat(2_000)));
    let begun = change(vec![Command::Fork(large)]).at(forked(1, 1));
    b.act(&root("a"), begun).await;
    let place = scope("a", "r.1.0");
    let mut held = b.hold(&place).await;
    let data = scope_of(&held.record).data;
    let slept = change(vec![]).at(blocked(Work::Sleep));
    b.commit(&mut held, slept).await;
    b.release(&held).await;
    for by in [&other, &b] {
        let held = by.hold_lazily(&place).await;
        assert_eq!(scope_of(&held.record).data, data);
    }
}

/// A failover lost the fork after a worker had read it, and another worker has created it again. The first worker's
/// branch is a difference from data that no longer exists.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_of_a_lost_fork_is_refused() {
    let server = RedisServer::start().unwrap();
    let (_, b) = connect(&server).await;
    let begin = async |text: &str| {
        b.create(new("a")).await;
        let Command::Fork(mut large) = fork("r", 1, 2, 2, 2) else {
            panic!("no fork")
        };
        large.data.set("text", data!(text.repeat(2_000)));
        let begun = change(vec![Command::Fork(large)]).at(forked(1, 2));
        b.act(&root("a"), begun).await;
    };
    begin("old").await;
    let place = scope("a", "r.1.0");
    let mut late = b.hold_lazily(&place).await;
    let key = server.cli(&["--scan", "--pattern", "*}:i:a"]).unwrap();
    server.cli(&["DEL", key.trim()]).unwrap();
    begin("new").await;
    let slept = || change(vec![]).at(blocked(Work::Sleep));
    assert!(b.try_commit(&mut late, slept()).await.is_none());
    let mut held = b.hold_lazily(&place).await;
    b.commit(&mut held, slept()).await;
    b.release(&held).await;
    let held = b.hold_lazily(&place).await;
    let text = scope_of(&held.record).data.get("text");
    assert_eq!(text, Some(data!("new".repeat(2_000))));
}
