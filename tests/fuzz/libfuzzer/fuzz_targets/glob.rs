//! The property `glob`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| optimus_fuzz::check("glob", data));
