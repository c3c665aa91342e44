//! Refused calls: the text of their errors, and that they change nothing.

use crate::context::{Context, expect_error};
use crate::harness::{Outcome, tests};
use gpuarray::array::functions;
use gpuarray::function::{BinaryFunction, Reduction, UnaryFunction};
use gpuarray::memory::{Allocator, DeviceMemory};
use gpuarray::{
    Argument, Array, Complex, DType, Device, DeviceArray, ErrorKind, IndexItem, Layout, Number,
    Order, PinnedBuffer, Result, Scalar, SliceBounds, Stream,
};
use std::sync::Arc;

tests![
    shapes_that_do_not_fit_are_named,
    an_output_of_another_shape_is_refused,
    arrays_of_two_devices_are_not_mixed needs [SecondDevice],
    a_stream_of_another_device_is_refused needs [SecondDevice],
    an_index_outside_its_axis_is_named_with_the_extent,
    wrong_slices_and_axes_are_named,
    an_output_that_repeats_elements_is_refused,
    shapes_beyond_the_address_space_overflow,
    records_are_not_calculated_with,
    functions_are_refused_for_types_that_lack_them,
    numbers_outside_a_type_overflow,
    results_that_do_not_fit_the_output_are_refused,
    a_shape_with_another_number_of_elements_is_refused,
    slices_of_the_wrong_length_are_refused,
    an_empty_minimum_has_no_value,
    every_failing_call_is_the_last_status,
    new_memory_fits_its_layout,
    memory_of_an_allocator_is_checked,
    indices_must_be_integers,
    typed_arrays_check_their_type,
    a_refused_operation_changes_nothing needs [ExactAccounting],
];

type Failing = fn(&mut DeviceArray<i32>, &DeviceArray<i32>) -> Result<()>;

fn every_failing_call_is_the_last_status(context: &Context) -> Outcome {
    let other = context.counting(&[7])?;
    let calls: [(&str, Failing); 20] = [
        ("assign", |a, b| a.assign(b)),
        ("fill", |a, _| a.broadcast_to(&[2, 2, 3])?.fill(1)),
        ("copy_from_slice", |a, _| a.copy_from_slice(&[1])),
        ("copy_to_slice", |a, _| a.copy_to_slice(&mut [1])),
        ("copy_to_pinned", |a, b| {
            let buffer = PinnedBuffer::new(b.device(), 1)?;
            a.copy_to_pinned(buffer).map(drop)
        }),
        ("copy_from_pinned", |a, b| {
            let buffer = PinnedBuffer::new(b.device(), 1)?;
            a.copy_from_pinned(buffer).map(drop)
        }),
        ("item", |a, _| a.item().map(drop)),
        ("index", |a, _| a.index(&[9.into()]).map(drop)),
        ("transpose", |a, _| a.transpose(Some(&[0, 0])).map(drop)),
        ("reshape", |a, _| a.reshape(&[5]).map(drop)),
        ("broadcast_to", |a, _| a.broadcast_to(&[5]).map(drop)),
        ("take", |a, b| a.take(b, 5).map(drop)),
        ("dot", |a, b| a.dot(b).map(drop)),
        ("sum_along", |a, _| a.sum_along(&[5]).map(drop)),
        ("update", |a, b| a.update(functions::Add, b)),
        ("zip", |a, b| a.zip(functions::Add, b).map(drop)),
        ("add", |a, b| (&*a + b).map(drop)),
        ("view", |a, _| a.untyped().view(DType::Opaque(5)).map(drop)),
        ("sort", |a, _| a.untyped().sort(5).map(drop)),
        ("count_nonzero", |a, _| a.untyped().count_nonzero(Some(&[5]), false).map(drop)),
    ];
    for (name, call) in calls {
        let mut array = context.counting(&[2, 3])?;
        assert!(array.last_status().is_success());
        let error = call(&mut array, &other).expect_err(name);
        if name != "fill" {
            assert_eq!(array.last_status(), error.status(), "{name}");
        }
        array.fill(1)?;
        assert!(array.last_status().is_success(), "{name}");
    }
    // The status of a failed function is stored in every operand.
    let criterion = DeviceArray::<bool>::ones(&context.device, &[5])?;
    let then = context.counting(&[4])?;
    let mut repeated = then.broadcast_to(&[2, 4])?;
    let error = DeviceArray::select(&criterion, &then, &other).expect_err("shapes");
    for status in [criterion.last_status(), then.last_status(), other.last_status()] {
        assert_eq!(status, error.status());
    }
    let error = repeated.fill(1).expect_err("elements are named twice");
    assert_eq!(repeated.last_status(), error.status());
    Ok(())
}

