//! Checks layouts against a model that lists the address of every element.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use hal::operation::Strides;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashSet;

/// Returns the address of every element, the last axis fastest.
fn addresses(layout: &Layout) -> Vec<isize> {
    let mut all = vec![layout.offset() as isize];
    for (&extent, &stride) in layout.shape().iter().zip(layout.strides()) {
        all = all
            .into_iter()
            .flat_map(|start| (0..extent as isize).map(move |i| start + i * stride))
            .collect();
    }
    all
}

/// Returns every byte of every element.
fn bytes(layout: &Layout) -> Vec<isize> {
    let size = layout.itemsize() as isize;
    addresses(layout).into_iter().flat_map(|address| address..address + size).collect()
}

/// Generates small layouts: with negative strides, zero strides, overlapping elements, no elements.
fn any_layout() -> impl Strategy<Value = Layout> {
    let axis = (prop_oneof![4 => 1usize..5, 1 => Just(0)], prop_oneof![-24isize..25, Just(0)]);
    (vec(axis, 0..4), 0usize..32, 1usize..9).prop_map(|(axes, extra, itemsize)| {
        let (shape, strides): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
        let reach =
            |(&n, &s): (&usize, &isize)| (s.min(0) * (n.max(1) as isize - 1)).unsigned_abs();
        let below: usize = shape.iter().zip(&strides).map(reach).sum();
        Layout::with_strides(&shape, &strides, below + extra, itemsize).unwrap()
    })
}

/// Generates layouts that views can have: a contiguous one, sliced and with its axes in any order.
fn view_layout() -> impl Strategy<Value = Layout> {
    (vec(1usize..6, 0..4), vec(any_slice(), 4), any::<bool>(), 1usize..9).prop_flat_map(
        |(shape, slices, fortran, itemsize)| {
            let order = if fortran { Order::F } else { Order::C };
            let items: Vec<_> =
                slices.into_iter().take(shape.len()).map(IndexItem::Slice).collect();
            let whole = Layout::contiguous(&shape, itemsize, order).unwrap();
            let view = whole.index(&items).unwrap();
            let axes: Vec<usize> = (0..shape.len()).collect();
            Just(axes).prop_shuffle().prop_map(move |axes| view.permute(&axes).unwrap())
        },
    )
}

fn any_slice() -> impl Strategy<Value = SliceBounds> {
    let bound = || proptest::option::of(prop_oneof![8 => -7isize..8, 1 => any::<isize>()]);
    let step = prop_oneof![
        4 => Just(None),
        4 => (-3isize..4).prop_filter("a step is not zero", |s| *s != 0).prop_map(Some),
        1 => prop_oneof![Just(isize::MIN), Just(isize::MAX)].prop_map(Some),
    ];
    (bound(), bound(), step).prop_map(|(start, stop, step)| SliceBounds { start, stop, step })
}

