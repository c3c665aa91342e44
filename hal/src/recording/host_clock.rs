//! The host's clock.
//!
//! If the system's clock is the processor's time stamp counter, this module reads the counter itself, which is faster.
//! Its rate is measured when the first session begins, and again when a session ends ([`correction`]).

use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time for which the counter's rate is first measured.
const MEASURED: Duration = Duration::from_micros(200);

struct Clock {
    begun: Instant,
    /// The counter at the beginning, and the nanoseconds of 2³² ticks; `None` if the system has another clock.
    counter: Option<(u64, u64)>,
}

static CLOCK: OnceLock<Clock> = OnceLock::new();

/// Returns the time stamp counter; 0 on other processors than x86-64.
#[inline]
fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    return 0;
}

impl Clock {
    fn new() -> Clock {
        const SYSTEM: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let (begun, first) = (Instant::now(), counter());
        let is_counter =
            first != 0 && fs::read_to_string(SYSTEM).is_ok_and(|it| it.trim() == "tsc");
        let counter = is_counter.then(|| {
            while begun.elapsed() < MEASURED {}
            let (passed, ticks) = (begun.elapsed().as_nanos(), counter().saturating_sub(first));
            (first, ((passed << 32) / u128::from(ticks.max(1))) as u64)
        });
        Clock { begun, counter }
    }
}

/// Returns the nanoseconds since the process first recorded something, before [`correction`].
#[inline]
pub(super) fn now() -> u64 {
    let clock = CLOCK.get_or_init(Clock::new);
    match clock.counter {
        Some((first, scale)) => {
            let ticks = counter().saturating_sub(first);
            ((u128::from(ticks) * u128::from(scale)) >> 32) as u64
        }
        None => clock.begun.elapsed().as_nanos() as u64,
    }
}

/// Returns the factor that makes nanoseconds of the times of [`now`] until now.
pub(super) fn correction() -> f64 {
    let clock = CLOCK.get_or_init(Clock::new);
    let passed = |_| clock.begun.elapsed().as_nanos() as f64 / now().max(1) as f64;
    clock.counter.map_or(1.0, passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    #[test]
    fn it_passes_as_the_systems_clock() {
        now();
        let outer = Instant::now();
        let begin = now();
        let inner = Instant::now();
        sleep(Duration::from_millis(5));
        let inner = inner.elapsed().as_nanos() as f64;
        let end = now();
        let outer = outer.elapsed().as_nanos() as f64;
        let passed = (end - begin) as f64 * correction();
        assert!(inner * 0.999 <= passed && passed <= outer * 1.001, "{inner} {passed} {outer}");
    }
}
