//! See `weir_broker::fuzzing::entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_broker::fuzzing::entry(bytes));
