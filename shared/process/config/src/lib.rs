//! The configuration of `swirl worker` and `swirl coordinator`: a file, environment variables and flags, with the same
//! names in all three.
//!
//! One table (`table`) lists all settings. It is the source of the flags, the variables, the reference page, the
//! commented default file and every check; the processes get a [`Config`]. To add a setting, add a row to the table and
//! a field to [`Config`], then run `swirl config reference` to update the page. Flags override variables, variables
//! override the file, and the file overrides the defaults.

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

pub use entry::GivenSetting;
pub use flags::{All, Coordinator as CoordinatorFlags, Flags, Worker as WorkerFlags};
pub use kind::{Raw, parse_duration, size};
pub use load::{Loaded, Sources, load, load_partly};
pub use origin::origin;
pub use problem::{Problem, Problems, SettingSource};
pub use reference::{default_file, reference};
pub use secret::{Endpoint, Secret};
pub use setting::{Process, Setting};
pub use show::{json, problems, text};
pub use swirl_documents::files;
pub use table::{find, settings};
pub use types::{
    Auth, AuthMode, Breaker, Config, Coordinator, Events, Http, Lifecycle, Log, LogFormat, Nats,
    NatsAuth, NatsStorage, Oidc, OtlpProtocol, Redis, RedisLimits, RedisTopology, SecretSources,
    SignIn, Telemetry, Tls, Worker,
};
