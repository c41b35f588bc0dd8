//! Certificates, kubeconfigs, kubeadm configuration and phases, addons and the API's conditions.
//!
//! Everything that decides is pure (`*_files`, `leaves`, `objects`); what touches the disk is in
//! `pki::store`, what touches the network in `api`.
#![forbid(unsafe_code)]

pub mod addons;
pub mod api;
pub mod containerd;
pub mod docker;
pub mod etcd;
mod kube_vip;
pub mod kubeadm;
mod kubeconfig;
pub mod manifest;
mod node;
mod options;
pub mod paths;
pub mod pki;
pub mod registry;
pub mod yaml;

pub use kubeadm::{
    addon_manifest_command, finish_commands, join_command, joining_kubelet, node_spec_parts, own_api_command,
    release_apiserver_command, release_command, reset,
};
pub use node::{Certified, api_certificate, certified, node_files};
pub use options::{Options, ProxyMode};
pub use pki::{Identity, Pki};

#[cfg(test)]
mod fixture;
