//! HTTP/2 requests with random fields, from `h2` to the parser. A fuzzer runs the same check.

mod check;
#[path = "../../src/http2/head.rs"]
#[allow(dead_code, reason = "only the engine's request heads are used")]
mod head;

/// Pieces that matter to the check.
const PIECES: [&[u8]; 24] = [
    b":protocol\xffwebsocket\xff",
    b":protocol\xffwebsocket\r\nx-forwarded-for: 6.6.6.6\xff",
    b":protocol\xffother\xff",
    b":method\xffPOST\xff",
    b":scheme\xffftp\xff",
    b":scheme\xffhttp\xff",
    b":authority\xfftest:80\xff",
    b":path\xff/c#d\xff",
    b":path\xff?e\xff",
    b":path\xff/f g\xff",
    b"host\xfftest\xff",
    b"host\xffother\xff",
    b"cookie\xffa=1\xff",
    b"cookie\xff\xff",
    b"cookie\xffb=2\xff",
    b"x\xff y\xff",
    b"x\xffy z\xff",
    b"x-forwarded-for\xff1.2.3.4\xff",
    b"content-length\xff3\xff",
    b"sec-websocket-key\xffx\xff",
    b"te\xfftrailers\xff",
    b"connection\xffclose\xff",
    b"x\xff\r\ny: z\xff",
    b"\xc3\xa4\xff\xc3\xb6\xff",
];

#[test]
fn whatever_fields_are_sent_those_or_none_reach_the_app() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % most
    };
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut bytes = vec![random(256) as u8];
        for _ in 0..random(5) {
            bytes.extend_from_slice(PIECES[random(PIECES.len())]);
        }
        if random(3) == 0 {
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        accepted += usize::from(check::request(&bytes));
    }
    assert!((1_000..19_000).contains(&accepted), "{accepted} are accepted");
}
