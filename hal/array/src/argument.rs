//! Arrays as arguments of launches.

use super::{Array, DeviceArray};
use crate::layout::shape_text;
use hal::dtype::Element;
use hal::error::{Error, Result};
use hal::launch::{ArgumentList, KernelArgument};
use hal::memory::Access;

/// Passes an array of any strides as an argument of a launch, for a kernel that knows the strides. `Strided(&x)`
/// is passed like `&x`, and `Strided(&mut y)` like `&mut y`.
///
/// A kernel that receives the stride and fills every second element:
///
/// ```
/// use gpuarray::{DeviceArray, LaunchConfig, LoadOptions, ModuleSource, Strided, s};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let text = r#"extern "C" __global__ void fill(int *x, int stride) { x[threadIdx.x * stride] = 1; }"#;
/// let source = ModuleSource::Source { text, name: "fill.cu", options: &[] };
/// // SAFETY: the text has no variables whose initialisers would run.
/// let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let x = DeviceArray::<i32>::zeros(&device, &[6])?;
/// let mut even = x.index(&s![..;2])?;
/// let (block, stream) = (LaunchConfig::linear(3, 3), device.default_stream());
/// // SAFETY: three threads with a stride of 2 stay inside the six elements.
/// unsafe { module.kernel("fill")?.launch(block, &stream, (Strided(&mut even), 2))? };
/// assert_eq!(x.to_vec()?, [1, 0, 1, 0, 1, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Strided<A>(pub A);

/// Adds the address of the first element, if the array is contiguous.
fn add<'a>(array: &'a Array, access: Access, list: &mut ArgumentList<'a>) -> Result<()> {
    let layout = array.layout();
    if !layout.is_c_contiguous() && !layout.is_f_contiguous() {
        return Err(Error::invalid(
            "launch",
            format!(
                "argument {} is a view of shape {} and strides {} in bytes; a kernel is given the first element's \
                 address only: pass a copy(), or Strided(..) if it knows the strides",
                list.len(),
                shape_text(array.shape()),
                shape_text(array.strides())
            ),
        ));
    }
    list.memory(array.address(), array.memory(), access);
    Ok(())
}

/// Passes the address of the first element of an array that is contiguous in C or Fortran order. The kernel must
/// not write to the array: other streams may read it at the same time, and launches that only read the array are
/// not ordered.
impl<T: Element> KernelArgument for &DeviceArray<T> {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        add(self.untyped(), Access::Read, list)
    }
}

/// As for `&DeviceArray`.
impl<T: Element> KernelArgument for DeviceArray<T> {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        add(self.untyped(), Access::Read, list)
    }
}

/// Passes the address of the first element of a contiguous array. The kernel may read and write the array.
impl<T: Element> KernelArgument for &mut DeviceArray<T> {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        add(self.untyped(), Access::Write, list)
    }
}

/// Passes the address of the first element of a contiguous array. The kernel may read and write the array.
impl KernelArgument for Array {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        add(self, Access::Write, list)
    }
}

impl<T: Element> KernelArgument for Strided<&DeviceArray<T>> {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        let array = self.0.untyped();
        list.memory(array.address(), array.memory(), Access::Read);
        Ok(())
    }
}

impl<T: Element> KernelArgument for Strided<&mut DeviceArray<T>> {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        let array = self.0.untyped();
        list.memory(array.address(), array.memory(), Access::Write);
        Ok(())
    }
}
