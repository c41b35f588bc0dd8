//! What is kept on disk besides machines: profiles, settings, locks, events, logs.

pub mod audit;
pub mod handout;
pub mod history;
pub mod home;
pub mod lock;
pub mod log;
pub mod owner;
pub mod pending;
pub mod profile;
pub mod scheduled;
pub mod settings;

pub use base::atomic;
