//! See `weir_broker::fuzzing::config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_broker::fuzzing::config(bytes));
