//! Properties that an object's own attributes take the place of.

use pyo3::intern;
use pyo3::prelude::*;

/// A property that yields to an attribute of the same name which a program has set on the object.
///
/// PyCUDA's objects take any attribute, so a property that PyCUDA does not have must not be in the way of one. Without
/// `__set__` Python looks into the object's dictionary first.
#[pyclass(frozen, name = "YieldingProperty", module = "pygpu._core")]
pub(crate) struct YieldingProperty(Py<PyAny>);

#[pymethods]
impl YieldingProperty {
    /// Decorates the function that returns the value, as `property` does.
    #[new]
    fn new(function: &Bound<'_, PyAny>) -> PyResult<YieldingProperty> {
        let builtins = function.py().import("builtins")?;
        let property = builtins.getattr("property")?.call1((function,))?;
        Ok(YieldingProperty(property.unbind()))
    }

    fn __get__(
        &self,
        py: Python<'_>,
        object: Option<&Bound<'_, PyAny>>,
        owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        match object {
            Some(object) => self.0.call_method1(py, intern!(py, "__get__"), (object, owner)),
            None => Ok(self.0.clone_ref(py)),
        }
    }
}

/// The properties of the module's classes that PyCUDA's do not have, or have as plain attributes.
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
            let property = class.getattr(*name)?.unbind();
            class.setattr(*name, YieldingProperty(property))?;
        }
    }
    Ok(())
}