fn add(left: &Array, right: &Array) -> gpuarray::Result<Array> {
    Array::binary(BinaryFunction::Add, left.into(), right.into())
}

fn shapes_that_do_not_fit_are_named(context: &Context) -> Outcome {
    let (a, b) = (context.counting(&[2, 3])?, context.counting(&[4])?);
    expect_error(&a + &b, ErrorKind::InvalidArgument, &["(2, 3)", "(4,)"])?;
    expect_error(a.dot(&b), ErrorKind::InvalidArgument, &["(2, 3)", "(4,)"])?;
    expect_error(a.broadcast_to(&[3]), ErrorKind::InvalidArgument, &["(2, 3)", "(3,)"])?;
    let criterion = DeviceArray::<bool>::ones(&context.device, &[5])?;
    expect_error(
        DeviceArray::select(&criterion, &b, &b),
        ErrorKind::InvalidArgument,
        &["(5,)", "(4,)"],
    )?;
    Ok(())
}

fn an_output_of_another_shape_is_refused(context: &Context) -> Outcome {
    let mut a = context.counting(&[3])?;
    let b = context.counting(&[2, 3])?;
    let result = a.update(functions::Add, &b);
    expect_error(result, ErrorKind::InvalidArgument, &["(3,)", "(2, 3)"])?;
    expect_error(a.assign(&b), ErrorKind::InvalidArgument, &["(3,)", "(2, 3)"])?;
    let indices = context.counting(&[2])?;
    let result = a.untyped().take_into(indices.untyped(), 0, b.untyped());
    expect_error(result, ErrorKind::InvalidArgument, &["(2, 3)", "(2,)"])?;
    assert_eq!(a.to_vec()?, [0, 1, 2]);
    Ok(())
}

fn arrays_of_two_devices_are_not_mixed(context: &Context) -> Outcome {
    let second = context.second_device()?;
    let (here, there) = (context.device.id().to_string(), second.id().to_string());
    let named = [here.as_str(), there.as_str()];
    let a = context.counting(&[3])?;
    let mut b = DeviceArray::<i32>::ones(&second, &[3])?;
    assert_eq!((&b + &b)?.to_vec()?, [2; 3], "the second device works by itself");
    let kind = ErrorKind::InvalidArgument;
    expect_error(&a + &b, kind, &named)?;
    expect_error(a.dot(&b), kind, &named)?;
    expect_error(b.assign(&a), kind, &named)?;
    expect_error(b.update(functions::Add, &a), kind, &named)?;
    expect_error(a.take(&b, 0), kind, &named)?;
    expect_error(a.untyped().put(a.untyped(), b.untyped(), 0), kind, &named)?;
    let zero = Argument::Number(Number::Integer(0));
    expect_error(Array::select(a.untyped(), b.untyped().into(), zero, false), kind, &named)?;
    assert_eq!(b.to_vec()?, [1; 3]);
    Ok(())
}

fn a_stream_of_another_device_is_refused(context: &Context) -> Outcome {
    let second = context.second_device()?;
    let stream = second.default_stream();
    let (here, there) = (context.device.id().to_string(), second.id().to_string());
    let named = [here.as_str(), there.as_str()];
    let array = context.counting(&[3])?;
    expect_error(array.on(&stream), ErrorKind::InvalidArgument, &named)?;
    let memory = DeviceMemory::for_stream(&context.device, &stream, 8);
    expect_error(memory, ErrorKind::InvalidArgument, &named)?;
    let layout = Layout::contiguous(&[3], 4, Order::C)?;
    let made = Array::with_new_memory(&context.device, &stream, layout, DType::Int32);
    expect_error(made, ErrorKind::InvalidArgument, &named)?;
    Ok(())
}

fn new_memory_fits_its_layout(context: &Context) -> Outcome {
    let (device, stream) = (&context.device, context.device.default_stream());
    for (shape, strides, offset) in [(&[4][..], &[4][..], 1000), (&[2, 2], &[8, 4], 64)] {
        let layout = Layout::with_strides(shape, strides, offset, 4)?;
        for array in [
            Array::with_new_memory(device, &stream, layout.clone(), DType::Int32)?,
            Array::zeros(device, &stream, layout.clone(), DType::Int32)?,
        ] {
            assert!(array.memory().bytes() >= layout.extent().end, "{}", array.memory().bytes());
            array.fill(Scalar::new(7))?;
            assert_eq!(DeviceArray::<i32>::from_untyped(array)?.to_vec()?, [7; 4]);
        }
    }
    let bytes = Layout::contiguous(&[1], 1, Order::C)?;
    let kind = ErrorKind::InvalidArgument;
    let named = ["1-byte", "uint64"];
    let made = Array::with_new_memory(device, &stream, bytes.clone(), DType::UInt64);
    expect_error(made, kind, &named)?;
    expect_error(Array::zeros(device, &stream, bytes.clone(), DType::UInt64), kind, &named)?;
    let array = context.counting(&[3])?;
    expect_error(array.untyped().new_array(bytes, DType::UInt64), kind, &named)?;
    Ok(())
}

