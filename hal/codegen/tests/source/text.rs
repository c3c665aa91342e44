//! The text of the sources, and the contents of the plans.

use crate::harness::plan;
use crate::operations::{all, c_order, elementwise, operand};
use gpuarray_codegen::source::{KernelSpec, Plan, unit};
use hal::function::{BinaryFunction, Function, Reduction, UnaryFunction};
use hal::operation::{Elementwise, Epilogue, Input, Mapped, Operand, Operation, Reduce, Shape};
use hal::recording::Work;
use hal::{DType, ErrorKind, Scalar};
use std::collections::{HashMap, HashSet};

#[test]
fn every_function_and_dtype_has_source_and_distinct_names() {
    let specs: HashSet<KernelSpec> =
        all().iter().map(|operation| plan(operation).spec().clone()).collect();
    let mut owners = HashMap::new();
    for spec in &specs {
        let source = spec.source();
        assert_eq!(source, spec.source());
        for name in spec.kernel_names() {
            assert!(source.contains(&format!(" {name}(")), "{name} is not in its source");
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
            assert!(
                owners.insert(name.clone(), spec.clone()).is_none(),
                "{name} names two kernels"
            );
        }
    }
    assert!(specs.len() > 1500, "{}", specs.len());
}

#[test]
fn a_spec_depends_on_code_not_on_values() {
    let add = |length, address| {
        let mut it = elementwise(Function::Binary(BinaryFunction::Add), DType::Float32, &[length]);
        it.output.address = address;
        plan(&it.into()).spec().clone()
    };
    assert_eq!(add(1000, 0x10000), add(70, 0x90000));
    // The kernel checks the alignment.
    assert_eq!(add(1000, 0x10000), add(1000, 0x10004));
    let fill = |scalar: Scalar| {
        let mut it = elementwise(Function::Unary(UnaryFunction::Copy), DType::Float32, &[100]);
        it.inputs[0] = Input::Scalar(scalar);
        plan(&it.into()).spec().clone()
    };
    assert_eq!(fill(Scalar::new(1_i8)), fill(Scalar::new(2.5_f64)));
}

