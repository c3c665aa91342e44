//! Faults in instructions, which launches with checks detect.

use crate::units::{load_checked, pointer, shape};
use host_executor::{Allocation, Checking, Checks, Error, FailureKind, Kernel, Memory};
use std::ops::Range;

/// A single array.
struct Array(Range<usize>);

impl Memory for Array {
    fn live(&self, address: usize) -> Option<Range<usize>> {
        self.0.contains(&address).then(|| self.0.clone())
    }

    fn nearest(&self, _: usize) -> Option<Allocation> {
        Some(Allocation { range: self.0.clone(), is_live: true, description: "array a".to_owned() })
    }
}

/// Returns the fault that is found in a kernel `k` with 64 numbers, in a block of 64 threads.
fn found(body: &str) -> Option<(FailureKind, String)> {
    let text = format!("extern \"C\" __global__ void k(int *a, int n) {{\n{body}\n}}\n");
    let library = load_checked(&text);
    let mut array = vec![0_i32; 64];
    let range = array.as_ptr_range();
    let memory = Array(range.start as usize..range.end as usize);
    let checks = Checks { uninitialised: false, ..Checks::ALL };
    let checking = Checking { checks, memory: &memory, shared_bytes: 64 };
    let kernel = Kernel::find(&library, "k").expect("the kernel");
    let (mut address, mut count) = (array.as_mut_ptr(), 64_i32);
    let arguments = [pointer(&mut address), pointer(&mut count)];
    // SAFETY: the kernel takes a pointer and a number, and is checked before any other access.
    match unsafe { kernel.launch_checked(&shape(1, 64), &checking, &arguments, &|| false) } {
        Ok(()) => None,
        Err(Error::Kernel(failure)) => Some((failure.kind, failure.message)),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn faults_are_found_at_the_line_of_the_instruction() {
    let prefix = "asm volatile(\"{ .reg .u32 t;\\n\"\n";
    let table = [
        (
            "\"mov.u32 t, 1;\\n\"\n\"st.global.u32 [%0+4], t; }\" :: \"l\"(a + threadIdx.x));",
            FailureKind::Address,
            "writes 4 bytes outside any live allocation in kernel.cu:4",
        ),
        (
            "\"ld.global.v2.u32 {t, t}, [%0]; }\" :: \"l\"(a + threadIdx.x));",
            FailureKind::Address,
            "kernel.cu:3",
        ),
        (
            "\"ld.volatile.global.u32 t, [%0+256]; }\" :: \"l\"(a));",
            FailureKind::Address,
            "reads 4 bytes outside any live allocation in kernel.cu:3",
        ),
        (
            "\"atom.global.add.u32 t, [%0], 1; }\" :: \"l\"(a + 2 * threadIdx.x));",
            FailureKind::Address,
            "bytes outside any live allocation in kernel.cu:3",
        ),
        (
            "\"st.global.u32 [%0], 1; }\" :: \"l\"(a + threadIdx.x / 2));",
            FailureKind::Race,
            "in kernel.cu:3",
        ),
    ];
    for (body, kind, message) in table {
        let found = found(&format!("{prefix}{body}")).expect("a fault");
        assert!(found.0 == kind && found.1.contains(message), "{body}: {found:?}");
    }
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let body = r#"
    __shared__ unsigned s[64];
    unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x), value;
    asm volatile("st.shared.u32 [%0], %1;" :: "r"(at), "r"(threadIdx.x) : "memory");
    asm volatile("bar.sync 0;" ::: "memory");
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"((unsigned)__cvta_generic_to_shared(s + 63 - threadIdx.x)));
    asm volatile("add.cc.u32 %0, %0, %1;" : "+r"(value) : "r"(~0u));
    asm volatile("addc.u32 %0, %0, 0;" : "+r"(value));
    asm volatile("red.global.add.u32 [%0], %1;" :: "l"(a), "r"(value) : "memory");
"#;
    assert_eq!(found(body), None);
}
