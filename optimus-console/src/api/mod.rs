//! The routes: the JSON API, the events, and the files of the page.

pub(crate) mod acts;
pub(crate) mod audit;
mod audited;
pub(crate) mod events;
mod explained;
pub(crate) mod failures;
pub(crate) mod history;
pub(crate) mod operations;
pub(crate) mod overview;
mod page;
pub(crate) mod processes;
pub(crate) mod queues;
pub(crate) mod search;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod stats;
pub(crate) mod task;
pub(crate) mod task_acts;
mod task_search;
pub(crate) mod tasks;
pub(crate) mod things;
mod timeline;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    routing::{any, get, post},
};

use crate::{assets, openapi, problem::Problem, shared::App};

/// The most bytes of the body of an act.
const BODY_MAX: usize = 64 * 1024;

/// Returns all routes.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        // A fallback of these routes would come after the files, which take any path.
        .nest("/api/v1", looks().merge(acts()).route("/{*path}", any(unknown)))
        .route("/api/v1/", any(unknown))
        .route("/", get(assets::index))
        .route("/{*path}", get(assets::asset))
        // A path that ends with the slash of a mount.
        .fallback(get(assets::asset))
        .layer(DefaultBodyLimit::max(BODY_MAX))
}

async fn unknown() -> Problem {
    Problem::not_found("the API has no such path; openapi.json lists all")
}

fn looks() -> Router<App> {
    Router::new()
        .route("/openapi.json", get(openapi::document))
        .route("/session", get(session::session))
        .route("/overview", get(overview::overview))
        .route("/queues", get(queues::queues))
        .route("/queues/{queue}", get(queues::queue))
        .route("/queues/{queue}/tasks", get(tasks::tasks))
        .route("/queues/{queue}/stats", get(stats::of_queue))
        .route("/queues/{queue}/history", get(history::history))
        .route("/stats", get(stats::of_all))
        .route("/tasks/{queue}/{uuid}", get(task::task))
        .route("/failures", get(failures::failures))
        .route("/processes", get(processes::processes))
        .route("/running", get(processes::running))
        .route("/search", get(search::search))
        .route("/redis", get(server::redis))
        .route("/lanes", get(things::lanes))
        .route("/limits", get(things::limits))
        .route("/groups", get(things::groups))
        .route("/schedules", get(things::schedules))
        .route("/shards", get(things::shards))
        .route("/sources", get(things::sources))
        .route("/dispensers", get(things::dispensers))
        .route("/audit", get(audit::audit))
        .route("/operations", get(operations::list).post(operations::count))
        .route("/operations/{id}", get(operations::show))
        .route("/events", get(events::events))
}

fn acts() -> Router<App> {
    Router::new()
        .route("/sign-in", post(session::sign_in))
        .route("/sign-out", post(session::sign_out))
        .route("/queues/{queue}/pause", post(acts::pause))
        .route("/queues/{queue}/resume", post(acts::resume))
        .route("/tasks/act", post(task_acts::act))
        .route("/operations/{id}/confirm", post(operations::confirm))
        .route("/operations/{id}/cancel", post(operations::cancel))
        .route("/operations/{id}/undo", post(operations::undo))
        .route("/processes/{id}/act", post(acts::process))
        .route("/things/{kind}/act", post(things::act))
}
