//! Casts from floating-point numbers to integers.

use gpuarray_host_kernels::loops::Saturate;

#[test]
fn every_kind_of_number_becomes_what_rust_makes_of_it() {
    let edges = [0.0, 0.5, 0.999, 1.0, 127.9, 255.5, 65_536.25, 1e9, 1e15, f64::INFINITY];
    let powers = (0..70).flat_map(|bit| {
        let power = (2f64).powi(bit);
        [power, power.next_down(), power.next_up(), power - 0.5, power + 0.5]
    });
    for value in edges.into_iter().chain(powers).flat_map(|value| [value, -value]) {
        check(value);
    }
    check(f64::NAN);
}

fn check(value: f64) {
    let wrapped = |value: f64| if value < 0.0 { value as i64 as u64 } else { value as u64 };
    assert_eq!(Saturate::<i32>::saturate(value), value as i32, "{value}");
    assert_eq!(Saturate::<i64>::saturate(value), value as i64, "{value}");
    assert_eq!(Saturate::<u64>::saturate(value), wrapped(value), "{value}");
    let single = value as f32;
    assert_eq!(Saturate::<i32>::saturate(single), single as i32, "{single}");
    assert_eq!(Saturate::<i64>::saturate(single), single as i64, "{single}");
    assert_eq!(Saturate::<u64>::saturate(single), wrapped(single.into()), "{single}");
}
