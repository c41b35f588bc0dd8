//! No text makes the parser panic, hang or take much memory; what it accepts it can write and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match cluster_file::parse(text) {
        Ok(parsed) => {
            let written = cluster_file::write(&parsed.file).expect("what was read can be written");
            let again = cluster_file::parse(&written).expect("what was written can be read");
            // A kind file becomes ours; from there on it stays.
            assert_eq!(again.file, parsed.file);
        }
        Err(problems) => assert!(!problems.show("file").is_empty()),
    }
});
