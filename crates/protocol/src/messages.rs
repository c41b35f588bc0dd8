//! The messages, field by field.

use bytes::Bytes;
use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

/// A node's state as JSON ([`model::node_spec::NodeState`]).
#[derive(Clone, PartialEq, Message)]
pub struct State {
    #[prost(bytes = "bytes", tag = "1")]
    pub json: Bytes,
}

/// A part of a byte stream. The first message of a `Dial` has a target and no data.
#[derive(Clone, PartialEq, Message)]
pub struct Part {
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
    /// `tcp:ADDRESS:PORT` or `unix:PATH`, seen from the node; several are tried one after the other.
    #[prost(string, repeated, tag = "2")]
    pub targets: Vec<String>,
}

/// From the host to a command in the node. The end of these messages is the end of the command's input.
#[derive(Clone, PartialEq, Message)]
pub struct ExecInput {
    #[prost(oneof = "exec_input::Kind", tags = "1, 2, 3")]
    pub kind: Option<exec_input::Kind>,
}

pub mod exec_input {
    use super::{Bytes, Oneof, Size, Start};

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Kind {
        /// The first message.
        #[prost(message, tag = "1")]
        Start(Start),
        #[prost(bytes = "bytes", tag = "2")]
        Stdin(Bytes),
        /// The user's terminal has another size now.
        #[prost(message, tag = "3")]
        Size(Size),
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct Start {
    #[prost(string, repeated, tag = "1")]
    pub argv: Vec<String>,
    /// The command gets a terminal of this size.
    #[prost(message, optional, tag = "2")]
    pub terminal: Option<Size>,
    /// The kind of that terminal (`TERM`).
    #[prost(string, tag = "3")]
    pub term: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Size {
    #[prost(uint32, tag = "1")]
    pub rows: u32,
    #[prost(uint32, tag = "2")]
    pub columns: u32,
}

/// From a command in the node to the host.
#[derive(Clone, PartialEq, Message)]
pub struct ExecOutput {
    #[prost(oneof = "exec_output::Kind", tags = "1, 2, 3")]
    pub kind: Option<exec_output::Kind>,
}

pub mod exec_output {
    use super::{Bytes, Oneof};

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Kind {
        #[prost(bytes = "bytes", tag = "1")]
        Stdout(Bytes),
        #[prost(bytes = "bytes", tag = "2")]
        Stderr(Bytes),
        /// The last message: the exit code, or 128 and the number of the signal that ended the command.
        #[prost(int32, tag = "3")]
        Exit(i32),
    }
}

/// Files to write: a head, then its data, then the next head, and an end. Without the end the last file is not whole.
#[derive(Clone, PartialEq, Message)]
pub struct PutInput {
    #[prost(oneof = "put_input::Kind", tags = "1, 2, 3")]
    pub kind: Option<put_input::Kind>,
}

pub mod put_input {
    use super::{Bytes, Empty, Oneof, PutFile};

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Kind {
        #[prost(message, tag = "1")]
        File(PutFile),
        #[prost(bytes = "bytes", tag = "2")]
        Data(Bytes),
        #[prost(message, tag = "3")]
        End(Empty),
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct PutFile {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(uint32, tag = "2")]
    pub mode: u32,
    /// The file that is there is written to, so that its owner and its links stay. Otherwise it is replaced as a whole.
    #[prost(bool, tag = "3")]
    pub in_place: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Path {
    #[prost(string, tag = "1")]
    pub path: String,
}

/// A file: first what it is, then its data.
#[derive(Clone, PartialEq, Message)]
pub struct GetOutput {
    #[prost(oneof = "get_output::Kind", tags = "1, 2")]
    pub kind: Option<get_output::Kind>,
}

pub mod get_output {
    use super::{Bytes, Found, Oneof};

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Kind {
        #[prost(message, tag = "1")]
        Found(Found),
        #[prost(bytes = "bytes", tag = "2")]
        Data(Bytes),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Found {
    #[prost(bool, tag = "1")]
    pub directory: bool,
    #[prost(uint32, tag = "2")]
    pub mode: u32,
    #[prost(uint64, tag = "3")]
    pub length: u64,
}

/// The node's own disk is to have no more space than this; without a number, as much as it has.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Fill {
    #[prost(uint64, optional, tag = "1")]
    pub leave: Option<u64>,
}

/// Packets that the node is to lose or hold back from now on, as JSON ([`model::injected::PacketFaults`]).
#[derive(Clone, PartialEq, Message)]
pub struct PacketFaults {
    #[prost(bytes = "bytes", tag = "1")]
    pub json: Bytes,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct PacketsDone {
    /// The node's kernel cannot hold packets back. Nothing was changed.
    #[prost(bool, tag = "1")]
    pub no_delays: bool,
}

/// All processes of a program are to be killed.
#[derive(Clone, PartialEq, Message)]
pub struct Program {
    /// What it was called by, without a directory.
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Killed {
    #[prost(uint32, tag = "1")]
    pub count: u32,
    /// The programs that ran in the node, those that were killed among them.
    #[prost(string, repeated, tag = "2")]
    pub running: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Paths {
    #[prost(string, repeated, tag = "1")]
    pub paths: Vec<String>,
}

/// One for each path that was asked for, in that order.
#[derive(Clone, PartialEq, Message)]
pub struct Digests {
    #[prost(message, repeated, tag = "1")]
    pub files: Vec<Digest>,
}

/// The SHA-256 of a file; empty where there is none.
#[derive(Clone, PartialEq, Message)]
pub struct Digest {
    #[prost(bytes = "bytes", tag = "1")]
    pub sha256: Bytes,
    #[prost(uint32, tag = "2")]
    pub mode: u32,
}
