//! The tests of the store, each with a server of its own.

#![allow(clippy::unwrap_used, reason = "tests")]

mod activity;
mod awaited;
mod contract;
mod event_cost;
mod events;
mod faults;
mod following;
mod fork_bases;
mod format;
mod full;
mod history;
mod join_cost;
mod listing_cost;
mod overdue;
mod plans;
mod processes;
mod retention;
mod wide;

/// The keys that stay until somebody removes them. The counts of starts and ends expire.
fn kept(server: &swirl_servers::RedisServer) -> Vec<String> {
    let keys = server.cli(&["KEYS", "*"]).unwrap();
    let stays = |key: &&str| {
        let ttl = server.cli(&["TTL", key]).unwrap();
        let expires = ttl.parse::<i64>().unwrap() > 0;
        assert!(!expires || key.ends_with(":trend"), "{key}");
        !expires
    };
    keys.lines().filter(stays).map(str::to_owned).collect()
}
