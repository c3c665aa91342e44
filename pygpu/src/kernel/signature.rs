//! The arguments of a kernel that is generated around a program's expressions: the program's declaration, and
//! the check of a call against it.

use super::arguments::{Place, push_as};
use super::format::{Code, code};
use crate::array::GPUArray;
use crate::dtypes;
use gpuarray::launch::ArgumentList;
use gpuarray::memory::Access;
use gpuarray::{Array, DType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;

/// A declared argument.
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
    /// True if the expressions access it at the running index: its length equals the others'.
    pub(super) indexed: bool,
    /// True if they also access it at other indices: it may be longer.
    elsewhere: bool,
    pub(super) access: Access,
}

impl Vector {
    /// Returns true if an array with `elements` elements can be visited together with others of `size`.
    fn fits(&self, elements: usize, size: usize) -> bool {
        !self.indexed || elements == size || (self.elsewhere && elements > size)
    }
}

/// The declared arguments of a kernel, in order.
pub(super) struct Signature {
    pub(super) name: String,
    parameters: Vec<Parameter>,
    /// True if the expressions use the running index only to access arrays, so that elements may be visited in
    /// any order.
    pub(super) order_free: bool,
}

/// The arrays of a call, in the order of the declared vectors.
pub(super) type Arrays<'a> = SmallVec<[(Vector, &'a Array); 6]>;

