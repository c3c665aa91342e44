//! Loops over contiguous elements, compiled twice: for every processor of the target and for
//! those with AVX2, chosen when the program runs.
//!
//! Both variants come from one body and round alike: fused multiply-add stays off.

/// A loop over contiguous elements: value, arguments, a bit for each argument that is one
/// element repeated instead of `length` elements, length.
///
/// # Safety
/// The value and every argument that is not repeated must have `length` elements, repeated
/// ones one element; all aligned, the value disjoint from the arguments. A loop that may work
/// in place also takes the value's own elements as an argument, if the types are the same.
pub(super) type Loop = unsafe fn(*mut u8, &[*const u8; 4], u32, usize);

/// True if the AVX2 variants may be used.
#[inline]
pub(super) fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Defines a function that selects the variant of a loop for this processor. The loop's body
/// must be `#[inline(always)]`.
macro_rules! select_variant {
    ($(#[$doc:meta])* $select:ident<$($generic:ident: $bound:path),*>, $body:ident,
     $pointer:ty, ($($argument:ident: $type:ty),*)) => {
        $(#[$doc])*
        fn $select<$($generic: $bound),*>() -> $pointer {
            /// # Safety
            /// As for the body.
            unsafe fn baseline<$($generic: $bound),*>($($argument: $type),*) {
                // SAFETY: passed on to the caller.
                unsafe { $body::<$($generic),*>($($argument),*) }
            }

            /// # Safety
            /// As for the body, and the processor must have AVX2.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            unsafe fn avx2<$($generic: $bound),*>($($argument: $type),*) {
                // SAFETY: passed on to the caller.
                unsafe { $body::<$($generic),*>($($argument),*) }
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::kernels::vector::has_avx2() {
                return avx2::<$($generic),*>;
            }
            baseline::<$($generic),*>
        }
    };
}
pub(super) use select_variant;

/// The elements at an address.
///
/// # Safety
/// There must be `length` of them, aligned, not written while the slice lives.
#[inline(always)]
pub(super) unsafe fn elements<'a, T>(address: *const u8, length: usize) -> &'a [T] {
    // SAFETY: passed on to the caller.
    unsafe { std::slice::from_raw_parts(address.cast(), length) }
}

/// The places of elements to be written at an address.
///
/// # Safety
/// There must be `length` of them, aligned, not otherwise used while the slice lives.
#[inline(always)]
pub(super) unsafe fn places<'a, T>(
    address: *mut u8,
    length: usize,
) -> &'a mut [std::mem::MaybeUninit<T>] {
    // SAFETY: passed on to the caller.
    unsafe { std::slice::from_raw_parts_mut(address.cast(), length) }
}
