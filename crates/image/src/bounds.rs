//! How much an image may unpack to: a few kilobytes can fill any disk.

use std::cell::Cell;
use std::io::{self, Read};

/// For what is not in an image's size: names, headers, the list of files.
const MARGIN: u64 = 1 << 30;

/// Bytes that may still come out of an image's archives.
#[derive(Debug, Clone)]
pub struct Room(Cell<u64>);

impl Room {
    /// For an image that says that its files have so many bytes. Twice as many, because the bound is against those
    /// who lie, not against rounding.
    pub fn of(size: u64) -> Room {
        Room(Cell::new(size.saturating_mul(2).saturating_add(MARGIN)))
    }

    /// The size is known now.
    pub fn grant(&self, size: u64) {
        self.0.set(Room::of(size).0.get());
    }

    /// Reading ends with an error where there is no room left.
    pub fn bound<R>(&self, inner: R) -> Bounded<'_, R> {
        Bounded { inner, room: self }
    }
}

pub struct Bounded<'a, R> {
    inner: R,
    room: &'a Room,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let left = self.room.0.get().checked_sub(read as u64);
        self.room.0.set(left.ok_or_else(|| io::Error::other("it unpacks to far more than it says"))?);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_larger_than_it_says_ends_with_an_error() {
        let room = Room::of(10);
        let read = |bytes| io::copy(&mut room.bound(io::repeat(0).take(bytes)), &mut io::sink());
        assert_eq!(read(MARGIN).expect("room"), MARGIN);
        assert_eq!(read(20).expect("room"), 20);
        assert!(read(1).is_err());
        room.grant(u64::MAX);
        assert!(read(1).is_ok());
    }
}