impl Signature {
    /// Parses one tuple for each argument:
    ///
    /// - its name
    /// - the dtype of an array, or the format code of another argument
    /// - for an array, whether it is accessed at the running index
    /// - for an array, whether it is accessed at other indices
    /// - for an array, whether the kernel only reads it
    pub(super) fn parse(
        name: String,
        parameters: &Bound<'_, PyAny>,
        order_free: bool,
    ) -> PyResult<Signature> {
        let parameters = parameters
            .try_iter()?
            .map(|item| {
                type Item<'py> = (String, Bound<'py, PyAny>, bool, bool, bool);
                let (name, of, indexed, elsewhere, constant): Item<'_> = item?.extract()?;
                let form = match of.cast::<PyString>() {
                    Ok(text) => Form::Scalar(code(&text.to_cow()?).map_err(PyTypeError::new_err)?),
                    Err(_) => Form::Vector(Vector {
                        dtype: dtypes::parse(&of)?.1,
                        indexed,
                        elsewhere,
                        access: if constant { Access::Read } else { Access::Write },
                    }),
                };
                Ok(Parameter { name, form })
            })
            .collect::<PyResult<Vec<_>>>()?;
        Ok(Signature { name, parameters, order_free })
    }

    /// Returns the arguments with objects that only provide an address (`gpudata`) replaced by arrays, as
    /// PyCUDA's kernels accept them. Returns `None` if there are no such objects.
    pub(super) fn adopt<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let is_vector = |parameter: &Parameter| matches!(parameter.form, Form::Vector(_));
        let arrays = || {
            self.parameters.iter().zip(arguments.iter_borrowed()).filter(|(it, _)| is_vector(it))
        };
        if arrays().all(|(_, value)| value.cast::<GPUArray>().is_ok()) {
            return Ok(None);
        }
        let py = arguments.py();
        let declared = self.parameters.iter().map(|parameter| match &parameter.form {
            Form::Vector(vector) => Ok(Some((dtypes::to_numpy(py, vector.dtype)?, vector.indexed))),
            Form::Scalar(_) => Ok(None),
        });
        let declared = declared.collect::<PyResult<Vec<_>>>()?;
        let adopt = py.import("pygpu._exchange.protocols")?.getattr("adopt")?;
        Ok(Some(adopt.call1((arguments, declared))?.cast_into::<PyTuple>()?))
    }

    /// Checks the number and the kinds of the arguments, and returns the arrays.
    ///
    /// Raises `TypeError` for a wrong number of arguments, for an object that is not an array, and for an array
    /// whose elements have another size or are misaligned for the declared type. As in PyCUDA, whose kernels
    /// take the address, dtypes of equal size are interchangeable: the kernel reads the bytes as its own type.
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
            if array.dtype() != vector.dtype {
                check_stands_for(array, vector.dtype).map_err(|reason| {
                    PyTypeError::new_err(format!(
                        "argument {} of kernel {} has dtype {}; its declaration says {}{reason}",
                        parameter.name,
                        self.name,
                        array.dtype(),
                        vector.dtype
                    ))
                })?;
            }
            arrays.push((*vector, array));
        }
        Ok(arrays)
    }

    #[cold]
    fn wrong_number(&self, given: usize) -> PyErr {
        let names: Vec<_> = self.parameters.iter().map(|it| it.name.as_str()).collect();
        PyTypeError::new_err(format!(
            "kernel {} takes {} argument{} ({}); the call has {given}",
            self.name,
            names.len(),
            if names.len() == 1 { "" } else { "s" },
            names.join(", ")
        ))
    }

    fn vector_name(&self, position: usize) -> &str {
        let vectors = self.parameters.iter().filter(|it| matches!(it.form, Form::Vector(_)));
        vectors.map(|it| it.name.as_str()).nth(position).unwrap_or_default()
    }

    /// Returns the number of elements that a call visits: the first array's number or, if that array is also
    /// accessed elsewhere, the number of a shorter array that is not.
    ///
    /// Raises `ValueError` unless all arrays that the running index accesses have the same number of elements.
    /// Arrays that are also accessed elsewhere may have more.
    pub(super) fn count(&self, arrays: &Arrays<'_>) -> PyResult<usize> {
        let Some((first, array)) = arrays.first() else { return Ok(0) };
        let own = |(vector, _): &(Vector, &Array)| vector.indexed && !vector.elsewhere;
        let shorter = (first.indexed && first.elsewhere)
            .then(|| arrays.iter().position(own))
            .flatten()
            .filter(|&it| arrays[it].1.size() < array.size());
        let leader = shorter.unwrap_or(0);
        let size = arrays[leader].1.size();
        let other = |(vector, array): &(Vector, &Array)| !vector.fits(array.size(), size);
        match arrays.iter().position(other) {
            None => Ok(size),
            Some(position) => {
                let given = arrays[position].1.size();
                let remedy = match given < size {
                    true => format!(": put the output first, or pass range=slice(0, {given})"),
                    false => "; all need the same number of elements".into(),
                };
                Err(PyValueError::new_err(format!(
                    "array {} of kernel {} has size {given}; array {} has size {size}{remedy}",
                    self.vector_name(position),
                    self.name,
                    self.vector_name(leader),
                )))
            }
        }
    }

    /// Raises `ValueError` unless all arrays that the running index accesses contain the elements from `least`
    /// to `most`.
    pub(super) fn check_range(&self, arrays: &Arrays<'_>, least: i64, most: i64) -> PyResult<()> {
        let outside = |(vector, array): &(Vector, &Array)| {
            vector.indexed && (least < 0 || most as u64 >= array.size() as u64)
        };
        match arrays.iter().position(outside) {
            None => Ok(()),
            Some(position) => Err(PyValueError::new_err(format!(
                "the range reaches from element {least} to {most}; array {} of kernel {} has size {}",
                self.vector_name(position),
                self.name,
                arrays[position].1.size(),
            ))),
        }
    }

    /// Adds the arguments to a list, with arrays at the given addresses.
    pub(super) fn pack<'a>(
        &self,
        arguments: &'a Bound<'_, PyTuple>,
        arrays: &[(Vector, &'a Array)],
        addresses: &[u64],
        list: &mut ArgumentList<'a>,
    ) -> PyResult<()> {
        let mut next = arrays.iter().zip(addresses);
        for (parameter, value) in self.parameters.iter().zip(arguments.iter_borrowed()) {
            match &parameter.form {
                Form::Scalar(code) => {
                    let place = Place::Named { argument: &parameter.name, kernel: &self.name };
                    push_as(*code, value, place, list)?;
                }
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

/// Checks that a kernel can read the elements of an array as another dtype. The error is the end of a sentence.
#[cold]
fn check_stands_for(array: &Array, declared: DType) -> Result<(), String> {
    let given = array.dtype();
    if given.size() != declared.size() {
        let sizes = (given.size(), declared.size());
        return Err(format!(
            "; the array has {}-byte elements, not {}-byte elements",
            sizes.0, sizes.1
        ));
    }
    let alignment = declared.alignment();
    let mut steps = array.shape().iter().zip(array.strides()).filter(|(extent, _)| **extent > 1);
    let is_aligned = array.address().is_multiple_of(alignment as u64)
        && steps.all(|(_, stride)| stride.unsigned_abs().is_multiple_of(alignment));
    if !is_aligned {
        return Err(format!(", whose elements need an alignment of {alignment}"));
    }
    Ok(())
}

/// Refuses keywords that a launcher's call does not support.
pub(super) fn refuse_keywords(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let Some(keywords) = keywords.filter(|keywords| !keywords.is_empty()) else {
        return Ok(());
    };
    let names: Vec<_> = keywords.keys().iter().map(|name| name.to_string()).collect();
    Err(PyTypeError::new_err(format!("invalid keyword arguments specified: {}", names.join(", "))))
}
