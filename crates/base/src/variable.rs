//! Variables of the environment that only tests set.

/// `None` in a release, which does not even have the name in it.
#[inline]
pub fn of_tests(name: &str) -> Option<String> {
    if cfg!(feature = "test-hooks") { std::env::var(name).ok() } else { None }
}
