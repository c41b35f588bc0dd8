//! The messages of containerd's API that are used here, field by field as its .proto files have them
//! (github.com/containerd/containerd/api). Written by hand, because generating them would make every build
//! of manykube need a protobuf compiler.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;

pub type Labels = HashMap<String, String>;

#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub struct FieldMask {
    #[prost(string, repeated, tag = "1")]
    pub paths: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Descriptor {
    #[prost(string, tag = "1")]
    pub media_type: String,
    #[prost(string, tag = "2")]
    pub digest: String,
    #[prost(int64, tag = "3")]
    pub size: i64,
    #[prost(map = "string, string", tag = "5")]
    pub annotations: Labels,
}

#[derive(Clone, PartialEq, Message)]
pub struct Mount {
    #[prost(string, tag = "1")]
    pub kind: String,
    #[prost(string, tag = "2")]
    pub source: String,
    #[prost(string, tag = "3")]
    pub target: String,
    #[prost(string, repeated, tag = "4")]
    pub options: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Digest {
    #[prost(string, tag = "1")]
    pub digest: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ContentInfo {
    #[prost(string, tag = "1")]
    pub digest: String,
    #[prost(int64, tag = "2")]
    pub size: i64,
    #[prost(map = "string, string", tag = "5")]
    pub labels: Labels,
}

#[derive(Clone, PartialEq, Message)]
pub struct ContentInfoAnswer {
    #[prost(message, optional, tag = "1")]
    pub info: Option<ContentInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpdateContent {
    #[prost(message, optional, tag = "1")]
    pub info: Option<ContentInfo>,
    #[prost(message, optional, tag = "2")]
    pub mask: Option<FieldMask>,
}

#[derive(Clone, PartialEq, Message)]
pub struct WriteContent {
    #[prost(int32, tag = "1")]
    pub action: i32,
    #[prost(string, tag = "2")]
    pub reference: String,
    #[prost(int64, tag = "3")]
    pub total: i64,
    #[prost(string, tag = "4")]
    pub expected: String,
    #[prost(int64, tag = "5")]
    pub offset: i64,
    #[prost(bytes = "bytes", tag = "6")]
    pub data: Bytes,
    #[prost(map = "string, string", tag = "7")]
    pub labels: Labels,
}

pub const STAT: i32 = 0;
pub const WRITE: i32 = 1;
pub const COMMIT: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub struct Written {
    #[prost(int32, tag = "1")]
    pub action: i32,
    #[prost(int64, tag = "4")]
    pub offset: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadContent {
    #[prost(string, tag = "1")]
    pub digest: String,
    #[prost(int64, tag = "2")]
    pub offset: i64,
    #[prost(int64, tag = "3")]
    pub size: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct PartOfContent {
    #[prost(int64, tag = "1")]
    pub offset: i64,
    #[prost(bytes = "bytes", tag = "2")]
    pub data: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub struct ArrivingBlob {
    #[prost(string, tag = "3")]
    pub reference: String,
    #[prost(int64, tag = "4")]
    pub offset: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Arriving {
    #[prost(message, repeated, tag = "1")]
    pub blobs: Vec<ArrivingBlob>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Abort {
    #[prost(string, tag = "1")]
    pub reference: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct NewSnapshot {
    #[prost(string, tag = "1")]
    pub snapshotter: String,
    #[prost(string, tag = "2")]
    pub key: String,
    #[prost(string, tag = "3")]
    pub parent: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Mounts {
    #[prost(message, repeated, tag = "1")]
    pub mounts: Vec<Mount>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CommitSnapshot {
    #[prost(string, tag = "1")]
    pub snapshotter: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub key: String,
}

/// Stat and Remove.
#[derive(Clone, PartialEq, Message)]
pub struct SnapshotKey {
    #[prost(string, tag = "1")]
    pub snapshotter: String,
    #[prost(string, tag = "2")]
    pub key: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Apply {
    #[prost(message, optional, tag = "1")]
    pub diff: Option<Descriptor>,
    #[prost(message, repeated, tag = "2")]
    pub mounts: Vec<Mount>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Applied {
    #[prost(message, optional, tag = "1")]
    pub applied: Option<Descriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Image {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(map = "string, string", tag = "2")]
    pub labels: Labels,
    #[prost(message, optional, tag = "3")]
    pub target: Option<Descriptor>,
}

/// Create and its answer, Get's answer.
#[derive(Clone, PartialEq, Message)]
pub struct OneImage {
    #[prost(message, optional, tag = "1")]
    pub image: Option<Image>,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpdateImage {
    #[prost(message, optional, tag = "1")]
    pub image: Option<Image>,
    #[prost(message, optional, tag = "2")]
    pub mask: Option<FieldMask>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Images {
    #[prost(message, repeated, tag = "1")]
    pub images: Vec<Image>,
}

/// Delete of an image, a lease; Get of an image without the second field.
#[derive(Clone, PartialEq, Message)]
pub struct Named {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bool, tag = "2")]
    pub sync: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct NewLease {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(map = "string, string", tag = "3")]
    pub labels: Labels,
}

/// Filters of a list, or of a subscription to events.
#[derive(Clone, PartialEq, Message)]
pub struct Filters {
    #[prost(string, repeated, tag = "1")]
    pub filters: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Envelope {
    #[prost(string, tag = "2")]
    pub namespace: String,
    #[prost(string, tag = "3")]
    pub topic: String,
    #[prost(message, optional, tag = "4")]
    pub event: Option<Any>,
}

/// Of an image that was made, changed or removed.
#[derive(Clone, PartialEq, Message)]
pub struct ImageEvent {
    #[prost(string, tag = "1")]
    pub name: String,
}
