//! Progress of one component: failure is the default, success is said.

use std::time::Instant;

use super::{BuildEvent, Events};

/// A component being made.
pub struct Step<'a> {
    events: Events<'a>,
    component: &'static str,
    started: Instant,
    done: bool,
}

impl<'a> Step<'a> {
    pub fn begin(events: Events<'a>, component: &'static str) -> Step<'a> {
        events(BuildEvent::Started { component: component.to_owned() });
        Step { events, component, started: Instant::now(), done: false }
    }

    pub fn finish(mut self, cached: bool) {
        self.done = true;
        let (component, elapsed) = (self.component.to_owned(), self.started.elapsed());
        (self.events)(BuildEvent::Finished { component, elapsed, cached });
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        if !self.done {
            let (component, elapsed) = (self.component.to_owned(), self.started.elapsed());
            (self.events)(BuildEvent::Failed { component, elapsed });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn what_is_not_finished_has_failed() {
        let seen = Mutex::new(Vec::new());
        let note = |event| {
            seen.lock().unwrap().push(match event {
                BuildEvent::Started { component } => format!("started {component}"),
                BuildEvent::Finished { component, cached, .. } => format!("finished {component} {cached}"),
                BuildEvent::Failed { component, .. } => format!("failed {component}"),
                BuildEvent::Waiting => "waiting".into(),
            });
        };
        Step::begin(&note, "a").finish(true);
        drop(Step::begin(&note, "b"));
        assert_eq!(*seen.lock().unwrap(), ["started a", "finished a true", "started b", "failed b"]);
    }
}
