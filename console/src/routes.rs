//! The addresses of the pages.

use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use axum::{Extension, Router};

use crate::answer::Failure;
use crate::console::Console;
use crate::visitor::{ForDeployers, ForStrangers, FormLimit};
use crate::{assets, pages, visitor};

/// A form with a definition, an input or an event in it, of which each byte may take three.
const LARGE: Extension<FormLimit> = Extension(FormLimit(4 << 20));
/// The same, with a definition to be deployed or rehearsed.
const DRAFT: (Extension<FormLimit>, Extension<ForDeployers>) = (LARGE, Extension(ForDeployers));
/// A form with files of 4 MiB, and what is around them.
const FILES: (Extension<FormLimit>, Extension<ForDeployers>) =
    (Extension(FormLimit(5 << 20)), Extension(ForDeployers));
/// A form with the longest token in it.
const SIGN_IN: (Extension<FormLimit>, Extension<ForStrangers>) =
    (Extension(FormLimit(20 << 10)), Extension(ForStrangers));

/// The pages, to be mounted at `/console`.
pub fn router(console: Console) -> Router {
    let instance = "/instances/{id}";
    let definition = "/definitions/{id}/{version}";
    Router::new()
        .route("/", get(pages::overview::show))
        .route("/audit", get(pages::audit::show))
        .route(
            "/sign-in",
            get(pages::sign_in::show)
                .post(pages::sign_in::sign_in)
                .layer(SIGN_IN),
        )
        .route("/sign-in/with", get(pages::provider::begin))
        .route("/sign-in/callback", get(pages::provider::finish))
        .route("/sign-out", post(pages::sign_in::sign_out).layer(SIGN_IN))
        .route(
            "/batches",
            get(pages::batches::index).post(pages::batch_trial::create),
        )
        .route("/batches/{id}", get(pages::batches::show))
        .route("/batches/{id}/{action}", post(pages::batches::act))
        .route("/instances", get(pages::instances::show))
        .route(instance, get(pages::instance::show))
        .route("/instances/{id}/hints", get(pages::hints::stream))
        .route(
            "/instances/{id}/{action}",
            post(pages::instance::operate).layer(LARGE),
        )
        .route(
            "/definitions",
            get(pages::definitions::index)
                .post(pages::deploy::deploy)
                .layer(DRAFT),
        )
        .route(
            "/deploy",
            get(pages::deploy::editor)
                .post(pages::deploy::look)
                .layer(DRAFT),
        )
        .route(
            "/deploy/files",
            get(pages::folder::choose)
                .post(pages::folder::list)
                .layer(FILES),
        )
        .route(
            "/deploy/rehearse",
            post(pages::rehearsal::of_draft).layer(DRAFT),
        )
        .route(
            "/rehearsals/of/{id}/{version}",
            post(pages::rehearsal::of_deployed).layer(DRAFT),
        )
        .route(
            "/rehearsals/save",
            post(pages::rehearsal::save).layer(FILES),
        )
        .route("/deploy/findings", post(pages::deploy::check).layer(DRAFT))
        .route(
            "/deploy/completions",
            post(pages::deploy::complete).layer(DRAFT),
        )
        .route(definition, get(pages::definitions::show))
        .route(
            "/definitions/{id}/{version}/activate",
            post(pages::definitions::activate),
        )
        .route(
            "/definitions/{id}/{version}/compare",
            get(pages::compare::show),
        )
        .route(
            "/definitions/{id}/{version}/delete",
            post(pages::definitions::delete),
        )
        .route(
            "/start/{id}/{version}",
            get(pages::start::show)
                .post(pages::start::start)
                .layer(LARGE),
        )
        .route(
            "/events",
            get(pages::events::show)
                .post(pages::events::send)
                .layer(LARGE),
        )
        .route("/dead-letters/{number}", get(pages::letters::show))
        .route(
            "/dead-letters/{number}/{action}",
            post(pages::letters::act).layer(LARGE),
        )
        .route("/schedules", get(pages::schedules::show))
        .route(
            "/schedules/{workflow}/{action}",
            post(pages::schedules::act),
        )
        .route("/views", post(pages::views::save))
        .route("/views/remove", post(pages::views::remove))
        .route("/system", get(pages::system::show))
        .route("/assets/{name}", get(assets::asset))
        .fallback(async || Failure::not_found("there is no such page in the console"))
        .layer(from_fn_with_state(console.clone(), visitor::enter))
        .with_state(console)
}
