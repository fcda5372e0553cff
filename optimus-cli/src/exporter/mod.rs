//! The metrics of queues: what is shown ([`Page`]).

mod page;
mod sample;

pub(crate) use self::page::Page;
