//! See `weir_broker::fuzzing::frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_broker::fuzzing::frame(bytes));
