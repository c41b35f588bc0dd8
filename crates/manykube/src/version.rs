//! Who we are.

/// `v0.1.0`
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// The commit this was built from, when the build said so.
pub const COMMIT: &str = match option_env!("MANYKUBE_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
