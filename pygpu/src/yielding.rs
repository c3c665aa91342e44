//! Properties that an object's own attributes can override.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_void;

/// A property that yields to an attribute of the same name that a program has set on the object.
///
/// PyCUDA's objects accept any attribute, so a property that PyCUDA lacks must not prevent one. Without `__set__`,
/// Python searches the object's dictionary first.
#[pyclass(frozen, name = "YieldingProperty", module = "pygpu._core")]
pub(crate) struct YieldingProperty {
    property: Py<PyAny>,
    /// The class's `__get__`; looking it up by name would take longer than most properties.
    get: ffi::descrgetfunc,
}

#[pymethods]
impl YieldingProperty {
    /// Decorates the function that returns the value, like `property`.
    #[new]
    fn new(function: &Bound<'_, PyAny>) -> PyResult<YieldingProperty> {
        let builtins = function.py().import("builtins")?;
        let property = builtins.getattr("property")?.call1((function,))?;
        YieldingProperty::of(property)
    }

    fn __get__(
        &self,
        py: Python<'_>,
        object: Option<&Bound<'_, PyAny>>,
        owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let Some(object) = object else { return Ok(self.property.clone_ref(py)) };
        let owner = owner.map_or(std::ptr::null_mut(), Bound::as_ptr);
        // SAFETY: the function belongs to the property's class, and the objects are alive. The result is a new
        // reference, or null with an exception.
        unsafe {
            let value = (self.get)(self.property.as_ptr(), object.as_ptr(), owner);
            Bound::from_owned_ptr_or_err(py, value).map(Bound::unbind)
        }
    }
}

impl YieldingProperty {
    fn of(property: Bound<'_, PyAny>) -> PyResult<YieldingProperty> {
        let class = property.get_type();
        // SAFETY: the class is alive; a slot with this number is null or such a function.
        let get = unsafe {
            let slot = ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_descr_get);
            std::mem::transmute::<*mut c_void, Option<ffi::descrgetfunc>>(slot)
        };
        let get = get
            .ok_or_else(|| PyTypeError::new_err(format!("{class} is not a class of properties")))?;
        Ok(YieldingProperty { property: property.unbind(), get })
    }
}

/// The properties of the module's classes that PyCUDA's classes lack, or have as plain attributes.
const OWN: [(&str, &[&str]); 8] = [
    ("DeviceAllocation", &["size"]),
    ("Event", &["handle", "last_status"]),
    ("Function", &["arg_format", "name"]),
    ("GPUArray", &["base", "last_status", "_grid", "_block"]),
    ("Module", &["log"]),
    ("PagelockedHostAllocation", &["size"]),
    ("PooledDeviceAllocation", &["size"]),
    ("Stream", &["flags", "last_status", "priority"]),
];

/// Makes these properties yield.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for (class, names) in OWN {
        let class = module.getattr(class)?;
        for name in names {
            class.setattr(*name, YieldingProperty::of(class.getattr(*name)?)?)?;
        }
    }
    Ok(())
}
