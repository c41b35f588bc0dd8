//! A wait is a named condition: what we wait for, how long, and what stood in the way last.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Short against everything that is waited for; a look costs the API server about a millisecond.
const EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{condition} not met within {} s: {last}", waited.as_secs())]
pub struct Unmet {
    pub condition: String,
    pub waited: Duration,
    pub last: String,
}

/// Asks `check` until it answers with a value. Its error is why it is not so yet.
pub async fn until<T, F>(
    condition: impl Into<String>,
    deadline: Duration,
    mut check: impl FnMut() -> F,
) -> Result<T, Unmet>
where
    F: Future<Output = Result<T, String>>,
{
    let condition = condition.into();
    let end = Instant::now() + deadline;
    let mut last = "no answer yet".to_owned();
    loop {
        match timeout_at(end, check()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(why)) if why != last => {
                tracing::debug!(condition, why, "not yet");
                last = why;
            }
            Ok(Err(_)) => {}
            Err(_) => return Err(Unmet { condition, waited: deadline, last }),
        }
        if Instant::now() + EVERY >= end {
            return Err(Unmet { condition, waited: deadline, last });
        }
        sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_asks_until_the_answer_is_there() {
        let mut left = 5;
        let start = Instant::now();
        let got = until("five", Duration::from_secs(9), || {
            left -= 1;
            let left = left;
            async move { if left == 0 { Ok("yes") } else { Err(format!("{left} left")) } }
        });
        assert_eq!(got.await, Ok("yes"));
        assert!(start.elapsed() >= 4 * EVERY);
    }

    #[tokio::test]
    async fn it_says_what_stood_in_the_way() {
        let unmet = until("dns", Duration::from_secs(1), || async { Err::<(), _>("0 of 1 pods".to_owned()) });
        assert_eq!(unmet.await.unwrap_err().to_string(), "dns not met within 1 s: 0 of 1 pods");
    }

    #[tokio::test]
    async fn a_check_that_hangs_does_not_outlast_the_deadline() {
        let start = Instant::now();
        let unmet = until("api", Duration::from_secs(1), std::future::pending::<Result<(), String>>);
        assert_eq!(unmet.await.unwrap_err().last, "no answer yet");
        let took = start.elapsed();
        assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(10), "{took:?}");
    }
}
