//! `swirl dev` as a process, over real HTTP. The tests of secrets in all processes are also here.

mod api;
mod folder;
mod http;
mod kills;
mod order;
mod origins;
mod patience;
mod process;
mod record;
mod recorded;
mod secrets;