/// Returns the indices that Python's slice selects, by walking.
fn picked(bounds: SliceBounds, extent: usize) -> Vec<i128> {
    let (n, step) = (extent as i128, bounds.step.unwrap_or(1) as i128);
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let place = |bound: Option<isize>, default: i128| {
        bound.map_or(default, |bound| {
            let bound = bound as i128;
            (if bound < 0 { bound + n } else { bound }).clamp(low, high)
        })
    };
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    let (mut at, stop) = (place(bounds.start, first), place(bounds.stop, last));
    let mut all = Vec::new();
    while if step > 0 { at < stop } else { at > stop } {
        all.push(at);
        at += step;
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_extent_is_that_of_the_elements(layout in any_layout()) {
        let all = bytes(&layout);
        let extent = layout.extent();
        prop_assert_eq!(layout.size(), addresses(&layout).len());
        prop_assert_eq!(layout.nbytes(), all.len());
        match (all.iter().min(), all.iter().max()) {
            (Some(&low), Some(&high)) => {
                prop_assert_eq!(extent.clone(), low as usize..high as usize + 1);
                prop_assert!(layout.check_within(extent.end).is_ok());
                prop_assert!(layout.check_within(extent.end - 1).is_err());
            }
            _ => {
                prop_assert!(extent.is_empty());
                prop_assert!(layout.check_within(0).is_ok());
            }
        }
    }

    #[test]
    fn elements_below_the_memory_are_refused(layout in any_layout()) {
        let low = addresses(&layout).into_iter().min().unwrap_or(0);
        let offset = layout.offset();
        if layout.size() == 0 {
            return Ok(());
        }
        let lower = offset - low as usize;
        if lower == 0 {
            return Ok(());
        }
        let (shape, strides) = (layout.shape(), layout.strides());
        prop_assert!(Layout::with_strides(shape, strides, lower, layout.itemsize()).is_ok());
        prop_assert!(Layout::with_strides(shape, strides, lower - 1, layout.itemsize()).is_err());
    }

    #[test]
    fn slices_pick_what_python_picks(layout in any_layout(), slices in vec(any_slice(), 3)) {
        let items: Vec<_> = slices.into_iter().take(layout.ndim()).collect();
        let view = layout
            .index(&items.iter().copied().map(IndexItem::Slice).collect::<Vec<_>>())
            .unwrap();
        let mut expected = vec![layout.offset() as isize];
        for (axis, bounds) in items.iter().enumerate() {
            let indices = picked(*bounds, layout.shape()[axis]);
            prop_assert_eq!(view.shape()[axis], indices.len());
            expected = expected
                .into_iter()
                .flat_map(|start| {
                    let stride = layout.strides()[axis];
                    indices.iter().map(move |&index| start + index as isize * stride)
                })
                .collect();
        }
        prop_assert_eq!(addresses(&view), expected);
    }

    #[test]
    fn an_index_picks_one_element_of_its_axis(
        layout in any_layout(), axis in 0usize..3, index in -6isize..6,
    ) {
        if axis >= layout.ndim() {
            return Ok(());
        }
        let mut items = vec![IndexItem::from(..); axis];
        items.push(IndexItem::At(index));
        let extent = layout.shape()[axis] as isize;
        let result = layout.index(&items);
        prop_assert_eq!(result.is_ok(), (-extent..extent).contains(&index));
        if let Ok(view) = result {
            let wrapped = index.rem_euclid(extent);
            items[axis] = IndexItem::from(wrapped..wrapped + 1);
            prop_assert_eq!(addresses(&view), addresses(&layout.index(&items).unwrap()));
            prop_assert_eq!(view.ndim(), layout.ndim() - 1);
        }
    }

    #[test]
    fn axes_change_places(layout in any_layout()) {
        let reversed = layout.reversed_axes();
        let back: Vec<usize> = (0..layout.ndim()).rev().collect();
        prop_assert_eq!(&reversed, &layout.permute(&back).unwrap());
        prop_assert_eq!(&reversed.reversed_axes(), &layout);
        let sorted = |layout: &Layout| {
            let mut all = addresses(layout);
            all.sort_unstable();
            all
        };
        prop_assert_eq!(sorted(&reversed), sorted(&layout));
        prop_assert!(layout.permute(&vec![0; layout.ndim() + 1]).is_err());
    }

    #[test]
    fn broadcasting_repeats(layout in any_layout(), before in vec(1usize..4, 0..3), to in 2usize..4) {
        let mut shape = before.clone();
        shape.extend(layout.shape().iter().map(|&n| if n == 1 { to } else { n }));
        let wide = layout.broadcast_to(&shape).unwrap();
        prop_assert_eq!(wide.shape(), &shape[..]);
        // Each copy along a repeated axis equals the whole.
        let mut narrow = wide.clone();
        for (axis, (&n, &old)) in
            shape.iter().zip(std::iter::repeat_n(&1, before.len()).chain(layout.shape())).enumerate()
        {
            if old == 1 && n > 1 {
                prop_assert_eq!(narrow.strides()[axis], 0);
                let mut items = vec![IndexItem::from(..); axis];
                items.push(IndexItem::from(n as isize - 1..n as isize));
                narrow = narrow.index(&items).unwrap();
            }
        }
        prop_assert_eq!(addresses(&narrow), addresses(&layout));
        prop_assert_eq!(&broadcast_shapes(layout.shape(), &shape).unwrap()[..], &shape[..]);
        prop_assert!(layout.ndim() == 0 || layout.broadcast_to(&[]).is_err());
    }

    #[test]
    fn a_reshaped_view_keeps_the_order_and_exists_when_it_can(
        layout in prop_oneof![any_layout(), view_layout()], parts in vec(1usize..5, 0..4),
    ) {
        let size = layout.size();
        let known: usize = parts.iter().product();
        if !size.is_multiple_of(known) {
            return Ok(());
        }
        let mut shape = parts;
        shape.push(size / known);
        for order in [Order::C, Order::F] {
            let in_order = |layout: &Layout| match order {
                Order::C => addresses(layout),
                Order::F => addresses(&layout.reversed_axes()),
            };
            let expected = in_order(&layout);
            match layout.reshape(&shape, order).unwrap() {
                Some(view) => {
                    prop_assert_eq!(view.shape(), &shape[..]);
                    prop_assert_eq!(in_order(&view), expected);
                }
                None => {
                    // The strides that a view would have, derived from the addresses.
                    let dense = Layout::contiguous(&shape, 1, order).unwrap();
                    let strides: Vec<isize> = shape
                        .iter()
                        .zip(dense.strides())
                        .map(|(&n, &s)| if n > 1 { expected[s as usize] - expected[0] } else { 0 })
                        .collect();
                    if let Ok(view) = Layout::with_strides(&shape, &strides, layout.offset(), 1) {
                        prop_assert_ne!(in_order(&view), expected);
                    }
                }
            }
        }
        prop_assert!(layout.reshape(&[size + 1], Order::C).is_err());
    }

    #[test]
    fn squeezing_keeps_the_elements(layout in any_layout()) {
        let squeezed = layout.squeeze();
        prop_assert!(!squeezed.shape().contains(&1));
        prop_assert_eq!(addresses(&squeezed), addresses(&layout));
    }

    #[test]
    fn other_item_sizes_show_the_same_bytes(layout in view_layout(), itemsize in 1usize..17) {
        if let Ok(view) = layout.with_itemsize(itemsize) {
            let (mut a, mut b) = (bytes(&layout), bytes(&view));
            a.sort_unstable();
            b.sort_unstable();
            prop_assert_eq!(a, b);
            prop_assert_eq!(view.itemsize(), itemsize);
        } else {
            let fits = layout.is_c_contiguous() && layout.ndim() > 0 && layout.size() > 0
                && (layout.shape().last().unwrap() * layout.itemsize()).is_multiple_of(itemsize)
                && *layout.shape().last().unwrap() > 1;
            prop_assert!(!fits, "{layout:?} as {itemsize}-byte elements");
        }
    }

    #[test]
    fn parts_lie_inside_their_elements(layout in any_layout(), offset in 0usize..9, size in 1usize..9) {
        let part = layout.part(offset, size);
        prop_assert_eq!(part.is_ok(), offset + size <= layout.itemsize());
        if let Ok(part) = part {
            let moved = addresses(&layout).into_iter().map(|a| a + offset as isize);
            prop_assert!(moved.eq(addresses(&part)));
        }
    }

    #[test]
    fn contiguous_means_one_after_the_other(layout in prop_oneof![any_layout(), view_layout()]) {
        let follows = |layout: &Layout| {
            let first = layout.offset() as isize;
            let expected = (0..).map(|i: isize| first + i * layout.itemsize() as isize);
            addresses(layout).into_iter().zip(expected).all(|(a, b)| a == b)
        };
        prop_assert_eq!(layout.is_c_contiguous(), follows(&layout));
        prop_assert_eq!(layout.is_f_contiguous(), follows(&layout.reversed_axes()));
        let mut sorted = addresses(&layout);
        sorted.sort_unstable();
        let packed = sorted.first().is_none_or(|&low| low == layout.offset() as isize)
            && sorted.windows(2).all(|w| w[1] - w[0] == layout.itemsize() as isize);
        prop_assert_eq!(layout.is_packed(), packed);
    }

    #[test]
    fn repeated_elements_are_noticed(layout in any_layout()) {
        let all = bytes(&layout);
        let distinct: HashSet<_> = all.iter().collect();
        prop_assert!(distinct.len() == all.len() || layout.may_repeat());
        prop_assert!(layout.size() > 0 || !layout.may_repeat());
    }

    #[test]
    fn views_repeat_nothing(layout in view_layout()) {
        prop_assert!(!layout.may_repeat());
    }

    #[test]
    fn shared_bytes_are_noticed(a in any_layout(), b in any_layout()) {
        let of_a: HashSet<_> = bytes(&a).into_iter().collect();
        prop_assert!(a.overlaps(&b) || !bytes(&b).iter().any(|byte| of_a.contains(byte)));
        prop_assert_eq!(a.overlaps(&b), b.overlaps(&a));
        prop_assert_eq!(a.overlaps(&a), a.size() > 0);
    }

    #[test]
    fn a_dense_copy_keeps_the_order_of_axes(layout in view_layout(), itemsize in 1usize..9) {
        let dense = layout.dense_like(itemsize).unwrap();
        prop_assert_eq!(dense.shape(), layout.shape());
        prop_assert!(dense.is_packed());
        let moving = |axis: &usize| layout.shape()[*axis] > 1;
        for outer in (0..layout.ndim()).filter(moving) {
            for inner in (0..layout.ndim()).filter(moving) {
                let wider = |l: &Layout| l.strides()[outer].abs() > l.strides()[inner].abs();
                prop_assert_eq!(wider(&dense), wider(&layout));
            }
        }
    }

    #[test]
    fn huge_numbers_never_panic(
        axes in vec((huge_extent(), huge_stride()), 0..5),
        offset in huge_extent(), itemsize in prop_oneof![0usize..17, huge_extent()],
        slices in vec(any_slice(), 4), index in any::<isize>(), other in vec(huge_extent(), 0..5),
    ) {
        let (shape, strides): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
        let layouts = [
            Layout::with_strides(&shape, &strides, offset, itemsize),
            Layout::contiguous(&shape, itemsize, Order::C),
            Layout::contiguous(&shape, itemsize, Order::F),
        ];
        for layout in layouts.into_iter().flatten() {
            use_everything(&layout, &slices, index, &other);
        }
    }
}

fn huge_extent() -> impl Strategy<Value = usize> {
    let top = isize::MAX as usize;
    proptest::sample::select(vec![
        0,
        1,
        2,
        3,
        7,
        1 << 31,
        1 << 32,
        1 << 61,
        1 << 62,
        top - 8,
        top,
        top + 1,
        usize::MAX,
    ])
}

fn huge_stride() -> impl Strategy<Value = isize> {
    let (low, top) = (isize::MIN, isize::MAX);
    proptest::sample::select(vec![
        0,
        1,
        -1,
        8,
        -8,
        1 << 31,
        1 << 61,
        -(1 << 61),
        1 << 62,
        -(1 << 62),
        low,
        low + 1,
        top,
    ])
}

#[test]
fn an_index_makes_no_more_axes_than_an_array_may_have() {
    let layout = Layout::contiguous(&[2, 3], 4, Order::C).unwrap();
    let new = |count| vec![IndexItem::NewAxis; count];
    assert_eq!(layout.index(&new(MAX_AXES - 2)).unwrap().ndim(), MAX_AXES);
    let error = layout.index(&new(MAX_AXES - 1)).unwrap_err();
    assert_eq!(error.kind(), hal::ErrorKind::IndexOutOfRange);
}

#[test]
fn leading_axes_of_extent_1_are_trimmed_as_far_as_asked_for() {
    let trimmed = |shape: &[usize], ndim: usize| {
        let layout = Layout::contiguous(shape, 4, Order::C).unwrap();
        layout.trim_leading(ndim).shape().to_vec()
    };
    assert_eq!(trimmed(&[1, 1, 2, 3], 2), [2, 3]);
    assert_eq!(trimmed(&[1, 1, 2, 3], 3), [1, 2, 3]);
    assert_eq!(trimmed(&[1, 1], 0), [0; 0]);
    assert_eq!(trimmed(&[2, 1, 3], 2), [2, 1, 3]);
    assert_eq!(trimmed(&[1, 3], 5), [1, 3]);
}

/// Calls every method of a layout; only a panic is an error.
fn use_everything(layout: &Layout, slices: &[SliceBounds], index: isize, other: &[usize]) {
    let items: Vec<_> = slices.iter().take(layout.ndim()).copied().map(IndexItem::Slice).collect();
    let views = [
        Ok(layout.clone()),
        layout.index(&items),
        layout.index(&[IndexItem::At(index)]),
        layout.index(&[IndexItem::Ellipsis, IndexItem::At(-1)]),
        layout.broadcast_to(other),
        layout.with_itemsize(1),
        layout.with_itemsize(other.first().copied().unwrap_or(3)),
        layout.part(other.first().copied().unwrap_or(3), 1),
    ];
    for view in views.into_iter().flatten() {
        // The same result by arithmetic that cannot overflow.
        assert_eq!(Some(view.extent()), view.checked_extent().ok(), "{view:?}");
        let _ = (view.is_c_contiguous(), view.is_f_contiguous(), view.is_packed());
        let _ = (view.size(), view.nbytes(), view.may_repeat(), view.overlaps(layout));
        let _ = (view.check_within(64), view.check_dtype(DType::Float64), view.dense_like(16));
        let _ = (view.reshape(other, Order::C), view.reshape(other, Order::F));
        let _ = (view.squeeze(), view.resolve_shape(&[-1]), view.resolve_shape(&[-1, index]));
        let mut strides = [Strides::from_slice(view.strides())];
        let _ = hal::iteration::simplify(view.shape(), &mut strides);
    }
}

#[test]
fn results_are_laid_out_as_numpy_does() {
    type Case = (&'static [usize], &'static [&'static [isize]], &'static [isize]);
    // Shape, strides of the operands, strides of numpy's result, all of one-byte elements.
    const CASES: [Case; 20] = [
        (&[3, 4], &[&[4, 1], &[1, 3]], &[4, 1]),
        (&[3, 4], &[&[1, 3]], &[1, 3]),
        (&[3, 4], &[&[1, 3], &[0, 1]], &[1, 3]),
        (&[3, 4], &[&[1, 3], &[1, 0]], &[1, 3]),
        (&[2, 3, 4], &[&[1, 8, 2]], &[1, 8, 2]),
        (&[4, 2, 3], &[&[1, 12, 4]], &[1, 12, 4]),
        (&[3, 4], &[&[-4, 1]], &[4, 1]),
        (&[3, 4], &[&[1, -3]], &[1, 3]),
        (&[2, 3, 4], &[&[0, 1, 3], &[12, 0, 0]], &[12, 1, 3]),
        (&[3, 1, 2], &[&[1, 9, 3]], &[1, 3, 3]),
        (&[2, 2, 2], &[&[0, 0, 0]], &[4, 2, 1]),
        (&[1, 2, 3], &[&[1, 3, 0]], &[6, 3, 1]),
        (&[1, 3, 2], &[&[-2, 0, 1]], &[6, 2, 1]),
        (&[2, 2, 1, 1], &[&[-1, 0, 2, 4]], &[2, 1, 1, 1]),
        (&[2, 2], &[&[-1, -2]], &[1, 2]),
        (&[2, 1, 1, 2], &[&[-1, 2, 1, 0], &[1, 1, 0, 2]], &[1, 4, 4, 2]),
        (&[3, 3, 3], &[&[0, 1, -3]], &[9, 1, 3]),
        (&[3, 1, 2], &[&[0, -6, 3]], &[2, 2, 1]),
        (&[1, 2], &[&[0, 1], &[2, 1]], &[2, 1]),
        (&[1, 3, 3], &[&[9, 3, 1]], &[9, 3, 1]),
    ];
    for (shape, operands, expected) in CASES {
        let operands: Vec<Strides> = operands.iter().map(|s| Strides::from_slice(s)).collect();
        let views: Vec<&Strides> = operands.iter().collect();
        let layout = dense_layout(shape, &views, 1).unwrap();
        for axis in (0..shape.len()).filter(|&axis| shape[axis] > 1) {
            assert_eq!(layout.strides()[axis], expected[axis], "{shape:?} {operands:?}");
        }
    }
}