/// Returns the same memory for every allocation.
#[derive(Debug)]
struct Same(Arc<DeviceMemory>);

// SAFETY: the memory is a separate allocation; the array layer checks its size and device.
unsafe impl Allocator for Same {
    fn allocate(
        &self,
        _device: &Arc<dyn Device>,
        _stream: &Arc<dyn Stream>,
        _bytes: usize,
    ) -> Result<Arc<DeviceMemory>> {
        Ok(self.0.clone())
    }
}

fn memory_of_an_allocator_is_checked(context: &Context) -> Outcome {
    let array = context.counting(&[8])?;
    let own = array.untyped().clone();
    let with = |memory: &Arc<DeviceMemory>| {
        own.clone().with_allocator(Some(Arc::new(Same(memory.clone()))))
    };
    let small = Arc::new(DeviceMemory::plain(&context.device, 31)?);
    expect_error(with(&small).copy(), ErrorKind::InvalidArgument, &["size 32", "31"])?;
    // The operation would read elements that it has already written.
    let repeats = with(own.memory());
    let kind = ErrorKind::InvalidArgument;
    let backwards = SliceBounds { start: None, stop: None, step: Some(-1) };
    let reversed = repeats.index(&[IndexItem::Slice(backwards)])?;
    expect_error(reversed.unary(UnaryFunction::Negative), kind, &["allocator"])?;
    expect_error(repeats.astype(DType::Int16), kind, &["allocator"])?;
    let sum = repeats.scan(Reduction::Sum, DType::Int32, 0, false, None);
    expect_error(sum, kind, &["allocator"])?;
    let all = repeats.reduce(Reduction::Sum, DType::Int32, None, false);
    expect_error(all, kind, &["allocator"])?;
    expect_error(repeats.dot(&own, DType::Int32), kind, &["allocator"])?;
    expect_error(repeats.take(&own, 0), kind, &["allocator"])?;
    assert_eq!(array.to_vec()?, [0, 1, 2, 3, 4, 5, 6, 7], "nothing has been written");
    // Elementwise in place: each element is written after it was read.
    repeats.unary(UnaryFunction::Negative)?;
    assert_eq!(array.to_vec()?, [0, -1, -2, -3, -4, -5, -6, -7]);
    Ok(())
}

fn an_index_outside_its_axis_is_named_with_the_extent(context: &Context) -> Outcome {
    let array = context.counting(&[3, 5])?;
    let kind = ErrorKind::IndexOutOfRange;
    expect_error(array.index(&[3.into()]), kind, &["index 3", "axis 0", "3"])?;
    expect_error(array.index(&[(-4).into()]), kind, &["index -4", "axis 0", "3"])?;
    expect_error(array.index(&[0.into(), isize::MAX.into()]), kind, &["axis 1", "5"])?;
    expect_error(array.index(&[0.into(), isize::MIN.into()]), kind, &["axis 1", "5"])?;
    expect_error(array.index(&[0.into(); 3]), kind, &["2-dimensional", "3"])?;
    Ok(())
}

fn wrong_slices_and_axes_are_named(context: &Context) -> Outcome {
    let array = context.counting(&[3, 5])?;
    let still = IndexItem::Slice(SliceBounds { step: Some(0), ..Default::default() });
    expect_error(array.index(&[still]), ErrorKind::InvalidArgument, &["step", "zero"])?;
    let twice = [IndexItem::Ellipsis, IndexItem::Ellipsis];
    expect_error(array.index(&twice), ErrorKind::IndexOutOfRange, &["ellipsis"])?;
    for axes in [&[0usize][..], &[0, 0], &[0, 2], &[0, 1, 2]] {
        let result = array.transpose(Some(axes));
        expect_error(result, ErrorKind::InvalidArgument, &["axes", "(3, 5)"])?;
    }
    for axis in [2, -3, isize::MAX, isize::MIN] {
        let named = axis.to_string();
        let result = array.reduce(functions::Sum, Some(&[axis]));
        expect_error(result, ErrorKind::IndexOutOfRange, &[&named, "dimension 2"])?;
        expect_error(array.scan(functions::Sum, axis), ErrorKind::IndexOutOfRange, &[&named])?;
    }
    let result = array.reduce(functions::Sum, Some(&[1, -1]));
    expect_error(result, ErrorKind::InvalidArgument, &["twice"])?;
    Ok(())
}

