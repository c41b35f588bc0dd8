//! Values as Go's flag library reads them.

use std::time::Duration;

pub fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("not a boolean: give true or false".into()),
    }
}

/// `6m`, `1h30m`, `90s`, `1.5h`, `300ms`, `26280h0m0s`, `0`.
pub fn go_duration(text: &str) -> Result<Duration, String> {
    let bad = || "not a duration: give one like 90s, 6m or 1h30m".to_owned();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let (number, tail) = rest.split_at(digits);
        let unit = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let factor = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(bad()),
        };
        seconds += number.parse::<f64>().map_err(|_| bad())? * factor;
        rest = tail;
    }
    if text.is_empty() {
        return Err(bad());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations() {
        for (text, seconds) in [
            ("6m", 360.0),
            ("1h30m", 5400.0),
            ("90s", 90.0),
            ("1.5h", 5400.0),
            ("26280h0m0s", 94_608_000.0),
            ("0", 0.0),
        ] {
            assert_eq!(go_duration(text).map(|d| d.as_secs_f64()), Ok(seconds), "{text}");
        }
        assert_eq!(go_duration("300ms"), Ok(Duration::from_millis(300)));
        for bad in ["", "6", "m", "6x", "-1s", "6 m", "1..2s", "99999999999999999999h"] {
            assert!(go_duration(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_duration_or_refused(text in "[0-9hms.u -]{0,12}") {
            let _ = go_duration(&text);
        }

        #[test]
        fn whole_parts_add_up(h in 0u64..1000, m in 0u64..60, s in 0u64..60) {
            prop_assert_eq!(go_duration(&format!("{h}h{m}m{s}s")), Ok(Duration::from_secs(h * 3600 + m * 60 + s)));
        }
    }
}
