//! One line about a call that failed: what we tried, and what came back.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::condition::EVERY;

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

/// One request of several: its answer is a matter of milliseconds, or the connection is dead.
const ONE_TRY: Duration = Duration::from_secs(5);

/// Runs a call that may be made twice until it gets an answer: while control planes come and go, the
/// virtual address ends connections in the middle of a word.
pub async fn insist<T, F>(
    tried: impl Into<String>,
    deadline: Duration,
    mut call: impl FnMut() -> F,
) -> Result<T, ApiError>
where
    F: Future<Output = kube::Result<T>>,
{
    let tried = tried.into();
    let end = Instant::now() + deadline;
    loop {
        match timeout_at(end.min(Instant::now() + ONE_TRY), call()).await {
            Ok(Ok(value)) => return Ok(value),
            Err(_) if Instant::now() < end => {}
            Ok(Err(error)) if passes(&error) && Instant::now() + EVERY < end => sleep(EVERY).await,
            Ok(Err(error)) => return Err(ApiError::new(tried, why(&error))),
            Err(_) => {
                return Err(ApiError::new(tried, format!("no answer within {} s", deadline.as_secs_f32())));
            }
        }
    }
}

/// Is it about the way to the server, or about its moment, and not about what was asked?
fn passes(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        _ => false,
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

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_breaks_is_made_again_and_a_refusal_is_final() {
        let broken = || kube::Error::Service("reset".into());
        let mut left = 3;
        let value = insist("label", Duration::from_secs(9), || {
            left -= 1;
            let answer = if left == 0 { Ok(7) } else { Err(broken()) };
            async move { answer }
        });
        assert_eq!(value.await, Ok(7));
        let always = insist("label", Duration::from_secs(2), || async { Err::<(), _>(broken()) });
        assert!(always.await.unwrap_err().to_string().starts_with("label: "));
        let refused = insist("label", Duration::from_secs(9), || async {
            let status = kube::core::Status { code: 403, message: "no".into(), ..Default::default() };
            Err::<(), _>(kube::Error::Api(status.boxed()))
        });
        let began = Instant::now();
        assert_eq!(refused.await.unwrap_err().to_string(), "label: no");
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_ends_at_its_deadline() {
        let hang = std::future::pending::<kube::Result<()>>();
        let error = call("look", Duration::from_secs(2), hang).await.unwrap_err();
        assert_eq!(error.to_string(), "look: no answer within 2 s");
    }
}