fn an_output_that_repeats_elements_is_refused(context: &Context) -> Outcome {
    let array = context.counting(&[3])?;
    let mut repeated = array.broadcast_to(&[2, 3])?;
    let kind = ErrorKind::InvalidArgument;
    expect_error(repeated.fill(1), kind, &["(2, 3)", "twice"])?;
    expect_error(repeated.update_scalar(functions::Add, 1), kind, &["twice"])?;
    expect_error(repeated.copy_from_slice(&[0; 6]), kind, &["twice"])?;
    let indices = context.counting(&[1])?;
    let values = context.counting(&[1])?;
    let result = repeated.untyped().put(indices.untyped(), values.untyped(), 0);
    expect_error(result, kind, &["twice"])?;
    assert_eq!(array.to_vec()?, [0, 1, 2]);
    Ok(())
}

fn shapes_beyond_the_address_space_overflow(context: &Context) -> Outcome {
    let device = &context.device;
    for shape in [&[usize::MAX][..], &[1 << 62, 2, 2], &[1 << 40, 1 << 40], &[0, usize::MAX, 4]] {
        let result = DeviceArray::<f64>::zeros(device, shape);
        expect_error(result, ErrorKind::Overflow, &["shape"])?;
    }
    let array = context.counting(&[1])?;
    let result = array.broadcast_to(&[usize::MAX, 2]);
    expect_error(result, ErrorKind::Overflow, &["shape"])?;
    let axes = vec![1; 65];
    expect_error(DeviceArray::<u8>::zeros(device, &axes), ErrorKind::InvalidArgument, &["65"])?;
    let far = Layout::with_strides(&[3], &[isize::MAX], 0, 1);
    expect_error(far, ErrorKind::Overflow, &["strides"])?;
    Ok(())
}

fn records_are_not_calculated_with(context: &Context) -> Outcome {
    let bytes = DeviceArray::<u8>::zeros(&context.device, &[24])?;
    let records = bytes.untyped().view(DType::Opaque(12))?;
    let kind = ErrorKind::InvalidType;
    expect_error(add(&records, &records), kind, &["record of 12 bytes"])?;
    expect_error(add(&records, bytes.untyped()), kind, &["record"])?;
    expect_error(records.unary(UnaryFunction::Negative), kind, &["negative", "record"])?;
    expect_error(records.astype(DType::Float32), kind, &["float32", "record"])?;
    expect_error(records.fill(Scalar::new(1u8)), kind, &["record"])?;
    let sum = records.reduce(Reduction::Sum, DType::Float32, None, false);
    expect_error(sum, kind, &["record"])?;
    Ok(())
}

fn functions_are_refused_for_types_that_lack_them(context: &Context) -> Outcome {
    let kind = ErrorKind::InvalidType;
    let truth = DeviceArray::<bool>::ones(&context.device, &[2])?;
    let (t, subtract) = (truth.untyped(), BinaryFunction::Subtract);
    expect_error(Array::binary(subtract, t.into(), t.into()), kind, &["subtract", "bool"])?;
    expect_error(t.unary(UnaryFunction::Negative), kind, &["negative", "bool"])?;
    let complex = DeviceArray::<Complex<f32>>::ones(&context.device, &[2])?;
    let (c, remainder) = (complex.untyped(), BinaryFunction::Remainder);
    expect_error(Array::binary(remainder, c.into(), c.into()), kind, &["remainder", "complex64"])?;
    expect_error(c.unary(UnaryFunction::Floor), kind, &["floor", "complex64"])?;
    let float = DeviceArray::<f32>::ones(&context.device, &[2])?;
    let (f, bits) = (float.untyped(), BinaryFunction::BitwiseAnd);
    expect_error(Array::binary(bits, f.into(), f.into()), kind, &["float32"])?;
    expect_error(f.unary(UnaryFunction::Invert), kind, &["invert", "float32"])?;
    expect_error(f.scan(Reduction::Any, DType::Float32, 0, false, None), kind, &["Any"])?;
    Ok(())
}

