//! A release has no places at which it dies.

#[inline]
pub fn place(_what: &str, _when: &str) {}
