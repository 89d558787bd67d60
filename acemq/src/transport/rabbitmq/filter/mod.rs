//! Makes what a broker sends safe to parse.
//!
//! RabbitMQ passes on whatever a publisher wrote, and lapin does not survive all of it: a message id, routing key or header
//! name that is not UTF-8 ends its connection, and a header that is nested some hundred levels deep overflows the stack of
//! its thread and so ends the process. As such a message is delivered again and again, one of them would stop a consumer
//! for good. So the bytes are looked through before lapin sees them, and mended in place without a change of their length.

mod fields;

use std::sync::{Arc, OnceLock};

use self::fields::Fields;
pub(super) use self::fields::Greeting;

/// What a frame has beside its payload: type, channel and length before it, a mark after it.
const FRAME: usize = 7 + 1;
/// A frame that is looked through is complete first. None is larger than this, which is more than anyone negotiates.
const MAX_FRAME: usize = 1 << 20;
/// How much is read at once.
const CHUNK: usize = 128 << 10;

const METHOD: u8 = 1;
const HEADER: u8 = 2;

/// The bytes from a broker, on their way to lapin.
#[derive(Debug)]
pub(super) struct Filter {
    buffer: Vec<u8>,
    /// Up to here the buffer was given away,
    start: usize,
    /// up to here it may be,
    ready: usize,
    /// and up to here it is filled.
    end: usize,
    /// What is still to come of a frame that needs no look.
    passing: usize,
    greeting: Arc<OnceLock<Greeting>>,
}

impl Filter {
    pub(super) fn new(greeting: Arc<OnceLock<Greeting>>) -> Self {
        Self { buffer: Vec::new(), start: 0, ready: 0, end: 0, passing: 0, greeting }
    }

    /// Moves what is ready into `out`; zero if that is nothing.
    pub(super) fn take(&mut self, out: &mut [u8]) -> usize {
        let ready = self.buffer.get(self.start..self.ready).unwrap_or_default();
        let taken = ready.len().min(out.len());
        if let (Some(from), Some(to)) = (ready.get(..taken), out.get_mut(..taken)) {
            to.copy_from_slice(from);
        }
        self.start += taken;
        taken
    }

    /// How many of the next bytes may go past the buffer.
    pub(super) fn passing(&self) -> usize {
        if self.start == self.end { self.passing } else { 0 }
    }

    /// Takes note of bytes that went past it.
    pub(super) fn passed(&mut self, bytes: usize) {
        self.passing = self.passing.saturating_sub(bytes);
    }

    /// Where to read to.
    pub(super) fn space(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.start..self.end, 0);
        self.ready -= self.start;
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < self.end + CHUNK {
            self.buffer.resize(self.end + CHUNK, 0);
        }
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    /// Looks through what was read into the space.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
        while let Some(rest) = self.buffer.get_mut(self.ready..self.end) {
            if self.passing > 0 {
                let pass = self.passing.min(rest.len());
                self.passing -= pass;
                self.ready += pass;
                if self.passing > 0 {
                    return;
                }
                continue;
            }
            let Some(&[kind, _, _, a, b, c, d]) = rest.first_chunk() else {
                return;
            };
            let payload = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
            let frame = payload.saturating_add(FRAME);
            if !matches!(kind, METHOD | HEADER) || frame > MAX_FRAME {
                self.passing = frame;
                continue;
            }
            let Some(payload) = rest.get_mut(..frame).and_then(|rest| rest.get_mut(7..)) else {
                return;
            };
            let mut fields = Fields::new(payload);
            if kind == HEADER {
                // Where it cannot be read to its end, lapin says what is wrong.
                let _ = fields.header();
            } else if let Some(greeting) = fields.method() {
                let _ = self.greeting.set(greeting);
            }
            self.ready += frame;
        }
    }
}

#[cfg(test)]
mod tests;