fn numbers_outside_a_type_overflow(context: &Context) -> Outcome {
    let bytes = DeviceArray::<u8>::ones(&context.device, &[2])?;
    for (value, named) in [(256i128, "256"), (-1, "-1"), (i128::MAX, "uint8")] {
        let number = Number::Integer(value).into();
        let result = Array::binary(BinaryFunction::Add, bytes.untyped().into(), number);
        expect_error(result, ErrorKind::Overflow, &[named, "0 to 255"])?;
    }
    let whole = DeviceArray::<i32>::ones(&context.device, &[2])?;
    let exponent = Number::Integer(-1).into();
    let result = Array::binary(BinaryFunction::Power, whole.untyped().into(), exponent);
    expect_error(result, ErrorKind::InvalidArgument, &["negative integer powers"])?;
    Ok(())
}

fn results_that_do_not_fit_the_output_are_refused(context: &Context) -> Outcome {
    let whole = context.counting(&[3])?;
    let half = Number::Float(0.5).into();
    let array = whole.untyped();
    let result = array.set_binary(BinaryFunction::Add, array.into(), half);
    expect_error(result, ErrorKind::InvalidType, &["float64", "int32"])?;
    let result = array.set_binary(BinaryFunction::Divide, array.into(), array.into());
    expect_error(result, ErrorKind::InvalidType, &["float64", "int32"])?;
    assert_eq!(whole.to_vec()?, [0, 1, 2]);
    Ok(())
}

fn a_shape_with_another_number_of_elements_is_refused(context: &Context) -> Outcome {
    let array = context.counting(&[2, 3])?;
    for shape in [&[5][..], &[-1, 4], &[-1, -1], &[-2, -3], &[0, -1], &[isize::MAX, isize::MAX]] {
        expect_error(array.reshape(shape), ErrorKind::InvalidArgument, &["size 6"])?;
    }
    Ok(())
}

fn slices_of_the_wrong_length_are_refused(context: &Context) -> Outcome {
    let mut array = context.counting(&[2, 3])?;
    let kind = ErrorKind::InvalidArgument;
    expect_error(array.copy_from_slice(&[0; 5]), kind, &["5", "(2, 3)", "6"])?;
    expect_error(array.copy_to_slice(&mut [0; 7]), kind, &["7", "(2, 3)", "6"])?;
    expect_error(context.array(&[4], &[1, 2, 3]), kind, &["length 3", "(4,)"])?;
    expect_error(array.item(), kind, &["(2, 3)"])?;
    Ok(())
}

fn an_empty_minimum_has_no_value(context: &Context) -> Outcome {
    let none = DeviceArray::<f32>::zeros(&context.device, &[0, 3])?;
    expect_error(none.min(), ErrorKind::InvalidArgument, &["(0, 3)", "identity"])?;
    let columns = none.reduce(functions::Maximum, Some(&[0]));
    expect_error(columns, ErrorKind::InvalidArgument, &["identity"])?;
    assert_eq!(none.reduce(functions::Maximum, Some(&[1]))?.shape(), [0]);
    Ok(())
}

fn indices_must_be_integers(context: &Context) -> Outcome {
    let array = context.counting(&[3])?;
    let floats = DeviceArray::<f32>::zeros(&context.device, &[2])?;
    expect_error(array.untyped().take(floats.untyped(), 0), ErrorKind::InvalidType, &["float32"])?;
    let truth = DeviceArray::<bool>::zeros(&context.device, &[2])?;
    expect_error(array.untyped().take(truth.untyped(), 0), ErrorKind::InvalidType, &["bool"])?;
    Ok(())
}

fn typed_arrays_check_their_type(context: &Context) -> Outcome {
    let array = context.counting(&[3])?.into_untyped();
    let result = DeviceArray::<u32>::from_untyped(array);
    expect_error(result, ErrorKind::InvalidType, &["int32", "uint32"])?;
    let memory = Arc::new(DeviceMemory::plain(&context.device, 16)?);
    let layout = Layout::contiguous(&[4], 4, Order::C)?;
    let stream = context.device.default_stream();
    let result = Array::from_memory(memory, layout, DType::Float64, stream);
    expect_error(result, ErrorKind::InvalidArgument, &["4-byte", "float64"])?;
    Ok(())
}

fn a_refused_operation_changes_nothing(context: &Context) -> Outcome {
    let mut array = context.counting(&[6])?;
    let before = context.free_memory()?;
    let other = context.counting(&[5])?;
    assert!((&array + &other).is_err());
    assert!(array.update(functions::Add, &other).is_err());
    assert!(array.take(&other, 1).is_err());
    assert!(array.reduce(functions::Sum, Some(&[0, 0])).is_err());
    drop(other);
    assert_eq!(context.free_memory()?, before);
    assert_eq!(array.to_vec()?, [0, 1, 2, 3, 4, 5]);
    Ok(())
}
