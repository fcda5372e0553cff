//! The metrics of queues: what is read ([`Sampler`]), and what is shown ([`Page`]).

mod page;
mod sample;
mod sampler;
mod want_slots;

pub(crate) use self::{page::Page, sample::Sample, sampler::Sampler};
