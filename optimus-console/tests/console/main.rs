//! Serves the console over a real Redis, and asks it as browsers and attackers do.

mod abuses;
mod access;
mod acts;
mod assets;
mod audit;
mod carrying;
mod chromium;
mod client;
mod cost;
mod damage;
mod dots;
mod events;
mod hidden;
mod limit_acts;
mod limits;
mod liveness;
mod looks;
mod openapi;
mod operations;
mod redaction;
mod requests;
mod search;
mod stage;
mod statistics;
mod things;
