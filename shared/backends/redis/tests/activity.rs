//! Counts the activity of running instances without reading each.

use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_model::instance::EndStatus;
use swirl_model::scope::Cursor;
use swirl_redis::{Activity, Options, Redis};
use swirl_servers::RedisServer;

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_counted_by_activity() {
    let server = RedisServer::start().unwrap();
    let options = Options {
        shards: 2,
        keep_ended_ms: 0,
        ..Options::single(server.url())
    };
    let store = Redis::connect(options).await.unwrap();
    store.set_shards(vec![0, 1]);
    let b = Backend::of(Arc::new(store.clone()), ());
    let activity = async |ready, suspended, waiting| {
        let wanted = Activity {
            ready,
            suspended,
            waiting,
        };
        assert_eq!(store.count_activity().await.unwrap(), wanted);
    };
    for number in 0..9 {
        b.create(new(&format!("i{number}"))).await;
    }
    activity(9, 0, 0).await;
    // After one step they wait.
    for number in 0..4 {
        b.act(
            &root(&format!("i{number}")),
            change(Vec::new()).at(Cursor::Idle),
        )
        .await;
    }
    activity(5, 0, 4).await;
    for id in ["i0", "i1", "i4"] {
        b.store
            .suspend(&InstanceId::new(id), true, None)
            .await
            .unwrap();
    }
    activity(4, 3, 2).await;
    b.store
        .suspend(&InstanceId::new("i0"), false, None)
        .await
        .unwrap();
    activity(4, 2, 3).await;
    // The instance ends while it is suspended, without being resumed.
    let end = Command::End {
        status: EndStatus::Completed,
        output: None,
        error: None,
    };
    b.store
        .suspend(&InstanceId::new("i5"), true, None)
        .await
        .unwrap();
    b.store
        .suspend(&InstanceId::new("i5"), false, None)
        .await
        .unwrap();
    b.act(&root("i5"), change(vec![end]).at(Cursor::Ended))
        .await;
    activity(3, 2, 3).await;
    // An index that is wrong: an instance that is suspended but not in the index, then one in the index
    // that isn't suspended.
    for shard in 0..2 {
        let key = format!("{{swirl:{shard}}}:suspended");
        server.cli(&["SADD", &key, "gone"]).unwrap();
    }
    store.count_activity().await.unwrap();
    activity(3, 2, 3).await;
}
