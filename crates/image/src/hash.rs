//! SHA-256 of files and of bytes, as lower-case hexadecimal.

use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The checksum of a whole file.
pub fn file(path: &Path) -> io::Result<String> {
    let mut source = fs_err::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match source.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// The checksum of bytes in memory.
pub fn bytes(data: &[u8]) -> String {
    hex(&Sha256::digest(data))
}

/// Passes everything on to another writer, and knows the checksum and length of what went through.
pub struct Tee<W> {
    inner: W,
    hasher: Sha256,
    length: u64,
}

impl<W: Write> Tee<W> {
    pub fn new(inner: W) -> Self {
        Tee { inner, hasher: Sha256::new(), length: 0 }
    }

    /// The writer, the checksum and the length.
    pub fn finish(self) -> (W, String, u64) {
        (self.inner, hex(&self.hasher.finalize()), self.length)
    }
}

impl<W: Write> Write for Tee<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(data)?;
        self.hasher.update(&data[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The well-known digest of "abc" (FIPS 180-2, appendix B.1).
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn all_three_ways_agree() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let mut tee = Tee::new(Vec::new());
        tee.write_all(b"a").unwrap();
        tee.write_all(b"bc").unwrap();
        assert_eq!(bytes(b"abc"), ABC);
        assert_eq!(file(&path).unwrap(), ABC);
        assert_eq!(tee.finish(), (b"abc".to_vec(), ABC.to_owned(), 3));
    }
}
