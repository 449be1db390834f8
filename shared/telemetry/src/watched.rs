//! Values that are there anyway, and are asked for when metrics are read.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};

/// One table for all processes: a process watches what it knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    Circuits,
    DeadLetters,
    Instances,
    Pending,
    Redeliveries,
    Unacknowledged,
}

struct Row {
    name: &'static str,
    what: &'static str,
    attribute: &'static str,
    /// Else it is a gauge.
    is_counter: bool,
}

impl Watched {
    fn row(self) -> Row {
        let (name, what, attribute, is_counter) = match self {
            Watched::Circuits => (
                "swirl.circuits",
                "Hosts that are not called, or only tried, after they failed in a row.",
                "swirl.circuit.state",
                false,
            ),
            Watched::DeadLetters => (
                "swirl.dead_letters",
                "Messages that could not be used.",
                "swirl.queue",
                true,
            ),
            Watched::Instances => (
                "swirl.instances",
                "Instances that are kept, in the shards of this process.",
                "swirl.instance.status",
                false,
            ),
            Watched::Pending => (
                "swirl.queue.pending",
                "Messages that no process has got yet.",
                "swirl.queue",
                false,
            ),
            Watched::Redeliveries => (
                "swirl.redeliveries",
                "Messages that had been delivered before.",
                "swirl.queue",
                true,
            ),
            Watched::Unacknowledged => (
                "swirl.queue.unacknowledged",
                "Messages that processes are at work on.",
                "swirl.queue",
                false,
            ),
        };
        Row {
            name,
            what,
            attribute,
            is_counter,
        }
    }

    pub(crate) fn register<R>(self, meter: &Meter, read: R)
    where
        R: Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static,
    {
        let row = self.row();
        let observe = move |observer: &dyn AsyncInstrument<u64>| {
            for (value, number) in read() {
                observer.observe(number, &[KeyValue::new(row.attribute, value)]);
            }
        };
        // The meter keeps what is registered.
        if row.is_counter {
            meter
                .u64_observable_counter(row.name)
                .with_description(row.what)
                .with_callback(observe)
                .build();
        } else {
            meter
                .u64_observable_gauge(row.name)
                .with_description(row.what)
                .with_callback(observe)
                .build();
        }
    }
}
