//! Arrays as arguments of launches.

use super::{Array, DeviceArray};
use hal::dtype::Element;
use hal::error::Result;
use hal::launch::{ArgumentList, KernelArgument};
use hal::memory::Access;

/// The address of the first element. The kernel must not write the array: other streams may read it
/// at the same time, and launches with the same argument are not ordered.
impl<T: Element> KernelArgument for &DeviceArray<T> {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        let array = self.untyped();
        list.memory(array.address(), array.memory(), Access::Read);
        Ok(())
    }
}

/// The address of the first element; the kernel reads and writes the array.
impl<T: Element> KernelArgument for &mut DeviceArray<T> {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        self.untyped().add_to(list)
    }
}

/// The address of the first element; the kernel may read and write the array.
impl KernelArgument for Array {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        list.memory(self.address(), self.memory(), Access::Write);
        Ok(())
    }
}
