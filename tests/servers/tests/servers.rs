//! The servers that other tests rely on work as documented.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use swirl_servers::*;

fn alive(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn redis_keeps_its_data_after_a_crash() {
    let mut redis = RedisServer::durable().unwrap();
    let pid = redis.pid().unwrap();
    redis.cli(&["SET", "a", "1"]).unwrap();
    redis.kill().unwrap();
    assert!(!alive(pid) && redis.cli(&["PING"]).is_err());
    redis.restart().unwrap();
    assert_eq!(redis.cli(&["GET", "a"]).unwrap(), "1");
    let pid = redis.pid().unwrap();
    assert!(redis.cli(&["NO-SUCH-COMMAND"]).is_err());
    drop(redis);
    assert!(!alive(pid));
}

#[test]
fn redis_can_be_paused() {
    let redis = RedisServer::start().unwrap();
    let mut stream = TcpStream::connect(redis.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let mut answer = [0; 7];
    redis.pause().unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    assert!(stream.read_exact(&mut answer).is_err());
    redis.resume().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}

#[test]
fn a_requested_port_that_is_taken_is_an_error() {
    let first = RedisServer::start().unwrap();
    let options = RedisOptions {
        port: Some(first.port()),
        ..RedisOptions::default()
    };
    let error = RedisServer::start_with(options).unwrap_err().to_string();
    assert!(error.contains("redis-server ended"), "{error}");
}

#[test]
fn a_cluster_serves_all_slots() {
    let cluster = RedisCluster::start(3).unwrap();
    assert_eq!(cluster.urls().len(), 3);
    for key in ["a", "b", "c", "d", "e", "f"] {
        let first = &cluster.nodes()[0];
        assert_eq!(first.cli(&["-c", "SET", key, "1"]).unwrap(), "OK");
    }
}

#[test]
fn sentinels_replace_a_master() {
    let mut set = RedisSentinels::start(1, 3).unwrap();
    let first = set.servers()[0].port();
    assert_eq!(set.master_port().unwrap(), first);
    set.server_mut(0).unwrap().kill().unwrap();
    let second = set.servers()[1].port();
    until("another master", || {
        (set.master_port().unwrap() == second).then_some(())
    });
}

#[test]
fn nats_keeps_streams_until_they_are_wiped() {
    let mut nats = NatsServer::start_with(NatsOptions {
        config: "server_name: one".to_owned(),
        ..NatsOptions::default()
    })
    .unwrap();
    let pid = nats.pid().unwrap();
    let greeting = |nats: &NatsServer| {
        let mut stream = TcpStream::connect(nats.address()).unwrap();
        let mut text = vec![0; 4096];
        let count = stream.read(&mut text).unwrap();
        String::from_utf8_lossy(&text[..count]).into_owned()
    };
    let first = greeting(&nats);
    assert!(first.contains(r#""jetstream":true"#) && first.contains(r#""server_name":"one""#));
    std::fs::write(nats.store().join("mark"), "1").unwrap();
    nats.kill().unwrap();
    assert!(!alive(pid));
    nats.restart().unwrap();
    assert!(nats.store().join("mark").exists());
    nats.wipe().unwrap();
    assert!(!nats.store().join("mark").exists());
    assert!(greeting(&nats).starts_with("INFO "));
}

#[test]
fn a_proxy_holds_cuts_and_heals() {
    let redis = RedisServer::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    let connect = || {
        let stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let ping = |stream: &mut TcpStream| -> std::io::Result<()> {
        stream.write_all(b"PING\r\n")?;
        stream.read_exact(&mut [0; 7])
    };
    let mut first = connect();
    ping(&mut first).unwrap();
    proxy.hold();
    let moment = Some(Duration::from_millis(200));
    first.set_read_timeout(moment).unwrap();
    let error = ping(&mut first).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    proxy.heal();
    first.read_exact(&mut [0; 7]).unwrap();
    proxy.cut();
    let kinds = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(kinds.contains(&ping(&mut first).unwrap_err().kind()));
    let mut second = connect();
    assert!(ping(&mut second).is_err());
    proxy.heal();
    ping(&mut connect()).unwrap();
}
