//! Packets that come late. They are held back on their way out only, for twice as long: to the other end and back it
//! takes as long as if each way were slow.

use anyhow::Result;
use model::injected::Slowness;

use super::output;
use crate::network::LINK;

const TC: &str = "/usr/sbin/tc";

/// `false` where the kernel cannot do that.
pub fn set(slowness: Slowness) -> Result<bool> {
    if slowness.delay_us == 0 {
        // A kernel that cannot list any has none to remove.
        let has = output(TC, &["qdisc", "show", "dev", LINK, "root"], "").is_ok_and(|q| q.contains("netem"));
        if has {
            output(TC, &["qdisc", "del", "dev", LINK, "root"], "")?;
        }
        return Ok(true);
    }
    let words = netem(slowness);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match output(TC, &words, "") {
        Err(e) if e.to_string().contains("qdisc kind is unknown") => Ok(false),
        done => done.map(|_| true),
    }
}

pub fn netem(slowness: Slowness) -> Vec<String> {
    let line = ["qdisc", "replace", "dev", LINK, "root", "netem", "limit", "10000", "delay"];
    let times = [slowness.delay_us, slowness.jitter_us].into_iter().filter(|us| *us > 0);
    let times = times.map(|us| format!("{}us", u64::from(us) * 2));
    line.into_iter().map(str::to_owned).chain(times).collect()
}
