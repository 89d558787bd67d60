//! The fields of methods and content headers, as far as a publisher or a name decides what is in them.

use std::mem;

/// Levels of arrays and tables inside headers. What is deeper stays as plain bytes.
const DEPTH: u32 = 32;

/// What a broker says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in super::super) struct Greeting {
    pub(in super::super) product: String,
    pub(in super::super) version: String,
}

/// What is left of a payload. `None` of a method means that the payload ends too early or has an unknown type.
pub(super) struct Fields<'a>(&'a mut [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(payload: &'a mut [u8]) -> Self {
        Self(payload)
    }

    fn take(&mut self, bytes: usize) -> Option<&'a mut [u8]> {
        let (head, tail) = mem::take(&mut self.0).split_at_mut_checked(bytes)?;
        self.0 = tail;
        Some(head)
    }

    fn number<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        self.take(BYTES)?.first_chunk().copied()
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.take(bytes).map(drop)
    }

    fn long(&mut self) -> Option<&'a mut [u8]> {
        let length = u32::from_be_bytes(self.number()?);
        self.take(usize::try_from(length).ok()?)
    }

    /// A short string, which lapin takes for UTF-8.
    fn short(&mut self) -> Option<&'a [u8]> {
        let [length] = self.number()?;
        let text = self.take(usize::from(length))?;
        mend(text);
        Some(text)
    }

    /// The arguments of a method. A greeting comes from the first one of a connection, and from no other.
    pub(super) fn method(&mut self) -> Option<Greeting> {
        let class = u16::from_be_bytes(self.number()?);
        let method = u16::from_be_bytes(self.number()?);
        match (class, method) {
            // `connection.start`, after the version of the protocol.
            (10, 10) => {
                self.skip(2)?;
                return self.greeting();
            }
            // `connection.close` and `channel.close`: the text is cut at 255 bytes, maybe inside a character.
            (10, 50) | (20, 40) => {
                self.skip(2)?;
                self.short()?;
            }
            // `connection.blocked`
            (10, 60) => drop(self.short()?),
            // `basic.return`: code, text, exchange, routing key.
            (60, 50) => {
                self.skip(2)?;
                self.short()?;
                self.short()?;
                self.short()?;
            }
            // `basic.deliver`: consumer, delivery tag and redelivered, exchange, routing key.
            (60, 60) => {
                self.short()?;
                self.skip(8 + 1)?;
                self.short()?;
                self.short()?;
            }
            _ => {}
        }
        None
    }

    fn greeting(&mut self) -> Option<Greeting> {
        let mut properties = Self(self.long()?);
        let mut greeting = Greeting::default();
        while !properties.0.is_empty() {
            let name = properties.short()?;
            if properties.0.first() != Some(&b'S') {
                properties.value(DEPTH)?;
                continue;
            }
            properties.skip(1)?;
            let text = properties.long()?;
            let text = || String::from_utf8_lossy(text).into_owned();
            match name {
                b"product" => greeting.product = text(),
                b"version" => greeting.version = text(),
                _ => {}
            }
        }
        Some(greeting)
    }

    /// The properties of a message.
    pub(super) fn header(&mut self) -> Option<()> {
        // Class, weight and size of the body.
        self.skip(2 + 2 + 8)?;
        let flags = u16::from_be_bytes(self.number()?);
        // The lowest one announces more flags; there are no properties for them.
        for bit in (2..16).rev().filter(|bit| flags & (1 << bit) != 0) {
            match bit {
                13 => self.table(DEPTH)?,
                // Delivery mode and priority.
                11 | 12 => self.skip(1)?,
                // Timestamp.
                6 => self.skip(8)?,
                _ => drop(self.short()?),
            }
        }
        Some(())
    }

    fn table(&mut self, depth: u32) -> Option<()> {
        let mut entries = Self(self.long()?);
        while !entries.0.is_empty() {
            entries.short()?;
            entries.value(depth)?;
        }
        Some(())
    }

    fn array(&mut self, depth: u32) -> Option<()> {
        let mut values = Self(self.long()?);
        while !values.0.is_empty() {
            values.value(depth)?;
        }
        Some(())
    }

    fn value(&mut self, depth: u32) -> Option<()> {
        let kind = self.take(1)?.first_mut()?;
        match *kind {
            b'V' => Some(()),
            b't' | b'b' | b'B' => self.skip(1),
            b's' | b'U' | b'u' => self.skip(2),
            b'I' | b'i' | b'f' => self.skip(4),
            b'D' => self.skip(1 + 4),
            b'l' | b'L' | b'd' | b'T' => self.skip(8),
            b'S' | b'x' => self.long().map(drop),
            b'A' | b'F' if depth == 0 => {
                // Plain bytes have the same form: their length, then they.
                *kind = b'x';
                self.long().map(drop)
            }
            b'A' => self.array(depth - 1),
            b'F' => self.table(depth - 1),
            _ => None,
        }
    }
}

/// Replaces what is not UTF-8.
fn mend(mut text: &mut [u8]) {
    if text.is_ascii() {
        return;
    }
    while let Err(error) = std::str::from_utf8(text) {
        let (_, rest) = text.split_at_mut(error.valid_up_to());
        let bad = error.error_len().unwrap_or(rest.len());
        let (bad, rest) = rest.split_at_mut(bad);
        bad.fill(b'?');
        text = rest;
    }
}
