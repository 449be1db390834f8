//! Values that exist anyway and are read when metrics are collected.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};

/// One table for all processes. Each process registers the rows for which it has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    Circuits,
    DeadLetters,
    Doing,
    ExportFailures,
    Instances,
    LifecycleLag,
    LifecycleLost,
    LifecyclePublished,
    LifecycleUnread,
    Oldest,
    Pending,
    Redeliveries,
    StartsRefused,
    Unacknowledged,
}

struct Row {
    name: &'static str,
    what: &'static str,
    /// Empty if there is only one value.
    attribute: &'static str,
    kind: MetricKind,
}

enum MetricKind {
    Counter,
    Gauge,
    /// A gauge in seconds, whose values are in milliseconds.
    Age,
}

impl Watched {
    fn row(self) -> Row {
        let (name, what, attribute, kind) = match self {
            Watched::Circuits => (
                "swirl.circuits",
                "Hosts that are not called, or called only for a trial, after consecutive failures.",
                "swirl.circuit.state",
                MetricKind::Gauge,
            ),
            Watched::DeadLetters => (
                "swirl.dead_letters",
                "Messages that could not be processed.",
                "swirl.queue",
                MetricKind::Counter,
            ),
            Watched::Doing => (
                "swirl.running_instances",
                "States of the running instances, in the shards of this process.",
                "swirl.instance.doing",
                MetricKind::Gauge,
            ),
            Watched::ExportFailures => (
                "swirl.export.failures",
                "Batches of spans or metrics that the collector did not accept.",
                "swirl.export.signal",
                MetricKind::Counter,
            ),
            Watched::Instances => (
                "swirl.instances",
                "Stored instances, in the shards of this process.",
                "swirl.instance.status",
                MetricKind::Gauge,
            ),
            Watched::LifecycleLag => (
                "swirl.lifecycle.lag",
                "The age of the oldest history entry that has yet to be published, in the shards of this process.",
                "",
                MetricKind::Age,
            ),
            Watched::LifecycleLost => (
                "swirl.lifecycle.lost",
                "History entries and instances that were removed before they were published.",
                "swirl.lifecycle.what",
                MetricKind::Counter,
            ),
            Watched::LifecyclePublished => (
                "swirl.lifecycle.published",
                "Lifecycle events that were published.",
                "swirl.lifecycle.of",
                MetricKind::Counter,
            ),
            Watched::LifecycleUnread => (
                "swirl.lifecycle.unread",
                "Instances with entries that have yet to be published, in the shards of this process.",
                "",
                MetricKind::Gauge,
            ),
            Watched::Oldest => (
                "swirl.queue.oldest",
                "The age of the oldest message that was not delivered yet.",
                "swirl.queue",
                MetricKind::Age,
            ),
            Watched::Pending => (
                "swirl.queue.pending",
                "Messages that were not delivered yet.",
                "swirl.queue",
                MetricKind::Gauge,
            ),
            Watched::Redeliveries => (
                "swirl.redeliveries",
                "Messages that had been delivered before.",
                "swirl.queue",
                MetricKind::Counter,
            ),
            Watched::StartsRefused => (
                "swirl.starts.refused",
                "Starts by other instances that were refused because too many were waiting.",
                "",
                MetricKind::Counter,
            ),
            Watched::Unacknowledged => (
                "swirl.queue.unacknowledged",
                "Messages that are being processed.",
                "swirl.queue",
                MetricKind::Gauge,
            ),
        };
        Row {
            name,
            what,
            attribute,
            kind,
        }
    }

    pub(crate) fn register<R>(self, meter: &Meter, read: R)
    where
        R: Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static,
    {
        let row = self.row();
        // The meter keeps registered instruments.
        match row.kind {
            MetricKind::Counter => {
                let counter = meter.u64_observable_counter(row.name);
                let counter = counter.with_description(row.what);
                counter.with_callback(observe(row.attribute, read)).build();
            }
            MetricKind::Gauge => {
                let gauge = meter.u64_observable_gauge(row.name);
                let gauge = gauge.with_description(row.what);
                gauge.with_callback(observe(row.attribute, read)).build();
            }
            MetricKind::Age => {
                let gauge = meter.f64_observable_gauge(row.name).with_unit("s");
                let gauge = gauge.with_description(row.what);
                let observe = move |observer: &dyn AsyncInstrument<f64>| {
                    for (value, ms) in read() {
                        observer.observe(ms as f64 / 1000.0, &attributes(row.attribute, value));
                    }
                };
                gauge.with_callback(observe).build();
            }
        }
    }
}

fn attributes(name: &'static str, value: &'static str) -> Vec<KeyValue> {
    match name {
        "" => Vec::new(),
        name => vec![KeyValue::new(name, value)],
    }
}

fn observe<R>(
    attribute: &'static str,
    read: R,
) -> impl Fn(&dyn AsyncInstrument<u64>) + Send + Sync + 'static
where
    R: Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static,
{
    move |observer| {
        for (value, number) in read() {
            observer.observe(number, &attributes(attribute, value));
        }
    }
}
