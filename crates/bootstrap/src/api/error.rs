//! One line about a call that failed: what we tried, and what came back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{tried}: {why}")]
pub struct ApiError {
    pub tried: String,
    pub why: String,
}

impl ApiError {
    pub fn new(tried: impl Into<String>, why: impl Into<String>) -> ApiError {
        ApiError { tried: tried.into(), why: one_line(&why.into()) }
    }
}

/// The innermost cause: the layers above it only say that something below them failed.
pub fn why(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.message.is_empty() => {
            format!("HTTP {} {}", status.code, status.reason)
        }
        kube::Error::Api(status) => one_line(&status.message),
        other => {
            let mut cause: &dyn std::error::Error = other;
            while let Some(next) = cause.source() {
                cause = next;
            }
            one_line(&cause.to_string())
        }
    }
}

pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How long one try of several may take. A server that is slow because the host is busy would never
/// answer if each try were given up early and made again: that is only more for it to do. So the next
/// one gets twice the time, up to what a connection may be silent.
pub struct Patience(AtomicU64);

const FIRST_TRY: u64 = 5;
const LONGEST_TRY: u64 = 30;

impl Default for Patience {
    fn default() -> Patience {
        Patience(AtomicU64::new(FIRST_TRY))
    }
}

impl Patience {
    pub fn get(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    pub fn learn(&self, answered: bool) {
        let next = if answered { FIRST_TRY } else { (2 * self.get().as_secs()).min(LONGEST_TRY) };
        self.0.store(next, Ordering::Relaxed);
    }
}

/// Runs one call under a deadline.
pub async fn call<T>(
    tried: impl Into<String>,
    deadline: Duration,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, ApiError> {
    let tried = tried.into();
    match tokio::time::timeout(deadline, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(ApiError::new(tried, why(&error))),
        Err(_) => Err(ApiError::new(tried, format!("no answer within {} s", deadline.as_secs_f32()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line() {
        let error = ApiError::new("label node demo", "a\n  b\tc");
        assert_eq!(error.to_string(), "label node demo: a b c");
    }

    #[test]
    fn who_gets_no_answer_waits_longer_the_next_time() {
        let patience = Patience::default();
        let tries: Vec<u64> = (0..5)
            .map(|_| {
                let now = patience.get().as_secs();
                patience.learn(false);
                now
            })
            .collect();
        assert_eq!(tries, [5, 10, 20, 30, 30]);
        patience.learn(true);
        assert_eq!(patience.get().as_secs(), 5);
    }

    #[tokio::test]
    async fn a_call_that_hangs_ends_at_its_deadline() {
        let hang = std::future::pending::<kube::Result<()>>();
        let error = call("look", Duration::from_secs(1), hang).await.unwrap_err();
        assert_eq!(error.to_string(), "look: no answer within 1 s");
    }
}
