//! The resources that this process uses.

use std::time::Duration;

use opentelemetry::metrics::Meter;

/// Registers memory and processor time, which are read whenever metrics are read or sent. Without `/proc`, memory is
/// left out.
pub(crate) fn watch(meter: &Meter) {
    meter
        .i64_observable_up_down_counter("process.memory.usage")
        .with_unit("By")
        .with_description("Memory of this process that is resident in RAM.")
        .with_callback(|observer| {
            if let Some(bytes) = memory() {
                observer.observe(bytes, &[]);
            }
        })
        .build();
    meter
        .f64_observable_counter("process.cpu.time")
        .with_unit("s")
        .with_description("Processor time that this process has used, on all processors.")
        .with_callback(|observer| observer.observe(processor_time().as_secs_f64(), &[]))
        .build();
}

/// The memory of this process that is resident in RAM, in bytes; `None` without `/proc`.
pub fn memory() -> Option<i64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: i64 = statm.split(' ').nth(1)?.parse().ok()?;
    let page = i64::try_from(rustix::param::page_size()).ok()?;
    pages.checked_mul(page)
}

/// The processor time that this process has used, on all processors.
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_processor_time_are_reported_and_grow() {
        let before = processor_time();
        let kept: Vec<u64> = (0..4_000_000).map(std::hint::black_box).collect();
        assert!(processor_time() > before);
        if cfg!(target_os = "linux") {
            let bytes = memory().unwrap();
            assert!(bytes > 8 * i64::try_from(kept.len()).unwrap(), "{bytes}");
        }
    }
}
