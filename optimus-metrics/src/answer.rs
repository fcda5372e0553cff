//! What the server answers to a request: [`Answer`].

use crate::exposition::Exposition;

/// A status and a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

impl Answer {
    /// Answers with metrics.
    pub fn metrics(text: Exposition) -> Self {
        let content_type = Exposition::CONTENT_TYPE;
        Self { status: 200, content_type, body: text.into_text() }
    }

    /// Answers a probe: 200 if nothing is wrong, and else 503 with a line for each problem.
    pub fn probe(problems: &[String]) -> Self {
        if problems.is_empty() {
            return Self::text(200, "ok");
        }
        Self::text(503, &problems.join("\n"))
    }

    /// Answers with a text of JSON.
    pub fn json(body: String) -> Self {
        Self { status: 200, content_type: "application/json", body }
    }

    /// Says that nothing is at this path.
    pub fn not_found(text: &str) -> Self {
        Self::text(404, text)
    }

    /// Says that the query is wrong, and what to write.
    pub fn bad_request(text: &str) -> Self {
        Self::text(400, text)
    }

    pub(crate) fn text(status: u16, text: &str) -> Self {
        let body = format!("{text}\n");
        Self { status, content_type: "text/plain; charset=utf-8", body }
    }
}
