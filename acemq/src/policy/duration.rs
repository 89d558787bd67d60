//! The one grammar for durations: a whole number and a unit.

use std::time::Duration;

/// The longest wait that a broker keeps, ten years, in milliseconds: `x-message-ttl` takes no more.
pub const LONGEST_WAIT_MS: u64 = 315_360_000_000;

/// Reads a duration such as `"500ms"`, `"30s"`, `"5m"`, `"6h"` or `"1d"`.
///
/// # Errors
/// When the text is not a whole number and one of these units, or is longer than 2⁶⁴ milliseconds.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// assert_eq!(acemq::policy::try_duration("5m"), Ok(Duration::from_secs(300)));
/// assert!(acemq::policy::try_duration("5 minutes").is_err());
/// ```
pub const fn try_duration(text: &str) -> Result<Duration, DurationError> {
    let mut bytes = text.as_bytes();
    let mut number: u64 = 0;
    let mut digits = 0usize;
    while let [digit @ b'0'..=b'9', rest @ ..] = bytes {
        let Some(tenfold) = number.checked_mul(10) else {
            return Err(DurationError::TooLong);
        };
        #[allow(clippy::cast_lossless)] // `From` is not const
        let Some(next) = tenfold.checked_add((*digit - b'0') as u64) else {
            return Err(DurationError::TooLong);
        };
        number = next;
        digits += 1;
        bytes = rest;
    }
    if digits == 0 {
        return Err(DurationError::Malformed);
    }
    let unit: u64 = match bytes {
        b"ms" => 1,
        b"s" => 1_000,
        b"m" => 60_000,
        b"h" => 3_600_000,
        b"d" => 86_400_000,
        _ => return Err(DurationError::Malformed),
    };
    match number.checked_mul(unit) {
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
        None => Err(DurationError::TooLong),
    }
}

/// Reads a duration in a constant; see [`try_duration`].
///
/// # Panics
/// When the text is not a duration; in a constant that is a compile error.
#[must_use]
#[track_caller]
pub const fn duration(text: &str) -> Duration {
    match try_duration(text) {
        Ok(duration) => duration,
        #[allow(clippy::panic)] // what a constant reports is a compile error
        Err(error) => panic!("{}", error.message()),
    }
}

/// Why a text is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DurationError {
    /// It is not a whole number and a unit.
    Malformed,
    /// It does not fit into 64 bits of milliseconds.
    TooLong,
}

impl DurationError {
    /// The sentence for a person.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Malformed => {
                r#"not a duration: write a whole number and a unit, such as "500ms", "30s", "5m", "6h" or "1d""#
            }
            Self::TooLong => "this duration is too long: no wait is longer than ten years",
        }
    }
}

impl std::fmt::Display for DurationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for DurationError {}

/// Whole milliseconds, saturating; what is under a millisecond is cut.
#[must_use]
pub const fn millis(duration: Duration) -> u64 {
    let milliseconds = duration.as_millis();
    if milliseconds > u64::MAX as u128 {
        u64::MAX
    } else {
        #[allow(clippy::cast_possible_truncation)] // compared just above
        let milliseconds = milliseconds as u64;
        milliseconds
    }
}

/// Writes a duration as queue names do: in the largest unit that divides it evenly, such as `2h`, `90s` or `1500ms`.
#[must_use]
pub fn render(duration: Duration) -> String {
    let milliseconds = millis(duration);
    for (unit, name) in [(3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if milliseconds > 0 && milliseconds.is_multiple_of(unit) {
            return format!("{}{name}", milliseconds / unit);
        }
    }
    format!("{milliseconds}ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_nothing_else() {
        for (text, expected) in [
            ("0ms", Ok(0)),
            ("500ms", Ok(500)),
            ("30s", Ok(30_000)),
            ("5m", Ok(300_000)),
            ("6h", Ok(21_600_000)),
            ("1d", Ok(86_400_000)),
            ("", Err(DurationError::Malformed)),
            ("s", Err(DurationError::Malformed)),
            ("5", Err(DurationError::Malformed)),
            ("5 s", Err(DurationError::Malformed)),
            ("-5s", Err(DurationError::Malformed)),
            ("1.5s", Err(DurationError::Malformed)),
            ("1m30s", Err(DurationError::Malformed)),
            ("5S", Err(DurationError::Malformed)),
            ("99999999999999999999s", Err(DurationError::TooLong)),
            ("18446744073709551615d", Err(DurationError::TooLong)),
        ] {
            assert_eq!(try_duration(text), expected.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn a_delay_is_named_by_the_largest_unit_that_divides_it() {
        for (milliseconds, name) in [
            (0, "0ms"),
            (500, "500ms"),
            (1_000, "1s"),
            (45_500, "45500ms"),
            (60_000, "1m"),
            (90_000, "90s"),
            (160_000, "160s"),
            (3_600_000, "1h"),
            (5_400_000, "90m"),
            (86_400_000, "24h"),
        ] {
            assert_eq!(render(Duration::from_millis(milliseconds)), name);
        }
    }
}
