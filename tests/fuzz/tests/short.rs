//! Tests each property on its seeds and on mutations of them. This is the short form of
//! `tests/fuzz/libfuzzer/`.

use std::fs;
use std::path::Path;

use fastrand::Rng;
use optimus_fuzz::{PROPERTIES, Property, check};

/// The number of mutations of each seed.
const MUTATIONS: usize = 1_000;
const MUTANT_BYTES_MAX: usize = 4_096;

fn seeds(property: &Property) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(property.name);
    let files = fs::read_dir(&folder).expect("each property has a folder of seeds");
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Makes one to four changes of kinds that often break decoders.
fn mutated(seed: &[u8], others: &[Vec<u8>], random: &mut Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..random.usize(1..=4) {
        let at = random.usize(..=bytes.len());
        let end = random.usize(at..=bytes.len());
        match random.u8(..7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.u8(..8),
            1 if at < bytes.len() => bytes[at] = random.u8(..),
            2 => bytes.insert(at, random.u8(..)),
            3 => drop(bytes.drain(at..end)),
            4 => bytes.truncate(at),
            5 => {
                let copied = bytes[at..end].to_vec();
                bytes.splice(at..at, copied);
            }
            _ => {
                let other = &others[random.usize(..others.len())];
                let from = random.usize(..=other.len());
                bytes.splice(at.., other[from..].iter().copied());
            }
        }
    }
    bytes.truncate(MUTANT_BYTES_MAX);
    bytes
}

fn holds(name: &str) {
    let property = PROPERTIES.iter().find(|property| property.name == name).unwrap();
    let seeds = seeds(property);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    let mut random = Rng::with_seed(20_240_229);
    check(name, b"");
    for seed in &seeds {
        check(name, seed);
        for _ in 0..MUTATIONS {
            let bytes = mutated(seed, &seeds, &mut random);
            let checked = std::panic::catch_unwind(|| check(name, &bytes));
            assert!(checked.is_ok(), "{name} does not hold for {}", bytes.escape_ascii());
        }
    }
}

macro_rules! properties {
    ($($test:ident: $name:literal;)*) => {
        $(
            #[test]
            fn $test() {
                holds($name);
            }
        )*

        #[test]
        fn every_property_is_tried_and_has_a_target() {
            assert_eq!(PROPERTIES.map(|property| property.name), [$($name),*]);
            for name in [$($name),*] {
                let target = format!("libfuzzer/fuzz_targets/{name}.rs");
                assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(&target).is_file(), "{target}");
            }
        }
    };
}

properties! {
    a_duration_is_read_as_it_is_printed_or_refused_with_its_fault: "duration";
    a_pattern_matches_what_its_definition_says: "glob";
    an_id_is_printed_as_it_was_read_and_cannot_escape_its_key: "id";
    json_that_a_script_wrote_is_read_back_and_no_json_is_refused: "json";
    queues_are_read_as_they_are_printed_and_no_slot_is_offered_twice: "queues";
    a_record_keeps_its_payload_or_is_refused_with_its_fault: "record";
    a_reply_is_read_as_it_was_written_or_is_unexpected: "reply";
    a_call_is_stored_as_it_was_made_or_refused_with_its_fault: "submission";
    no_url_is_printed_with_its_password: "url";
    no_wait_overflows_or_is_shorter_than_asked: "wait";
}
