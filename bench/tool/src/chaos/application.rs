//! A Deployment behind a service, and a client that asks for it at one node after the other, as a load
//! balancer in front of the cluster would.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use system_tests::{Lab, eventually, http_get};

const PORT: u16 = 30_080;
const EVERY: Duration = Duration::from_millis(100);
const SOON: Duration = Duration::from_secs(120);
const NODES: u8 = 5;

fn manifest(image: &str) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: web }}
spec:
  replicas: 3
  selector: {{ matchLabels: {{ app: web }} }}
  template:
    metadata: {{ labels: {{ app: web }} }}
    spec:
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
        - {{ maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {{ matchLabels: {{ app: web }} }} }}
      containers:
        - name: web
          image: {image}
          command: [sh, -c, "echo served > /tmp/index.html; exec busybox httpd -f -p 8080 -h /tmp"]
          readinessProbe: {{ httpGet: {{ port: 8080 }}, periodSeconds: 1, failureThreshold: 2 }}
---
apiVersion: v1
kind: Service
metadata: {{ name: web }}
spec:
  type: NodePort
  selector: {{ app: web }}
  ports: [{{ port: 80, targetPort: 8080, nodePort: {PORT} }}]
"#
    )
}

pub struct Application {
    answers: Arc<Mutex<Answers>>,
    /// From here on it served.
    began: Instant,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Answers {
    served: Vec<Instant>,
    failed: usize,
}

impl Application {
    pub fn start(lab: &Lab) -> Application {
        lab.apply(&manifest(&lab.busybox()));
        lab.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]).ok();
        let (answers, stop) = (Arc::<Mutex<Answers>>::default(), Arc::<AtomicBool>::default());
        let (theirs, until) = (answers.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            for turn in (0..NODES).cycle() {
                if until.load(Ordering::Relaxed) {
                    return;
                }
                // Questions overlap: one that waits in vain must not delay the next.
                let answers = theirs.clone();
                std::thread::spawn(move || ask(turn, &answers));
                std::thread::sleep(EVERY);
            }
        });
        let mut application = Application { answers, began: Instant::now(), stop, thread: Some(thread) };
        application.calm(Duration::from_secs(1));
        application.began = Instant::now();
        application
    }

    /// Waits until it has answered nearly all questions of so long.
    pub fn calm(&self, time: Duration) {
        eventually("the application serves", SOON, || {
            let from = Instant::now().checked_sub(time).unwrap_or(self.began);
            let served = self.lock().served.iter().filter(|at| **at > from).count();
            let asked = usize::try_from(time.as_millis() / EVERY.as_millis()).unwrap_or(1);
            if served * 10 >= asked * 8 { Ok(()) } else { Err(format!("{served} of {asked}")) }
        });
    }

    pub fn summary(&self) -> String {
        let answers = self.lock();
        let (mut gap, mut last) = (Duration::ZERO, self.began);
        for at in answers.served.iter().copied().chain([Instant::now()]) {
            gap = gap.max(at.saturating_duration_since(last));
            last = last.max(at);
        }
        let (served, failed) = (answers.served.len(), answers.failed);
        format!(
            "application: longest unavailability {} ms, {served} requests served, {failed} failed",
            gap.as_millis()
        )
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Answers> {
        self.answers.lock().expect("no client panicked")
    }
}

fn ask(turn: u8, answers: &Mutex<Answers>) {
    let answer = http_get(&format!("192.168.49.{}:{PORT}", turn + 2));
    let mut answers = answers.lock().expect("no client panicked");
    match answer {
        Ok(text) if text.contains("served") => answers.served.push(Instant::now()),
        _ => answers.failed += 1,
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