#[test]
fn sixty_four_axes_fit_and_more_are_refused() {
    let plan = |rank: usize| {
        // Gaps between the rows keep axes from merging.
        let shape = Shape::from_elem(2, rank.min(60))
            .into_iter()
            .chain(std::iter::repeat_n(1, rank.saturating_sub(60)));
        let shape: Shape = shape.collect();
        let strides = c_order(&shape, DType::UInt8);
        let operation = Operation::new(Elementwise {
            function: Function::Unary(UnaryFunction::Copy),
            compute: DType::UInt8,
            shape,
            inputs: [Input::Array(operand(0x1000, DType::UInt8, &vec![0; rank]))]
                .into_iter()
                .collect(),
            output: operand(0x2000, DType::UInt8, &strides),
        });
        Plan::new(&operation.unwrap())
    };
    assert!(plan(60).is_ok());
    assert!(plan(64).is_ok());
    let wide = Elementwise {
        function: Function::Unary(UnaryFunction::Copy),
        compute: DType::UInt8,
        shape: Shape::from_elem(0, 65),
        inputs: [Input::Array(operand(0x1000, DType::UInt8, &[1; 65]))].into_iter().collect(),
        output: operand(0x2000, DType::UInt8, &(0..65).map(|i| 1000 - 3 * i).collect::<Vec<_>>()),
    };
    let error = Plan::new(&Operation::new(wide).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

/// Descriptions that no array has: an axis is empty, and others are huge.
#[test]
fn huge_extents_do_not_overflow() {
    let reduce = |shape: &[usize], input: &[isize], output: &[isize]| {
        let operation = Operation::new(Reduce {
            reduction: Reduction::Sum,
            compute: DType::Int32,
            shape: Shape::from_slice(shape),
            input: Mapped::Identity(operand(0x1000, DType::Int32, input)),
            output: operand(0x2000, DType::Int32, output),
            epilogue: Epilogue::Identity,
        });
        operation.unwrap()
    };
    let kept = reduce(&[0, usize::MAX, 16], &[1, 8, 1], &[0, 4, 1]);
    let reduced = reduce(&[33, 0, 1 << 40], &[4, 4, 0], &[0; 3]);
    for operation in [&kept, &reduced] {
        assert!(Plan::new(operation).unwrap().spec().source().contains("sum"));
    }
    // The bytes of the input and of the output do not fit together.
    let bytes = Work::operation(&reduce(&[usize::MAX], &[1], &[1]));
    assert!(format!("{bytes:?}").contains(&u64::MAX.to_string()));
}

#[test]
fn contradictory_operations_are_errors() {
    let mut few = elementwise(Function::Binary(BinaryFunction::Add), DType::Int8, &[3]);
    few.inputs.pop();
    let error = Operation::new(few).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let mut strides = elementwise(Function::Binary(BinaryFunction::Add), DType::Int8, &[3]);
    strides.output.strides.clear();
    let error = Operation::new(strides).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let sine = elementwise(Function::Unary(UnaryFunction::Sin), DType::Int32, &[3]);
    let error = Operation::new(sine).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidType);
}

#[test]
fn positions_and_deviations_have_types_and_reductions_of_their_own() {
    type Change = fn(&mut Reduce);
    const LONG: usize = 1 << 40;
    let reduce = |make: fn(Operand) -> Mapped, (reduction, compute, output), change: Change| {
        let mut reduce = Reduce {
            reduction,
            compute,
            shape: [3, 10][..].into(),
            input: make(operand(0x1000, DType::Float32, &[40, 4])),
            output: operand(0x3000, output, &[8, 0]),
            epilogue: Epilogue::Identity,
        };
        change(&mut reduce);
        Operation::new(reduce).map(drop).map_err(|error| error.kind())
    };
    let (invalid, of_type) = (Err(ErrorKind::InvalidArgument), Err(ErrorKind::InvalidType));
    let position = |compute, output, change| {
        reduce(Mapped::Position, (Reduction::Minimum, compute, output), change)
    };
    assert_eq!(position(DType::Float32, DType::Int64, |_| ()), Ok(()));
    assert_eq!(position(DType::Float32, DType::Int64, |it| it.shape[1] = LONG), Ok(()));
    assert_eq!(position(DType::Int32, DType::Int64, |_| ()), of_type);
    assert_eq!(position(DType::Float32, DType::Int32, |_| ()), of_type);
    let sum: Change = |it| it.reduction = Reduction::Sum;
    assert_eq!(position(DType::Float32, DType::Int64, sum), invalid);
    let all: Change = |it| it.output.strides[0] = 0;
    assert_eq!(position(DType::Float32, DType::Int64, all), invalid);
    let deviation = |compute, change| {
        reduce(Mapped::SquaredDeviation, (Reduction::Sum, compute, compute), change)
    };
    assert_eq!(deviation(DType::Float64, |_| ()), Ok(()));
    assert_eq!(deviation(DType::Float64, all), Ok(()));
    assert_eq!(deviation(DType::Float16, |_| ()), of_type);
    assert_eq!(deviation(DType::Float64, |it| it.reduction = Reduction::Product), invalid);
    let complex: Change = |it| {
        it.input = Mapped::SquaredDeviation(operand(0x1000, DType::Complex64, &[80, 8]));
    };
    assert_eq!(deviation(DType::Float64, complex), of_type);
}

/// Writes the sources to the folder named by `GPUARRAY_SOURCE_FOLDER`, about 100 kernels to
/// a file, for `compile_with_nvrtc.py` and other compilers.
#[test]
#[ignore = "writes files; set GPUARRAY_SOURCE_FOLDER"]
fn write_sources() {
    let folder = std::env::var_os("GPUARRAY_SOURCE_FOLDER").expect("GPUARRAY_SOURCE_FOLDER");
    let folder = std::path::PathBuf::from(folder);
    let mut seen = HashSet::new();
    let specs: Vec<KernelSpec> = all()
        .iter()
        .map(|operation| plan(operation).spec().clone())
        .filter(|spec| seen.insert(spec.clone()))
        .collect();
    for (number, part) in specs.chunks(100).enumerate() {
        let text = unit(part.iter().cloned());
        std::fs::write(folder.join(format!("specs{number:03}.cu")), text).unwrap();
    }
    for spec in specs.iter().step_by(97) {
        let name = &spec.kernel_names()[0];
        std::fs::write(folder.join(format!("{name}.cu")), spec.source()).unwrap();
    }
}
