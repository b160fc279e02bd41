//! HTTP/2: frames and heads from random bytes. A fuzzer runs the same checks.

mod check;
#[path = "../http1/model.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod http1;
mod model;

/// Pieces that matter to the checks: frames, lines and fields.
const PIECES: [&[u8]; 28] = [
    b"\0\0\0\0\0\0\0\0\x01",
    b"\0\0\x05\x01\x05\0\0\0\x01hello",
    b"\0\0\x02\x01\0\0\0\0\x01ab",
    b"\0\0\x01\x09\x04\0\0\0\x01c",
    b"\0\0\x04\x03\0\0\0\0\x03\0\0\0\x08",
    b"\0\0\x0c\x07\0\0\0\0\0\0\0\0\x01\0\0\0\x0bcalm",
    b"\0\x40\0\0\0\0\0\0\x01",
    b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0",
    b"\0\0\0\x04\x01\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"HTTP/1.1 200 OK\r\n",
    b"content-length: 7\r\n",
    b"x: a: b\r\n",
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b"\x03GET\xffhost\xff/path\xffwebsocket\xff",
    b"\x01POST\xff[::1]:80\xff/a b\xff",
    b"cookie\xffa=1\xffcookie\xffb\xff",
    b"host\xffother\xffsec-websocket-key\xffx\xff",
    b"\x03CONNECT\xffhost\xff/path\xffwebsocket\r\nx: y\xff",
    b"\x03CONNECT\xffhost\xff/path\xffwebsocket\xffcontent-length\xff0\xff",
    b"\x0bGET\xffhttp\xffhost\xff/path\xffWebSocket\xff",
    b"\x09GET\xffftp\xffhost\xff/path\xff\xff",
    b"x-forwarded-for\xff6.6.6.6\xff",
    b"x\xff y \xff",
    b"u=0, i",
    b"u=9;x,u=3",
];

#[test]
fn whatever_comes_is_read_in_one_way() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % most
    };
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..random(8) {
            bytes.extend_from_slice(PIECES[random(PIECES.len())]);
        }
        for _ in 0..random(3) {
            if !bytes.is_empty() {
                let at = random(bytes.len());
                bytes[at] = random(256) as u8;
            }
        }
        check::frames(&bytes);
        accepted += usize::from(check::request(&bytes));
        check::response(&bytes);
        check::priority(&bytes);
    }
    assert!((100..20_000).contains(&accepted), "{accepted} requests are accepted");
}
