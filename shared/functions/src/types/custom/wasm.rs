//! A connector that is a WebAssembly module.
//!
//! # The interface of a module
//!
//! It imports nothing: no WASI, no files, no network, no clock. It exports
//!
//! - `memory`, its first memory;
//! - `alloc(length: i32) -> i32`: the address of this many bytes, to which the call is written;
//! - `call(address: i32, length: i32) -> i64`: takes the call's JSON, and returns the address (upper 32 bits) and the
//!   length (lower 32 bits) of the result's JSON. Length zero means null.
//!
//! # Limits of a call
//!
//! Each call gets its own instance, with [`MEMORY_BYTES_MAX`] of memory and [`FUEL_MAX`] of fuel (about one unit per
//! instruction), and is stopped when its time is over. Calls run on threads of their own, at most as many at once as
//! there are processors.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;
use wasmi::{
    Config, EnforcedLimits, Engine, Error, Extern, ExternType, Linker, Module, Store, StoreLimits,
    StoreLimitsBuilder, TrapCode, TypedResumableCall,
};

use crate::{CallError, CallErrorKind};

/// The largest module, in bytes.
const MODULE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The maximum memory of a call, in bytes.
const MEMORY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The maximum work of a call, in units of fuel.
const FUEL_MAX: u64 = 10_000_000_000;

/// The fuel between two checks of whether the result is still awaited.
const FUEL_AT_ONCE: u64 = 10_000_000;

/// The maximum depth of calls within a module.
const DEPTH_MAX: usize = 1_000;

/// A module that can be called.
#[derive(Clone)]
pub(crate) struct Program {
    path: Arc<str>,
    module: Module,
    places: Arc<Semaphore>,
}

/// Programs are equal if they were read from the same file.
impl PartialEq for Program {
    fn eq(&self, other: &Program) -> bool {
        self.path == other.path
    }
}

impl Eq for Program {}

impl Program {
    /// Reads a module, in binary or text format.
    ///
    /// # Errors
    /// The reason why it cannot be called, as a sentence.
    pub(super) fn load(path: &str) -> Result<Program, String> {
        let wrong = |reason: &dyn std::fmt::Display| format!("cannot read `{path}`: {reason}");
        let size = std::fs::metadata(Path::new(path)).map_err(|error| wrong(&error))?;
        if size.len() > MODULE_BYTES_MAX {
            let reason = format!(
                "it has {} bytes; at most {MODULE_BYTES_MAX} are read",
                size.len()
            );
            return Err(wrong(&reason));
        }
        let bytes =
            swirl_documents::files::read(Path::new(path), swirl_documents::files::BYTES_MAX)
                .map_err(|error| wrong(&error))?;
        let mut config = Config::default();
        config
            .consume_fuel(true)
            .set_max_recursion_depth(DEPTH_MAX)
            .enforced_limits(EnforcedLimits::strict());
        let module = Module::new(&Engine::new(&config), bytes).map_err(|error| wrong(&error))?;
        if let Some(import) = module.imports().next() {
            return Err(format!(
                "`{path}` imports `{}.{}`: a module gets nothing from outside, neither WASI; build it for \
                 `wasm32-unknown-unknown`",
                import.module(),
                import.name()
            ));
        }
        for (name, is_there) in [
            (
                "memory",
                matches!(module.get_export("memory"), Some(ExternType::Memory(_))),
            ),
            ("alloc(i32) -> i32", is_func(&module, "alloc")),
            ("call(i32, i32) -> i64", is_func(&module, "call")),
        ] {
            if !is_there {
                return Err(format!("`{path}` doesn't export `{name}`"));
            }
        }
        let places = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Program {
            path: path.into(),
            module,
            places: Arc::new(Semaphore::new(places)),
        })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Runs the module with a call's JSON, and returns the JSON that it answers. Dropping the future stops it.
    pub(super) async fn run(
        &self,
        call: Vec<u8>,
        answer_bytes_max: usize,
        what: &str,
    ) -> Result<Vec<u8>, CallError> {
        // The semaphore is never closed, and if it were, continuing would do no harm.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (module, ended) = (self.module.clone(), Arc::new(AtomicBool::new(false)));
        let _guard = Guard(Arc::clone(&ended));
        let run = tokio::task::spawn_blocking(move || {
            // Released only when the run has really ended.
            let _place = place;
            run(&module, &call, answer_bytes_max, &ended)
        });
        let failed = |kind, reason: String| CallError::new(kind, format!("{what}: {reason}"));
        match run.await {
            Ok(done) => done.map_err(|(kind, reason)| failed(kind, reason)),
            Err(error) => Err(failed(CallErrorKind::Failed, error.to_string())),
        }
    }
}

