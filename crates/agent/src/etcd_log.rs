//! How far an etcd is that cannot be asked: without a majority it answers no client, so its log is read.
//!
//! A log is a row of files of records; a record has its length in front (the top byte says how it is padded) and is a
//! protobuf message. What counts is the commit index of the last hard state: `--force-new-cluster` drops what follows.

use std::ffi::OsString;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use prost::Message;

const HARD_STATE: i64 = 3;
/// etcd allows requests of 1.5 MiB by default; what is longer than this is damage.
const LONGEST: u64 = 64 << 20;

#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(uint32, tag = "2")]
    crc: u32,
    #[prost(bytes = "vec", tag = "3")]
    data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct HardState {
    #[prost(uint64, tag = "1")]
    term: u64,
    #[prost(uint64, tag = "2")]
    vote: u64,
    #[prost(uint64, tag = "3")]
    commit: u64,
}

/// `manykube agent etcd-progress DIR` prints the commit index of the etcd whose data is in DIR.
pub fn run(args: &[OsString]) -> ExitCode {
    let Some(dir) = args.first() else {
        eprintln!("usage: manykube agent etcd-progress DIR");
        return ExitCode::FAILURE;
    };
    match committed(Path::new(dir)) {
        Ok(index) => {
            println!("{index}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

fn committed(data: &Path) -> Result<u64> {
    let dir = data.join("member/wal");
    let mut files: Vec<PathBuf> =
        fs_err::read_dir(&dir)?.flatten().map(|e| e.path()).filter(|p| is_log(p)).collect();
    files.sort();
    let mut last = None;
    for file in &files {
        last = last_state(BufReader::new(fs_err::File::open(file)?))?.or(last);
    }
    Ok(last.with_context(|| format!("no state of etcd in {}", dir.display()))?.commit)
}

/// `0.tmp` is a file that is not in use yet.
fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "wal")
}

/// The end of a file that is in use is zero, or a record that was cut short by a crash.
fn last_state(mut from: impl Read) -> Result<Option<HardState>> {
    let mut last = None;
    loop {
        let mut head = [0; 8];
        match from.read_exact(&mut head) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(last),
            read => read?,
        }
        let head = u64::from_le_bytes(head);
        let length = head & (u64::MAX >> 8);
        let padding = if head >> 63 == 1 { (head >> 56) & 0x7 } else { 0 };
        if length == 0 {
            return Ok(last);
        }
        if length > LONGEST {
            bail!("a record of {length} bytes: the log is damaged");
        }
        let mut body = vec![0; usize::try_from(length + padding)?];
        match from.read_exact(&mut body) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(last),
            read => read?,
        }
        body.truncate(usize::try_from(length)?);
        let Ok(record) = Record::decode(body.as_slice()) else { return Ok(last) };
        if record.kind == HARD_STATE {
            last = Some(HardState::decode(record.data.as_slice()).context("read a state of etcd")?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(record: &Record) -> Vec<u8> {
        let body = record.encode_to_vec();
        let padding = (8 - body.len() % 8) % 8;
        let mut head = body.len() as u64;
        if padding > 0 {
            head |= (0x80 | padding as u64) << 56;
        }
        let mut all = head.to_le_bytes().to_vec();
        all.extend(body);
        all.extend(vec![0; padding]);
        all
    }

    fn state(term: u64, commit: u64) -> Vec<u8> {
        let data = HardState { term, vote: 1, commit }.encode_to_vec();
        frame(&Record { kind: HARD_STATE, crc: 7, data })
    }

    fn entry(size: usize) -> Vec<u8> {
        frame(&Record { kind: 2, crc: 7, data: vec![1; size] })
    }

    #[test]
    fn the_last_state_of_the_last_file_counts() {
        let dir = tempfile::tempdir().unwrap();
        let wal = dir.path().join("member/wal");
        std::fs::create_dir_all(&wal).unwrap();
        let write = |name: &str, parts: &[Vec<u8>]| std::fs::write(wal.join(name), parts.concat()).unwrap();
        assert!(committed(dir.path()).is_err());
        write("0000000000000000-0000000000000000.wal", &[state(1, 5), entry(3), state(2, 90), vec![0; 64]]);
        assert_eq!(committed(dir.path()).unwrap(), 90);
        write("0000000000000001-000000000000005b.wal", &[state(2, 91), entry(1000), state(2, 120), entry(1)]);
        write("1.tmp", &[state(9, 999)]);
        assert_eq!(committed(dir.path()).unwrap(), 120);
    }

    #[test]
    fn a_torn_end_is_no_error() {
        let mut torn = [state(1, 5), entry(40)].concat();
        torn.truncate(torn.len() - 9);
        assert_eq!(last_state(torn.as_slice()).unwrap().unwrap().commit, 5);
        let damaged = [state(1, 5), vec![0xff; 16]].concat();
        assert!(last_state(damaged.as_slice()).is_err());
    }
}
