//! The configuration of `swirl worker` and `swirl coordinator`: one file, environment variables and
//! flags, with the same names in all three.
//!
//! One table (`table`) says which settings there are. It gives the flags, the variables, the reference page, the
//! commented default file and every check; [`Config`] is what the processes get. To add a setting: a row in the table,
//! a field in [`Config`], and `swirl config reference` for the page. Flags win over variables, variables over the file,
//! the file over the defaults.

mod build;
mod entry;
mod file;
mod flags;
mod kind;
mod load;
mod origin;
mod problem;
mod reference;
mod secret;
mod setting;
mod show;
mod table;
mod types;

pub use entry::Entry;
pub use flags::{All, Coordinator as CoordinatorFlags, Flags, Worker as WorkerFlags};
pub use kind::{Raw, parse_duration, size};
pub use load::{Loaded, Sources, load, load_partly};
pub use origin::origin;
pub use problem::{Place, Problem, Problems};
pub use reference::{default_file, reference};
pub use secret::{Endpoint, Secret};
pub use setting::{Process, Setting};
pub use show::{json, problems, text};
pub use table::{find, settings};
pub use types::{
    Auth, AuthMode, Breaker, Config, Coordinator, Events, Http, Lifecycle, Log, LogFormat, Nats,
    NatsAuth, NatsStorage, Oidc, OtlpProtocol, Redis, RedisLimits, RedisTopology, SecretSources,
    Telemetry, Tls, Worker,
};
