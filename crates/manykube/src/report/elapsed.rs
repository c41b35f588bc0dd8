//! Times as people read them.

use std::time::Duration;

pub fn human(elapsed: Duration) -> String {
    let s = elapsed.as_secs_f64();
    match s {
        _ if s < 1.0 => format!("{}ms", elapsed.as_millis()),
        _ if s < 60.0 => format!("{s:.1}s"),
        _ if s < 3600.0 => format!("{}m{:02}s", elapsed.as_secs() / 60, elapsed.as_secs() % 60),
        _ => format!("{}h{:02}m", elapsed.as_secs() / 3600, elapsed.as_secs() / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (ms, want) in
            [(7, "7ms"), (999, "999ms"), (1234, "1.2s"), (61_000, "1m01s"), (3_720_000, "1h02m")]
        {
            assert_eq!(human(Duration::from_millis(ms)), want);
        }
    }
}
