#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| lab::fuzz::identity::bearer_token(input));
