//! The data of a session that its socket has not taken yet.

use crate::websocket::deflate::Deflater;
use crate::websocket::frame;
use std::cell::RefCell;
use std::rc::Rc;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

#[derive(Debug)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    written: usize,
    /// RFC 6455 §5.3. Masking has no security purpose here: one key for each connection is enough, but not zero.
    mask: [u8; 4],
    /// Present if permessage-deflate was agreed on.
    pub(crate) deflater: Option<Rc<RefCell<Deflater>>>,
}

impl Outbox {
    pub(crate) fn new(mask: [u8; 4]) -> Outbox {
        Outbox {
            bytes: Vec::new(),
            written: 0,
            mask,
            deflater: None,
        }
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn message(&mut self, binary: bool, payload: &[u8]) {
        let opcode = OpCode::Data(if binary { Data::Binary } else { Data::Text });
        match &self.deflater {
            None => frame::put(&mut self.bytes, opcode, false, self.mask, payload),
            Some(deflater) => {
                let mut deflater = deflater.borrow_mut();
                frame::put(&mut self.bytes, opcode, true, self.mask, deflater.message(payload));
            }
        }
    }

    pub(crate) fn pong(&mut self, payload: &[u8]) {
        frame::put(
            &mut self.bytes,
            OpCode::Control(Control::Pong),
            false,
            self.mask,
            payload,
        );
    }

    pub(crate) fn close(&mut self, code: u16) {
        frame::put(
            &mut self.bytes,
            OpCode::Control(Control::Close),
            false,
            self.mask,
            &code.to_be_bytes(),
        );
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    pub(crate) fn took(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written == self.bytes.len() {
            self.clear();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
    }
}
