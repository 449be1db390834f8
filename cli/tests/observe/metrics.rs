//! Each documented metric exists, and its value fits what the test did.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use swirl_collector::Receiver;
use swirl_servers::eventually;

use crate::observe::processes::Cluster;
use crate::observe::service::Service;

fn work() -> Value {
    json!({
        "id": "work", "version": "1.0.0", "specVersion": "0.8", "start": "Call",
        "functions": [{"name": "pass", "operation": "service.json#pass"}],
        "states": [
            {"name": "Call", "type": "operation", "actions": [{"functionRef": "pass"}],
             "transition": "Sleep"},
            {"name": "Sleep", "type": "sleep", "duration": "PT0.2S", "end": {
                "produceEvents": [{"eventRef": "done"}]}},
        ],
        "events": [{"name": "done", "type": "done", "source": "/work", "kind": "produced"}],
    })
}

fn fail() -> Value {
    json!({
        "id": "fail", "version": "1.0.0", "specVersion": "0.8", "start": "Call",
        "functions": [{"name": "fail", "operation": "service.json#fail"}],
        "states": [
            {"name": "Call", "type": "operation", "actions": [{"functionRef": "fail"}], "end": true},
        ],
    })
}

fn stop() -> Value {
    let mut stop = wait();
    stop["id"] = json!("stop");
    stop
}

fn wait() -> Value {
    json!({
        "id": "wait", "version": "1.0.0", "specVersion": "0.8", "start": "Sleep",
        "states": [{"name": "Sleep", "type": "sleep", "duration": "PT1H", "end": true}],
    })
}

/// The metrics of all processes, as read by Prometheus.
struct Scraped(String);

impl Scraped {
    async fn of(cluster: &Cluster) -> Scraped {
        let mut text = cluster.coordinator.metrics(&cluster.http).await;
        for worker in &cluster.workers {
            text += &worker.metrics(&cluster.http).await;
        }
        Scraped(text)
    }

    /// The sum of the series with this name and these labels, or `None` if there are none.
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let values = self.0.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let (found, rest) = series.split_once('{').unwrap_or((series, ""));
            let has = |(name, value): &(&str, &str)| rest.contains(&format!("{name}=\"{value}\""));
            (found == name && labels.iter().all(has)).then(|| value.parse::<f64>().ok())?
        });
        values.reduce(|sum, value| sum + value)
    }
}

/// The names in the list against which dashboards and alerts are checked.
fn listed() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let list = std::fs::read_to_string(root.join("deploy/prometheus/metrics.json")).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    list["metrics"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect()
}

