//! Bodies of loops, which write the values of a function of elements.

#[cfg(doc)]
use super::blocks::Blocks;
use super::blocks::{Buffer, count};
#[cfg(doc)]
use super::multiversion::Loop;
use super::multiversion::{elements, places};
use std::mem::MaybeUninit;

/// Defines the bodies of loops that write the values of a function of elements. For each number of arguments,
/// there is one for loops over blocks and one for loops over elements.
macro_rules! bodies {
    ($($map:ident $step:ident: $($index:literal $x:ident $X:ident),*;)*) => {
        $(
            /// The body of a loop over blocks.
            ///
            /// # Safety
            /// See [`Blocks`]; the elements must be of the types of the function.
            #[inline(always)]
            pub(super) unsafe fn $map<$($X: Copy,)* V: Copy>(
                value: *mut u8,
                arguments: &[*const u8; 4],
                repeated: u32,
                blocks: usize,
                apply: impl Fn($($X),*) -> V,
            ) {
                let count = const { count(&[size_of::<V>(), $(size_of::<$X>()),*]) };
                let step = |argument: u32| if repeated >> argument & 1 == 0 { count } else { 0 };
                $(let mut $x = (arguments[$index].cast::<$X>(), step($index));)*
                let mut value = value.cast::<V>();
                for _ in 0..blocks {
                    // Copies that the compiler keeps in registers.
                    let mut values = Buffer::EMPTY;
                    let to = values.0.as_mut_ptr().cast::<V>();
                    // SAFETY: passed on to the caller: a block of each operand; the last steps stop after the
                    // last elements.
                    unsafe {
                        $(
                            let mut buffer = Buffer::EMPTY;
                            $x.0.copy_to_nonoverlapping(buffer.0.as_mut_ptr().cast(), count);
                            $x.0 = $x.0.add($x.1);
                            let $x = buffer.0.as_ptr().cast::<$X>();
                        )*
                        for index in 0..count {
                            to.add(index).write(apply($($x.add(index).read()),*));
                        }
                        value.copy_from_nonoverlapping(to, count);
                        value = value.add(count);
                    }
                }
            }

            /// The body of a loop over elements, for all combinations of repeated arguments.
            ///
            /// # Safety
            /// See [`Loop`]; the elements must be of the types of the function.
            #[inline(always)]
            pub(super) unsafe fn $step<$($X: Copy,)* V>(
                value: *mut u8,
                arguments: &[*const u8; 4],
                repeated: u32,
                length: usize,
                apply: impl Fn($($X),*) -> V,
            ) {
                let step = |argument: u32| usize::from(repeated >> argument & 1 == 0);
                $(let mut $x = (arguments[$index].cast::<$X>(), step($index));)*
                let mut value = value.cast::<V>();
                for _ in 0..length {
                    // SAFETY: passed on to the caller; elements are read before they are overwritten, and the
                    // last steps stop after the last elements.
                    unsafe {
                        value.write(apply($($x.0.read()),*));
                        value = value.add(1);
                        $($x.0 = $x.0.add($x.1);)*
                    }
                }
            }
        )*
    };
}

bodies! {
    map_single step_single: 0 x X;
    map_pairs step_pairs: 0 x X, 1 y Y;
    map_triples step_triples: 0 x X, 1 y Y, 2 z Z;
    map_quadruples step_quadruples: 0 x X, 1 y Y, 2 z Z, 3 w W;
}

/// The body of a loop over an array.
///
/// # Safety
/// See [`Loop`]; the elements must have the types of the function. The argument must not be repeated, and
/// must not overlap the value.
#[inline(always)]
pub(super) unsafe fn zip_single<X: Copy, V: Copy>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    length: usize,
    apply: impl Fn(X) -> V,
) {
    // As function arguments, the slices are known not to overlap.
    #[inline(always)]
    fn zip<X: Copy, V: Copy>(value: &mut [MaybeUninit<V>], x: &[X], apply: impl Fn(X) -> V) {
        for (value, &x) in value.iter_mut().zip(x) {
            value.write(apply(x));
        }
    }
    // SAFETY: passed on to the caller.
    unsafe { zip(places(value, length), elements(arguments[0], length), apply) }
}

/// The same for two arguments.
///
/// # Safety
/// See [`zip_single`].
#[inline(always)]
pub(super) unsafe fn zip_pairs<X: Copy, Y: Copy, V: Copy>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    length: usize,
    apply: impl Fn(X, Y) -> V,
) {
    #[inline(always)]
    fn zip<X: Copy, Y: Copy, V: Copy>(
        value: &mut [MaybeUninit<V>],
        x: &[X],
        y: &[Y],
        apply: impl Fn(X, Y) -> V,
    ) {
        for ((value, &x), &y) in value.iter_mut().zip(x).zip(y) {
            value.write(apply(x, y));
        }
    }
    // SAFETY: passed on to the caller.
    unsafe {
        let (x, y) = (elements(arguments[0], length), elements(arguments[1], length));
        zip(places(value, length), x, y, apply);
    }
}

/// Like [`map_pairs`], with a separate loop for each repeated argument, which the compiler knows to be a
/// single number.
///
/// # Safety
/// See [`map_pairs`].
#[inline(always)]
pub(super) unsafe fn map_numbers<X: Copy, Y: Copy, V: Copy>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    blocks: usize,
    apply: impl Fn(X, Y) -> V,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        if repeated & 3 == 1 {
            let number = arguments[0].cast::<X>().read();
            map_single(value, &[arguments[1]; 4], 0, blocks, |y| apply(number, y));
        } else if repeated & 3 == 2 {
            let number = arguments[1].cast::<Y>().read();
            map_single(value, arguments, 0, blocks, |x| apply(x, number));
        } else {
            map_pairs(value, arguments, repeated, blocks, apply);
        }
    }
}
