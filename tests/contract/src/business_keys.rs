//! Business keys of instances.

use swirl_model::ids::InstanceId;
use swirl_ports::{InstanceKey, KeyHolder};

use crate::Backend;
use crate::kit::*;

fn key(workflow: &str, key: &str) -> InstanceKey {
    InstanceKey {
        workflow: workflow.into(),
        key: key.into(),
    }
}

fn holder(id: &str, since: i64) -> KeyHolder {
    KeyHolder {
        instance: InstanceId::new(id),
        since: at(since),
    }
}

async fn take(b: &Backend, to: &KeyHolder, from: Option<&KeyHolder>) -> bool {
    b.store.take_key(&key("flow", "k"), to, from).await.unwrap()
}

pub async fn a_key_moves_between_instances(b: Backend) {
    let name = key("flow", "k");
    let (first, second, third) = (holder("a", 1), holder("b", 2), holder("c", 3));
    assert_eq!(b.store.key_holder(&name).await.unwrap(), None);
    assert!(!take(&b, &first, Some(&second)).await, "nobody has it");
    assert!(take(&b, &first, None).await);
    assert_eq!(
        b.store.key_holder(&name).await.unwrap(),
        Some(first.clone())
    );
    assert!(take(&b, &first, None).await, "whose answer was lost");
    assert!(!take(&b, &second, None).await);
    assert!(
        !take(&b, &second, Some(&holder("a", 2))).await,
        "since then"
    );
    assert!(take(&b, &second, Some(&first)).await);
    assert!(!take(&b, &third, Some(&first)).await, "one of two has it");
    assert_eq!(b.store.key_holder(&name).await.unwrap(), Some(second));
}

pub async fn keys_are_kept_apart(b: Backend) {
    let names = [
        key("a", "b/c"),
        key("a/b", "c"),
        key("a", "b"),
        key("b", "a"),
    ];
    for (number, name) in names.iter().enumerate() {
        let to = holder(&number.to_string(), -5);
        assert!(b.store.take_key(name, &to, None).await.unwrap());
    }
    for (number, name) in names.iter().enumerate() {
        let found = b.store.key_holder(name).await.unwrap();
        assert_eq!(found, Some(holder(&number.to_string(), -5)));
    }
}
