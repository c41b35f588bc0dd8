//! The Node objects of a cluster, looked at once for all who wait for one of them: thirty nodes that
//! come up at the same time must not ask the API server three hundred times a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::error::{ApiError, Patience};
use super::observe::{NodeSeen, observe_nodes};

/// Who asks within this time gets the same answer. Less than the pause between two looks of one who
/// waits, so that each of those is a new one.
const FRESH: Duration = Duration::from_millis(80);

pub type Seen = Arc<BTreeMap<String, NodeSeen>>;

pub struct Nodes {
    client: Client,
    patience: Patience,
    /// Held while somebody asks: the others wait for that answer.
    last: Mutex<Option<(Instant, Result<Seen, ApiError>)>>,
}

impl Nodes {
    pub fn new(client: Client) -> Nodes {
        Nodes { client, patience: Patience::default(), last: Mutex::default() }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// All nodes, by name.
    pub async fn look(&self) -> Result<Seen, ApiError> {
        let ask = || async {
            let answer = observe_nodes(&self.client, self.patience.get()).await;
            self.patience.learn(answer.is_ok());
            answer.map(Arc::new)
        };
        shared(&self.last, ask).await
    }
}

async fn shared<T: Clone, F: Future<Output = T>>(
    last: &Mutex<Option<(Instant, T)>>,
    ask: impl FnOnce() -> F,
) -> T {
    let mut last = last.lock().await;
    if let Some((at, answer)) = &*last
        && at.elapsed() < FRESH
    {
        return answer.clone();
    }
    let answer = ask().await;
    *last = Some((Instant::now(), answer.clone()));
    answer
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::future::join_all;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test]
    async fn many_who_wait_ask_once() {
        let (last, asked) = (Mutex::default(), Cell::new(0));
        let look = || {
            shared(&last, || async {
                asked.set(asked.get() + 1);
                sleep(Duration::from_millis(30)).await;
                asked.get()
            })
        };
        assert_eq!(join_all((0..30).map(|_| look())).await, [1; 30]);
        sleep(FRESH).await;
        assert_eq!(look().await, 2, "an old answer is none");
    }
}
