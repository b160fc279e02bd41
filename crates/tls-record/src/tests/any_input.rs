//! The checks of the fuzzer, on its first inputs with random changes.

use crate::check;

const SEEDS: [&[u8]; 6] = [
    include_bytes!("../../../../fuzz/seeds/tls_records/state13"),
    include_bytes!("../../../../fuzz/seeds/tls_records/state12"),
    include_bytes!("../../../../fuzz/seeds/tls_records/record"),
    include_bytes!("../../../../fuzz/seeds/tls_records/key_updates"),
    include_bytes!("../../../../fuzz/seeds/tls_records/hello"),
    include_bytes!("../../../../fuzz/seeds/tls_records/alerts"),
];

#[test]
fn any_input_is_read_or_refused() {
    let mut number = 1u64;
    for seed in SEEDS.iter().cycle().take(3_000) {
        let mut bytes = seed.to_vec();
        for _ in 0..number % 5 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let index = (number >> 33) as usize % bytes.len();
            bytes[index] = (number >> 40) as u8;
        }
        number = number.wrapping_add(1);
        check::states(&bytes);
        check::forgeries(&bytes);
        check::contents(&bytes);
    }
}
