//! See `weir_broker::fuzzing::row`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_broker::fuzzing::row(bytes));
