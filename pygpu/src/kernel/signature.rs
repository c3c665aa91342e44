//! The arguments of a kernel that is generated around a program's expressions: what the program
//! declared, and the check of a call against it.

use super::arguments::push_as;
use super::format::{Code, code};
use crate::array::GPUArray;
use crate::dtypes;
use gpuarray::hal::operation::{Shape, Strides};
use gpuarray::launch::ArgumentList;
use gpuarray::memory::Access;
use gpuarray::{Array, DType, Kind};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use smallvec::SmallVec;

/// One declared argument.
struct Parameter {
    name: String,
    form: Form,
}

enum Form {
    Vector(Vector),
    Scalar(Code),
}

/// An array among the arguments.
#[derive(Clone, Copy)]
pub(super) struct Vector {
    dtype: DType,
    /// The expressions access it at the running index: its length is that of the others.
    pub(super) indexed: bool,
    pub(super) access: Access,
}

/// The declared arguments of a kernel, in order.
pub(super) struct Signature {
    pub(super) name: String,
    parameters: Vec<Parameter>,
    /// The expressions use the running index only to access arrays, so that elements may be visited
    /// in any order.
    pub(super) order_free: bool,
}

/// The arrays of a call, in the order of the declared vectors.
pub(super) type Arrays<'a> = SmallVec<[(Vector, &'a Array); 6]>;