fn is_func(module: &Module, name: &str) -> bool {
    use wasmi::ValType::{I32, I64};
    let Some(ExternType::Func(found)) = module.get_export(name) else {
        return false;
    };
    match name {
        "alloc" => found.params() == [I32] && found.results() == [I32],
        _ => found.params() == [I32, I32] && found.results() == [I64],
    }
}

/// Tells a run that its result is no longer awaited.
struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Failure = (CallErrorKind, String);

fn run(
    module: &Module,
    call: &[u8],
    answer_bytes_max: usize,
    ended: &AtomicBool,
) -> Result<Vec<u8>, Failure> {
    let limits = StoreLimitsBuilder::new()
        .memory_size(MEMORY_BYTES_MAX)
        .instances(1)
        .build();
    let mut store: Store<StoreLimits> = Store::new(module.engine(), limits);
    store.limiter(|limits| limits);
    store.set_fuel(FUEL_AT_ONCE).map_err(trapped)?;
    let linker: Linker<StoreLimits> = Linker::new(module.engine());
    let instance = linker
        .instantiate_and_start(&mut store, module)
        .map_err(trapped)?;
    let memory = instance.get_export(&store, "memory");
    let memory = memory.and_then(Extern::into_memory);
    let memory = memory.ok_or((CallErrorKind::Failed, "it has no memory".to_owned()))?;
    let alloc = instance
        .get_typed_func::<i32, i32>(&store, "alloc")
        .map_err(trapped)?;
    let function = instance
        .get_typed_func::<(i32, i32), i64>(&store, "call")
        .map_err(trapped)?;
    let length = i32::try_from(call.len())
        .map_err(|_| (CallErrorKind::Limit, "the call is too long".to_owned()))?;
    let address = alloc.call(&mut store, length).map_err(trapped)?;
    memory
        .write(&mut store, address as u32 as usize, call)
        .map_err(|_| {
            let reason = "`alloc` gave an address outside of its memory".to_owned();
            (CallErrorKind::Failed, reason)
        })?;
    let mut state = function
        .call_resumable(&mut store, (address, length))
        .map_err(trapped)?;
    let mut spent = FUEL_AT_ONCE;
    let answer = loop {
        match state {
            TypedResumableCall::Finished(answer) => break answer as u64,
            TypedResumableCall::HostTrap(_) => {
                return Err((CallErrorKind::Failed, "it called the host".to_owned()));
            }
            TypedResumableCall::OutOfFuel(paused) => {
                if ended.load(Ordering::Relaxed) {
                    return Err((CallErrorKind::Timeout, "it was given up".to_owned()));
                }
                if spent >= FUEL_MAX {
                    let reason = format!("it needs more than {FUEL_MAX} of fuel");
                    return Err((CallErrorKind::Limit, reason));
                }
                // A single instruction may need more, such as one that fills memory.
                let fuel = FUEL_AT_ONCE.max(paused.required_fuel());
                spent = spent.saturating_add(fuel);
                store.set_fuel(fuel).map_err(trapped)?;
                state = paused.resume(&mut store).map_err(trapped)?;
            }
        }
    };
    let (address, length) = ((answer >> 32) as usize, (answer as u32) as usize);
    if length > answer_bytes_max {
        let reason =
            format!("its answer has {length} bytes; at most {answer_bytes_max} are accepted");
        return Err((CallErrorKind::Limit, reason));
    }
    let end = address.saturating_add(length);
    let answer = memory.data(&store).get(address..end);
    answer.map(<[u8]>::to_vec).ok_or_else(|| {
        let reason = "its answer is outside of its memory".to_owned();
        (CallErrorKind::Failed, reason)
    })
}

fn trapped(error: Error) -> Failure {
    let kind = match error.as_trap_code() {
        Some(TrapCode::OutOfFuel | TrapCode::StackOverflow | TrapCode::GrowthOperationLimited) => {
            CallErrorKind::Limit
        }
        _ => CallErrorKind::Failed,
    };
    (kind, format!("it failed: {error}"))
}