/// Prometheus rejects all metrics of a process if a single series has a duplicate label.
fn assert_accepted_by_prometheus(process: &str, text: &str) {
    let mut count = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let labels = line.split_once('{').map_or("", |(_, rest)| rest);
        let labels = labels.rsplit_once('}').map_or("", |(labels, _)| labels);
        let names = labels
            .split("\",")
            .filter_map(|label| label.split_once("=\""));
        let mut known = BTreeSet::new();
        for (name, _) in names {
            assert!(known.insert(name), "{process} has {name} twice: {line}");
        }
        let has_namespace = known.contains("swirl_namespace");
        assert!(has_namespace, "{process}: whose is it: {line}");
        count += 1;
    }
    assert!(count > 10, "{process}: {text}");
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]);
    promtool.stdin(Stdio::piped()).stderr(Stdio::piped());
    // The tool may be missing; deploy/tests/check.py requires it.
    let Ok(mut child) = promtool.stdout(Stdio::null()).spawn() else {
        return;
    };
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let done = child.wait_with_output().unwrap();
    let output = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{process}: {output}\n{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_metric_is_exported() {
    let (receiver, endpoint) = Receiver::serve().await;
    let mut cluster = Cluster::start(1, &["--telemetry-otlp-endpoint", &endpoint]).await;
    let service = Service::serve().await;
    for definition in [work(), fail(), wait(), stop()] {
        cluster.deploy(&definition, &service.document()).await;
    }
    for _ in 0..3 {
        let id = cluster.start_instance("work").await;
        assert_eq!(cluster.end(&id).await, "completed");
    }
    let id = cluster.start_instance("fail").await;
    assert_eq!(cluster.end(&id).await, "faulted");
    cluster.start_instance("wait").await;
    let id = cluster.start_instance("stop").await;
    let url = format!("{}/api/v1/instances/{id}/suspend", cluster.coordinator.url);
    let answer = cluster.http.post(url).send().await.unwrap();
    assert!(answer.status().is_success());
    let method = reqwest::Method::from_bytes(b"BREW").unwrap();
    let url = format!("{}/nothing/here", cluster.coordinator.url);
    let answer = cluster.http.request(method, url).send().await.unwrap();
    assert_eq!(answer.status(), 404);
    let nats = async_nats::connect(cluster.nats.url()).await.unwrap();
    nats.publish("swirl.events.bad", "no event".into())
        .await
        .unwrap();
    nats.flush().await.unwrap();

    // Coordinators check queues and instances every few seconds.
    let scraped = eventually("all metrics", async || {
        let scraped = Scraped::of(&cluster).await;
        let status = |status| scraped.sum("swirl_instances", &[("swirl_instance_status", status)]);
        let dead = scraped.sum("swirl_dead_letters_total", &[("swirl_queue", "events")]);
        let begun = scraped.sum(
            "swirl_instances_started_total",
            &[("swirl_workflow_id", "wait")],
        );
        let doing = |doing| {
            scraped.sum(
                "swirl_running_instances",
                &[("swirl_instance_doing", doing)],
            )
        };
        let seen = (status("running"), dead, begun) == (Some(2.0), Some(1.0), Some(1.0))
            && [doing("ready"), doing("suspended"), doing("waiting")]
                == [Some(0.0), Some(1.0), Some(1.0)];
        seen.then_some(scraped)
    })
    .await;

    for (process, text) in cluster.metrics().await {
        assert_accepted_by_prometheus(&process, &text);
    }

    let mut checked = BTreeSet::new();
    let mut check = |name: &str, labels: &[(&str, &str)], is_right: &dyn Fn(f64) -> bool| {
        let found = scraped.sum(name, labels);
        assert!(
            found.is_some_and(is_right),
            "{name} {labels:?}: {found:?}\n{}",
            scraped.0
        );
        let base = ["_count", "_sum"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        checked.insert(base.unwrap_or(name).to_owned());
    };
    let of_work = ("swirl_workflow_id", "work");
    check("swirl_instances_started_total", &[of_work], &|count| {
        count == 3.0
    });
    let completed = [of_work, ("swirl_instance_status", "completed")];
    check("swirl_instances_ended_total", &completed, &|count| {
        count == 3.0
    });
    let faulted = [("swirl_instance_status", "faulted")];
    check("swirl_instances_ended_total", &faulted, &|count| {
        count == 1.0
    });
    check(
        "swirl_instance_duration_seconds_count",
        &completed,
        &|count| count == 3.0,
    );
    check("swirl_instance_duration_seconds_sum", &completed, &|sum| {
        (0.6..3_600.0).contains(&sum)
    });
    check("swirl_transitions_total", &[of_work], &|count| count == 6.0);
    check("swirl_commits_total", &[], &|count| count > 8.0);
    check("swirl_commits_refused_total", &[], &|count| count >= 0.0);
    let called = [
        of_work,
        ("swirl_function_type", "rest"),
        ("swirl_call_outcome", "done"),
    ];
    check("swirl_call_duration_seconds_count", &called, &|count| {
        count == 3.0
    });
    let failed = [
        ("swirl_function_name", "fail"),
        ("swirl_call_outcome", "failed"),
    ];
    check("swirl_call_duration_seconds_count", &failed, &|count| {
        count == 1.0
    });
    check(
        "swirl_instances",
        &[("swirl_instance_status", "completed")],
        &|count| count == 3.0,
    );
    check("swirl_running_instances", &[], &|count| count == 2.0);
    for queue in ["tasks", "events"] {
        let queue = [("swirl_queue", queue)];
        check("swirl_queue_oldest_seconds", &queue, &|age| {
            (0.0..3_600.0).contains(&age)
        });
    }
    check("process_memory_usage_bytes", &[], &|bytes| {
        bytes > (1 << 20) as f64
    });
    check("process_cpu_time_seconds_total", &[], &|seconds| {
        seconds > 0.0
    });
    let started = [
        ("http_request_method", "POST"),
        ("http_route", "/api/v1/workflows/{id}/instances"),
        ("http_response_status_code", "201"),
    ];
    let requests = "http_server_request_duration_seconds";
    check(&format!("{requests}_count"), &started, &|count| {
        count == 6.0
    });
    check(&format!("{requests}_sum"), &started, &|sum| sum > 0.0);
    let nowhere = [
        ("http_request_method", "_OTHER"),
        ("http_response_status_code", "404"),
    ];
    check(&format!("{requests}_count"), &nowhere, &|count| {
        count == 1.0
    });
    assert!(!scraped.0.contains("BREW") && !scraped.0.contains("/nothing/here"));
    check("swirl_timer_lateness_seconds_count", &[], &|count| {
        count >= 3.0
    });
    check("swirl_timer_lateness_seconds_sum", &[], &|sum| {
        (0.0..3_600.0).contains(&sum)
    });
    let commit = [("db_operation_name", "commit")];
    check("swirl_redis_duration_seconds_count", &commit, &|count| {
        count > 8.0
    });
    check("swirl_redis_duration_seconds_sum", &commit, &|sum| {
        (0.0..3_600.0).contains(&sum) && sum > 0.0
    });
    let publish = [("messaging_operation_name", "publish_event")];
    check("swirl_nats_duration_seconds_count", &publish, &|count| {
        count == 3.0
    });
    for queue in ["tasks", "events"] {
        let queue = [("swirl_queue", queue)];
        check("swirl_queue_pending", &queue, &|count| count < 5.0);
        check("swirl_queue_unacknowledged", &queue, &|count| count < 5.0);
        check("swirl_redeliveries_total", &queue, &|count| count < 5.0);
    }
    check(
        "swirl_dead_letters_total",
        &[("swirl_queue", "events")],
        &|count| count == 1.0,
    );
    check(
        "swirl_dead_letters_total",
        &[("swirl_queue", "tasks")],
        &|count| count == 0.0,
    );
    check("swirl_lease_conflicts_total", &[], &|count| count >= 0.0);
    check(
        "swirl_circuits",
        &[("swirl_circuit_state", "open")],
        &|count| count == 0.0,
    );
    for signal in ["metrics", "traces"] {
        let signal = [("swirl_export_signal", signal)];
        check("swirl_export_failures_total", &signal, &|count| {
            count == 0.0
        });
    }
    // Lifecycle events are off here; `lifecycle.rs` checks their metrics.
    let mut on = listed();
    on.retain(|name| !name.starts_with("swirl_lifecycle_"));
    assert_eq!(checked, on);

    // The same over OTLP, for each process under its own name.
    cluster.coordinator.stop().await;
    cluster.workers[0].stop().await;
    let sent = receiver.metrics();
    let senders = |name: &str| -> BTreeSet<&String> {
        let of_name = sent.iter().filter(|(_, found)| found == name);
        of_name.map(|(sender, _)| sender).collect()
    };
    assert_eq!(senders("swirl.redis.duration").len(), 2, "{sent:?}");
    assert_eq!(senders("swirl.queue.pending").len(), 1);
    assert_eq!(senders("swirl.instances.ended").len(), 1);
}
