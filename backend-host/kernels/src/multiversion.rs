//! Loops over contiguous elements, compiled for several levels of the processor. The level is chosen at run
//! time.
//!
//! Arithmetic has two variants: one for every processor of the target, and one for AVX2. On x86, the former
//! is a loop over elements, and the latter a loop over blocks: see [`super::blocks`]. Comparisons and
//! conversions of floating-point numbers have a third variant for AVX-512. All variants round alike, because
//! fused multiply-add is disabled. Elementary functions require fused multiply-add, and have variants for
//! AVX2 and AVX-512, which also round alike.

/// A loop over contiguous elements. The arguments are the value, the arguments of the function, a bit for
/// each argument that is one repeated element instead of `length` elements, and the length.
///
/// # Safety
/// The value and every argument that is not repeated must have `length` elements, and repeated arguments one
/// element. All must be aligned, and the value must not overlap the arguments. A loop that can work in place
/// also accepts the value itself as an argument, if the types are the same.
pub(super) type Loop = unsafe fn(*mut u8, &[*const u8; 4], u32, usize);

/// Returns true if the AVX2 variants can be used.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Defines a function that selects the variant of a loop for this processor. The loop's body must be
/// `#[inline(always)]`. Loops with hundreds of instances name a compact loop (`or`), which x86 processors
/// without AVX2 run instead.
macro_rules! select_variant {
    ($(#[$doc:meta])* $select:ident<$($generic:ident: $bound:path),*>, $body:ident,
     $pointer:ty, ($($argument:ident: $type:ty),*)) => {
        $(#[$doc])*
        fn $select<$($generic: $bound),*>() -> $pointer {
            /// # Safety
            /// The same as for the body.
            unsafe fn baseline<$($generic: $bound),*>($($argument: $type),*) {
                // SAFETY: passed on to the caller.
                unsafe { $body::<$($generic),*>($($argument),*) }
            }

            /// # Safety
            /// The same as for the body; the processor must have AVX2.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            unsafe fn avx2<$($generic: $bound),*>($($argument: $type),*) {
                // SAFETY: passed on to the caller.
                unsafe { $body::<$($generic),*>($($argument),*) }
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::multiversion::has_avx2() {
                return avx2::<$($generic),*>;
            }
            baseline::<$($generic),*>
        }
    };
}
pub(super) use select_variant;

/// Returns true if the AVX-512 variants can be used.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected;
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

/// Like [`select_variant`], with a variant for AVX-512. This is for loops that older processors lack
/// instructions for: their values are narrower than their arguments, or result from conditions.
macro_rules! select_masked {
    ($(#[$doc:meta])* $select:ident<$($generic:ident: $bound:path),*>, $body:ident, $narrower:ident,
     $pointer:ty, ($($argument:ident: $type:ty),*)) => {
        $(#[$doc])*
        fn $select<$($generic: $bound),*>() -> $pointer {
            /// # Safety
            /// The same as for the body; the processor must have the named features.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn avx512<$($generic: $bound),*>($($argument: $type),*) {
                // SAFETY: passed on to the caller.
                unsafe { $body::<$($generic),*>($($argument),*) }
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::multiversion::has_avx512() {
                return avx512::<$($generic),*>;
            }
            $narrower::<$($generic),*>()
        }
    };
}
pub(super) use select_masked;

/// Defines a function that selects the variant of a loop over blocks for this processor. It returns `None` on
/// x86 processors without AVX2, where the loop over elements is nearly as fast. The loop's body must be
/// `#[inline(always)]`. A `masked` loop has a variant for AVX-512; older processors lack instructions for its
/// values, which are narrower than their arguments or result from conditions.
macro_rules! select_blocks {
    ($select:ident<$($generic:ident: $bound:path),*>, $body:ident) => {
        fn $select<$($generic: $bound),*>() -> Option<$crate::multiversion::Loop> {
            /// # Safety
            /// The same as for the body; the processor must have AVX2.
            #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
            unsafe fn usual<$($generic: $bound),*>(
                value: *mut u8,
                arguments: &[*const u8; 4],
                repeated: u32,
                blocks: usize,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { $body::<$($generic),*>(value, arguments, repeated, blocks) }
            }

            #[cfg(target_arch = "x86_64")]
            if !$crate::multiversion::has_avx2() {
                return None;
            }
            Some(usual::<$($generic),*>)
        }
    };
    ($select:ident<$($generic:ident: $bound:path),*>, $body:ident, masked $narrower:ident) => {
        fn $select<$($generic: $bound),*>() -> Option<$crate::multiversion::Loop> {
            /// # Safety
            /// The same as for the body; the processor must have the named features.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn avx512<$($generic: $bound),*>(
                value: *mut u8,
                arguments: &[*const u8; 4],
                repeated: u32,
                blocks: usize,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { $body::<$($generic),*>(value, arguments, repeated, blocks) }
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::multiversion::has_avx512() {
                return Some(avx512::<$($generic),*>);
            }
            $narrower::<$($generic),*>()
        }
    };
}
pub(super) use select_blocks;

/// The processor's level for loops that require fused multiply-add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fused {
    /// The target's baseline is sufficient.
    #[cfg(not(target_arch = "x86_64"))]
    Baseline,
    /// 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Returns the widest variant with fused multiply-add. Returns `None` if a fused multiply-add would be a
/// function call.
#[inline]
pub(super) fn fused() -> Option<Fused> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected;
        if !(has_avx2() && is_x86_feature_detected!("fma")) {
            None
        } else if has_avx512() {
            Some(Fused::Avx512)
        } else {
            Some(Fused::Avx2)
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        cfg!(target_arch = "aarch64").then_some(Fused::Baseline)
    }
}

/// Defines a function that selects the variant of a loop that requires fused multiply-add, if this processor
/// supports it. The loop's body must be `#[inline(always)]`.
macro_rules! select_fused {
    ($(#[$doc:meta])* $select:ident<$($generic:ident: $bound:path),*>, $body:ident,
     $pointer:ty, ($($argument:ident: $type:ty),*)) => {
        $(#[$doc])*
        fn $select<$($generic: $bound),*>() -> Option<$pointer> {
            /// # Safety
            /// The same as for the body.
            #[cfg(not(target_arch = "x86_64"))]
            unsafe fn baseline<$($generic: $bound),*>($($argument: $type),*) {
                // SAFETY: passed on to the caller.
                unsafe { $body::<$($generic),*>($($argument),*) }
            }

            /// # Safety
            /// The same as for the body; the processor must have AVX2 and FMA.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2<$($generic: $bound),*>($($argument: $type),*) {
                // SAFETY: passed on to the caller.
                unsafe { $body::<$($generic),*>($($argument),*) }
            }

            /// # Safety
            /// The same as for the body; the processor must have the named features.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
            unsafe fn avx512<$($generic: $bound),*>($($argument: $type),*) {
                // SAFETY: passed on to the caller.
                unsafe { $body::<$($generic),*>($($argument),*) }
            }

            Some(match $crate::multiversion::fused()? {
                #[cfg(not(target_arch = "x86_64"))]
                $crate::multiversion::Fused::Baseline => baseline::<$($generic),*>,
                #[cfg(target_arch = "x86_64")]
                $crate::multiversion::Fused::Avx2 => avx2::<$($generic),*>,
                #[cfg(target_arch = "x86_64")]
                $crate::multiversion::Fused::Avx512 => avx512::<$($generic),*>,
            })
        }
    };
}
pub(super) use select_fused;

/// Returns the elements at an address.
///
/// # Safety
/// There must be `length` aligned elements, which are not written while the slice lives.
#[inline(always)]
pub(super) unsafe fn elements<'a, T>(address: *const u8, length: usize) -> &'a [T] {
    // SAFETY: passed on to the caller.
    unsafe { std::slice::from_raw_parts(address.cast(), length) }
}

/// Returns the places of elements to be written at an address.
///
/// # Safety
/// There must be `length` aligned elements, which are not used otherwise while the slice lives.
#[inline(always)]
pub(super) unsafe fn places<'a, T>(
    address: *mut u8,
    length: usize,
) -> &'a mut [std::mem::MaybeUninit<T>] {
    // SAFETY: passed on to the caller.
    unsafe { std::slice::from_raw_parts_mut(address.cast(), length) }
}

/// Returns the places for the values of a loop over two arguments, and the elements of both. A repeated
/// argument has one element.
///
/// # Safety
/// See [`Loop`]; the value must not overlap the arguments.
#[inline(always)]
pub(super) unsafe fn operands<'a, X, Y, V>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) -> (&'a mut [std::mem::MaybeUninit<V>], &'a [X], &'a [Y]) {
    let given = |argument: u32| if repeated >> argument & 1 == 0 { length } else { 1 };
    // SAFETY: passed on to the caller.
    unsafe {
        (
            places::<V>(value, length),
            elements::<X>(arguments[0], given(0)),
            elements::<Y>(arguments[1], given(1)),
        )
    }
}
