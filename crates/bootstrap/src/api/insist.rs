//! A call that is made again: a connection ends when its API server does, or when the virtual address
//! moves, and a server that has just come up may have no etcd yet.

use std::time::Duration;

use tokio::time::timeout;

use super::condition::until;
use super::error::{ApiError, why};

/// One try. A machine that boots others may take seconds to answer.
const TRY: Duration = Duration::from_secs(10);

/// Until the API agrees or refuses, or the deadline is over. What is asked for must bear to be done twice.
pub async fn insist<T, F>(
    tried: impl Into<String>,
    deadline: Duration,
    mut call: impl FnMut() -> F,
) -> Result<T, ApiError>
where
    F: Future<Output = kube::Result<T>>,
{
    let tried = tried.into();
    let done = until(tried.clone(), deadline, || {
        let call = timeout(TRY, call());
        async move {
            match call.await {
                Ok(Ok(value)) => Ok(Ok(value)),
                Ok(Err(error)) if is_refusal(&error) => Ok(Err(why(&error))),
                Ok(Err(error)) => Err(why(&error)),
                Err(_) => Err(format!("no answer within {} s", TRY.as_secs())),
            }
        }
    });
    match done.await {
        Ok(answer) => answer.map_err(|why| ApiError::new(tried, why)),
        Err(unmet) => Err(ApiError::new(tried, unmet.last)),
    }
}

/// It was understood, and the answer will not be another one next time, as after a conflict or where
/// there were too many at once.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && ![409, 429].contains(&status.code))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn answer(code: u16) -> kube::Result<()> {
        Err(kube::Error::Api(Box::new(Status::failure("no", "Reason").with_code(code))))
    }

    #[tokio::test]
    async fn what_may_pass_is_tried_again_and_a_refusal_is_not() {
        for (code, tries) in [(500, 3), (503, 3), (429, 3), (404, 1), (422, 1)] {
            let mut made = 0;
            let done = insist("look", Duration::from_secs(9), || {
                made += 1;
                let made = made;
                async move { if made == 3 { Ok(()) } else { answer(code) } }
            });
            assert_eq!(done.await.is_ok(), tries == 3, "{code}");
            assert_eq!(made, tries, "{code}");
        }
    }

    #[tokio::test]
    async fn it_ends_with_the_last_reason() {
        let error = insist("look", Duration::from_secs(1), || async { answer(500) }).await.unwrap_err();
        assert_eq!(error.to_string(), "look: no");
    }
}
