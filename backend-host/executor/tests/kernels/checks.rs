//! Kernels with a fault, each detected at its place, and the same kernels without the fault.

mod leaks;
mod memory;
mod order;
mod values;

use crate::units::{load_checked as load, pointer};
use host_executor::{
    Allocation, Checking, Checks, Error, FailureKind, Kernel, Library, Memory, Shape,
};
use std::ops::Range;
use std::sync::Arc;

/// The memory of a test: named arrays. The first one counts as freed if its name says so.
#[derive(Default)]
struct Arrays(Vec<(Range<usize>, &'static str)>);

impl Memory for Arrays {
    fn live(&self, address: usize) -> Option<Range<usize>> {
        let live = self.0.iter().filter(|(_, name)| *name != "freed");
        live.map(|(range, _)| range).find(|range| range.contains(&address)).cloned()
    }

    fn nearest(&self, address: usize) -> Option<Allocation> {
        let distance = |range: &Range<usize>| match address {
            _ if address < range.start => range.start - address,
            _ => address.saturating_sub(range.end - 1),
        };
        let (range, name) = self.0.iter().min_by_key(|(range, _)| distance(range))?;
        Some(Allocation {
            range: range.clone(),
            is_live: *name != "freed",
            description: format!("array {name}"),
        })
    }
}

/// All checks except races, which small test kernels contain.
const OTHERS: Checks = Checks { races: false, ..Checks::ALL };
/// All checks except uninitialised memory, for kernels that read and write the memory under test.
const ORDER: Checks = Checks { uninitialised: false, ..Checks::ALL };

/// Launches a kernel that takes an array and a number, and returns the finding.
fn run(
    library: &Arc<Library>,
    name: &str,
    (grid, block): (u32, u32),
    array: &mut [i32],
    number: i32,
    checks: Checks,
) -> Option<(FailureKind, String)> {
    let range = array.as_ptr_range();
    let memory = Arrays(vec![(range.start as usize..range.end as usize, "a")]);
    let checking = Checking { checks, memory: &memory, shared_bytes: 64 };
    let kernel = Kernel::find(library, name).expect("the kernel");
    let (mut address, mut number) = (array.as_mut_ptr(), number);
    let arguments = [pointer(&mut address), pointer(&mut number)];
    let shape = Shape { grid: [grid, 1, 1], block: [block, 1, 1], cooperative: false };
    // SAFETY: the tests' kernels take a pointer and a number.
    match unsafe { kernel.launch_checked(&shape, &checking, &arguments, &|| false) } {
        Ok(()) => None,
        Err(Error::Kernel(failure)) => Some((failure.kind, failure.message)),
        Err(other) => panic!("{other}"),
    }
}

/// Asserts that a fault of this kind is found, and that its message contains these texts.
#[track_caller]
fn found(result: Option<(FailureKind, String)>, kind: FailureKind, texts: &[&str]) {
    let (found, message) = result.expect("a fault");
    assert_eq!(found, kind, "{message}");
    for text in texts {
        assert!(message.contains(text), "{text:?} in {message}");
    }
}
