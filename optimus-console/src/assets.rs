//! The files of the page, which are part of the program.

use std::{collections::HashMap, io::Write as _, sync::LazyLock};

use axum::{
    body::Bytes,
    extract::{NestedPath, OriginalUri, State, rejection::NestedPathRejection},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Redirect, Response},
};
use flate2::{Compression, write::GzEncoder};
use rust_embed::RustEmbed;

use crate::{problem::Problem, shared::App};

#[derive(RustEmbed)]
#[folder = "dist/"]
struct Dist;

/// The text that stands for the path of the page.
const BASE: &str = "__BASE__";

static INDEX: LazyLock<String> = LazyLock::new(|| {
    let file = Dist::get("index.html");
    file.map(|file| String::from_utf8_lossy(&file.data).into_owned()).unwrap_or_default()
});

/// The files as gzip, if that is shorter. They are compressed once, at the first request.
static PACKED: LazyLock<HashMap<String, Bytes>> = LazyLock::new(|| {
    let files = Dist::iter().filter_map(|path| Some((Dist::get(&path)?, path)));
    let packed = files.filter_map(|(file, path)| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(&file.data).ok()?;
        let bytes = packer.finish().ok()?;
        (bytes.len() < file.data.len()).then(|| (path.into_owned(), Bytes::from(bytes)))
    });
    packed.collect()
});

/// Sends the page, which is told its own path.
pub(crate) async fn index(
    State(app): State<App>,
    mount: Result<NestedPath, NestedPathRejection>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Response {
    // The files are beside the page only if its path ends with a slash or a name. A router that is
    // nested with `nest` has no path that ends with a slash.
    let is_file = uri.path().rsplit('/').next() == Some("index.html");
    if !uri.path().ends_with('/') && !is_file {
        let name = uri.path().rsplit('/').next().unwrap_or_default();
        return Redirect::permanent(&format!("./{name}/index.html")).into_response();
    }
    let prefix = app.trusts_prefix.then(|| prefix_of(&headers)).flatten();
    let mount = mount.as_ref().map_or("", NestedPath::as_str);
    let base = prefix.unwrap_or_else(|| mount.to_owned());
    let file = if is_file { "index.html" } else { "" };
    let base = format!("{}/{file}", base.trim_end_matches('/'));
    let page = INDEX.replace(BASE, &escaped(&base));
    let kind = (header::CONTENT_TYPE, "text/html; charset=utf-8");
    ([kind, (header::CACHE_CONTROL, "no-store")], page).into_response()
}

/// Returns the path that a proxy names, if it is one.
fn prefix_of(headers: &HeaderMap) -> Option<String> {
    let prefix = headers.get("x-forwarded-prefix")?.to_str().ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte);
    let is_path = prefix.starts_with('/') && !prefix.starts_with("//");
    (is_path && prefix.bytes().all(is_plain)).then(|| prefix.to_owned())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Sends a file of the page.
pub(crate) async fn asset(
    State(app): State<App>,
    mount: Result<NestedPath, NestedPathRejection>,
    original: OriginalUri,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let path = uri.path().trim_start_matches('/');
    if matches!(path, "" | "index.html") {
        return index(State(app), mount, original, headers).await;
    }
    // The names are those of the program, so no path leads out of it.
    let Some(file) = Dist::get(path) else {
        return Problem::not_found("the console has no such file").into_response();
    };
    let tag = tag_of(&file.metadata.sha256_hash());
    let has = |name: header::HeaderName, word: &str| {
        let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        texts.flat_map(|text| text.split(',')).any(|known| known.trim() == word)
    };
    let Ok(value) = HeaderValue::from_str(&tag) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let common = [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
        (header::ETAG, value),
    ];
    if has(header::IF_NONE_MATCH, &tag) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static(kind_of(path)));
    match PACKED.get(path).filter(|_| has(header::ACCEPT_ENCODING, "gzip")) {
        Some(packed) => {
            let gzip = (header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            (common, [kind, gzip], packed.clone()).into_response()
        }
        None => (common, [kind], file.data).into_response(),
    }
}

fn tag_of(hash: &[u8]) -> String {
    let digits: Vec<String> = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{}\"", digits.concat())
}

fn kind_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("json" | "map" | "webmanifest") => "application/json",
        Some("woff2") => "font/woff2",
        _ => "text/plain; charset=utf-8",
    }
}
