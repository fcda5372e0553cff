//! The property `submission`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| optimus_fuzz::check("submission", data));