impl Signature {
    /// Reads tuples of a name, a dtype or a format code, and, for an array, whether the running index
    /// accesses it and whether the kernel only reads it.
    pub(super) fn parse(
        name: String,
        parameters: &Bound<'_, PyAny>,
        order_free: bool,
    ) -> PyResult<Signature> {
        let parameters = parameters
            .try_iter()?
            .map(|item| {
                let (name, of, indexed, constant): (String, Bound<'_, PyAny>, bool, bool) =
                    item?.extract()?;
                let form = match of.cast::<PyString>() {
                    Ok(text) => Form::Scalar(code(&text.to_cow()?).map_err(PyTypeError::new_err)?),
                    Err(_) => Form::Vector(Vector {
                        dtype: dtypes::parse(&of)?.1,
                        indexed,
                        access: if constant { Access::Read } else { Access::Write },
                    }),
                };
                Ok(Parameter { name, form })
            })
            .collect::<PyResult<Vec<_>>>()?;
        Ok(Signature { name, parameters, order_free })
    }

    /// Checks the number and the kinds of the arguments and returns the arrays.
    ///
    /// Raises `TypeError` for another number of arguments, for something else than an array, and for
    /// an array of another dtype. Integers of one size stand for one another, and a record for
    /// anything of its size.
    pub(super) fn arrays<'a>(&self, arguments: &'a Bound<'_, PyTuple>) -> PyResult<Arrays<'a>> {
        if arguments.len() != self.parameters.len() {
            return Err(self.wrong_number(arguments.len()));
        }
        let mut arrays = Arrays::new();
        for (parameter, value) in self.parameters.iter().zip(arguments.iter_borrowed()) {
            let Form::Vector(vector) = &parameter.form else { continue };
            let Ok(array) = value.cast::<GPUArray>() else {
                return Err(PyTypeError::new_err(format!(
                    "argument {} of kernel {} is of type {}; a GPUArray is needed",
                    parameter.name,
                    self.name,
                    value.get_type().name()?
                )));
            };
            let array = array.get().array()?;
            if array.dtype() != vector.dtype && !interchangeable(array.dtype(), vector.dtype) {
                return Err(PyTypeError::new_err(format!(
                    "argument {} of kernel {} has dtype {}; its declaration says {}",
                    parameter.name,
                    self.name,
                    array.dtype(),
                    vector.dtype
                )));
            }
            arrays.push((*vector, array));
        }
        Ok(arrays)
    }

    #[cold]
    fn wrong_number(&self, given: usize) -> PyErr {
        let names: Vec<_> = self.parameters.iter().map(|it| it.name.as_str()).collect();
        PyTypeError::new_err(format!(
            "kernel {} takes {} arguments ({}); {given} were given",
            self.name,
            names.len(),
            names.join(", ")
        ))
    }

    fn vector_name(&self, position: usize) -> &str {
        let vectors = self.parameters.iter().filter(|it| matches!(it.form, Form::Vector(_)));
        vectors.map(|it| it.name.as_str()).nth(position).unwrap_or_default()
    }

    /// Raises `ValueError` unless all arrays that the running index accesses have as many elements as
    /// the first array.
    pub(super) fn check_lengths(&self, arrays: &Arrays<'_>) -> PyResult<()> {
        let size = arrays.first().map_or(0, |(_, array)| array.size());
        let other = |(vector, array): &(Vector, &Array)| vector.indexed && array.size() != size;
        match arrays.iter().position(other) {
            None => Ok(()),
            Some(position) => Err(PyValueError::new_err(format!(
                "array {} of kernel {} has {} elements; array {} has {size}",
                self.vector_name(position),
                self.name,
                arrays[position].1.size(),
                self.vector_name(0),
            ))),
        }
    }

    /// Raises `ValueError` unless all arrays that the running index accesses have the elements from
    /// `least` to `most`.
    pub(super) fn check_range(&self, arrays: &Arrays<'_>, least: i64, most: i64) -> PyResult<()> {
        let outside = |(vector, array): &(Vector, &Array)| {
            vector.indexed && (least < 0 || most as u64 >= array.size() as u64)
        };
        match arrays.iter().position(outside) {
            None => Ok(()),
            Some(position) => Err(PyValueError::new_err(format!(
                "the range reaches from element {least} to {most}; array {} of kernel {} has {} \
                 elements",
                self.vector_name(position),
                self.name,
                arrays[position].1.size(),
            ))),
        }
    }

    /// Adds the arguments to a list, arrays at these addresses.
    pub(super) fn pack<'a>(
        &self,
        arguments: &'a Bound<'_, PyTuple>,
        arrays: &[(Vector, &'a Array)],
        addresses: &[u64],
        list: &mut ArgumentList<'a>,
    ) -> PyResult<()> {
        let mut next = arrays.iter().zip(addresses);
        for (position, (parameter, value)) in
            self.parameters.iter().zip(arguments.iter_borrowed()).enumerate()
        {
            match &parameter.form {
                Form::Scalar(code) => push_as(*code, value, position, list)?,
                Form::Vector(_) => {
                    if let Some(((vector, array), address)) = next.next() {
                        list.memory(*address, array.memory(), vector.access);
                    }
                }
            }
        }
        Ok(())
    }
}

/// True for dtypes whose bytes mean what a program may well have meant.
fn interchangeable(given: DType, declared: DType) -> bool {
    let whole = |dtype: DType| matches!(dtype.kind(), Kind::Bool | Kind::Signed | Kind::Unsigned);
    let record = |dtype: DType| dtype.kind() == Kind::Opaque;
    given.size() == declared.size()
        && ((whole(given) && whole(declared)) || record(given) || record(declared))
}

/// Where an array's elements lie in the order in which a kernel counts them.
pub(super) struct Axes {
    pub(super) shape: Shape,
    pub(super) strides: Strides,
}

impl Axes {
    /// Merges axes that are one run in C order, and leaves out those of one element.
    fn in_c_order(array: &Array) -> Axes {
        let mut axes = Axes { shape: Shape::new(), strides: Strides::new() };
        for (&extent, &stride) in array.shape().iter().zip(array.strides()) {
            if extent == 1 {
                continue;
            }
            match (axes.shape.last_mut(), axes.strides.last_mut()) {
                (Some(outer), Some(step)) if stride.checked_mul(extent as isize) == Some(*step) => {
                    (*outer, *step) = (*outer * extent, stride);
                }
                _ => {
                    axes.shape.push(extent);
                    axes.strides.push(stride);
                }
            }
        }
        axes
    }

    /// The number of axes, 0 for elements beside one another.
    pub(super) fn rank(&self, itemsize: usize) -> u8 {
        match self.strides[..] {
            [] => 0,
            [stride] if stride == itemsize as isize => 0,
            // At most 64 axes.
            _ => self.strides.len() as u8,
        }
    }

    /// True if an offset in bytes or a number of elements needs more than 31 bits.
    fn is_wide(&self) -> bool {
        let axes = self.strides.iter().zip(&self.shape);
        let reach = axes.fold(0_u64, |reach, (stride, &extent)| {
            let last = extent.saturating_sub(1) as u64;
            reach.saturating_add((stride.unsigned_abs() as u64).saturating_mul(last))
        });
        let count = self.shape.iter().fold(1_u64, |all, &it| all.saturating_mul(it as u64));
        reach.max(count) >= 1 << 31
    }

    /// The members of `Strided<T, RANK, wide>::Geometry` in pygpu-strided.hpp.
    pub(super) fn geometry(&self, wide: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut word = |value: u64| match wide {
            true => bytes.extend(value.to_ne_bytes()),
            false => bytes.extend((value as u32).to_ne_bytes()),
        };
        self.shape.iter().for_each(|&extent| word(extent as u64));
        self.strides.iter().for_each(|&stride| word(stride as u64));
        bytes
    }
}

/// How the arrays of a call lie in memory.
#[derive(Default)]
pub(super) struct Arrangement {
    pub(super) addresses: SmallVec<[u64; 6]>,
    /// For each array its axes; none at all if every array is one run of elements.
    pub(super) axes: SmallVec<[Axes; 6]>,
    /// The arrays' numbers of axes, 0 for a run; empty if every array is one.
    pub(super) ranks: SmallVec<[u8; 8]>,
    pub(super) wide: bool,
}

impl Arrangement {
    /// Elements are counted in memory order if all arrays are in C order or all in Fortran order, else
    /// in C order; where the order is of no consequence, in that of the first array that is written.
    pub(super) fn of(signature: &Signature, arrays: &Arrays<'_>) -> Arrangement {
        let mut arrangement = Arrangement {
            addresses: arrays.iter().map(|(_, array)| array.address()).collect(),
            ..Arrangement::default()
        };
        let in_c = |(_, array): &(Vector, &Array)| array.layout().is_c_contiguous();
        let in_fortran = |(vector, array): &(Vector, &Array)| {
            let layout = array.layout();
            layout.is_f_contiguous() || (!vector.indexed && layout.is_c_contiguous())
        };
        if arrays.iter().all(in_c) || arrays.iter().all(in_fortran) {
            return arrangement;
        }
        arrangement.axes = arrays.iter().map(|(_, array)| Axes::in_c_order(array)).collect();
        if signature.order_free {
            arrangement.sort_axes(arrays);
        }
        let axes = arrangement.axes.iter().zip(arrays);
        arrangement.ranks = axes.map(|(axes, (_, it))| axes.rank(it.layout().itemsize())).collect();
        if arrangement.ranks.iter().all(|rank| *rank == 0) {
            arrangement.ranks.clear();
        }
        let strided = |(axes, rank): (&Axes, &u8)| *rank > 0 && axes.is_wide();
        arrangement.wide = arrangement.axes.iter().zip(&arrangement.ranks).any(strided);
        arrangement
    }

    /// Visits the arrays that the running index accesses in the memory order of the first that is
    /// written, if they have one shape.
    fn sort_axes(&mut self, arrays: &Arrays<'_>) {
        let mut order: SmallVec<[usize; 6]> =
            (0..arrays.len()).filter(|&position| arrays[position].0.indexed).collect();
        let written = |&position: &usize| matches!(arrays[position].0.access, Access::Write);
        if let Some(first) = order.iter().position(written) {
            order[..=first].rotate_right(1);
        }
        let Some(&first) = order.first() else { return };
        let shape = arrays[first].1.shape();
        if order.iter().any(|&position| arrays[position].1.shape() != shape) {
            return;
        }
        let mut strides: SmallVec<[Strides; 6]> =
            order.iter().map(|&it| Strides::from_slice(arrays[it].1.strides())).collect();
        let (shape, moves) = gpuarray::hal::iteration::simplify(shape, &mut strides);
        for ((&position, strides), moved) in order.iter().zip(strides).zip(moves) {
            let address = &mut self.addresses[position];
            *address = address.wrapping_add_signed(moved as i64);
            self.axes[position] = Axes { shape: shape.clone(), strides };
        }
    }
}
