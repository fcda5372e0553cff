//! The description of the API for programs.

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use utoipa::OpenApi;

use crate::api;

/// The JSON API of the web console of Optimus.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Optimus console",
        description = "Looks at queues and tasks, and acts on them. \
        Times are integer ms since 1970 by the clock of Redis. Texts of tasks are strings. Acts \
        need `content-type: application/json`, and come from a page of the console or have a \
        bearer token."
    ),
    paths(
        api::session::session,
        api::session::sign_in,
        api::session::sign_out,
        api::overview::overview,
        api::queues::queues,
        api::queues::queue,
        api::tasks::tasks,
        api::stats::of_queue,
        api::stats::of_all,
        api::history::history,
        api::task::task,
        api::failures::failures,
        api::processes::processes,
        api::processes::running,
        api::search::search,
        api::server::redis,
        api::things::lanes,
        api::things::limits,
        api::things::groups,
        api::things::schedules,
        api::things::shards,
        api::things::sources,
        api::things::dispensers,
        api::audit::audit,
        api::events::events,
        api::operations::list,
        api::operations::show,
        api::operations::count,
        api::operations::confirm,
        api::operations::cancel,
        api::operations::undo,
        api::acts::pause,
        api::acts::resume,
        api::acts::process,
        api::task_acts::act,
        api::things::act,
    )
)]
struct Api;

/// Returns the description as JSON.
pub fn openapi_json() -> String {
    let mut json = Api::openapi().to_pretty_json().unwrap_or_default();
    json.push('\n');
    json
}

/// Sends the description.
pub(crate) async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi_json()).into_response()
}
