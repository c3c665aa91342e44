//! Copies between host and device.

use super::Array;
use crate::layout::shape_text;
use hal::error::{Error, Result};
use hal::memory::{Access, AccessGuard, GraphObject};
use hal::recording::{self, Work};
use hal::stream::{Direction, Transfer};

impl Array {
    /// Copies bytes from host memory to all elements of the array, in this array's memory order.
    /// If `wait` is true, the call returns after the bytes have arrived, otherwise after the copy
    /// is queued on the array's stream.
    ///
    /// # Errors
    /// `InvalidArgument` if the array is not contiguous.
    ///
    /// # Safety
    /// The bytes can be read, and remain readable and unchanged until the copy has run.
    pub unsafe fn upload(&self, source: *const u8, wait: bool) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.upload_from(source, wait, None) }
    }

    /// Like [`Array::upload`]. If the copy is captured, the graphs that contain it keep `owner`.
    ///
    /// # Errors
    /// As for [`Array::upload`].
    ///
    /// # Safety
    /// As for [`Array::upload`].
    pub unsafe fn upload_from(
        &self,
        source: *const u8,
        wait: bool,
        owner: Option<&GraphObject>,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        self.during(|| unsafe {
            self.transfer(Direction::HostToDevice, source as u64, wait, owner)
        })
    }

    /// Copies the array's bytes to host memory, in this array's memory order.
    ///
    /// # Errors
    /// `InvalidArgument` if the array is not contiguous.
    ///
    /// # Safety
    /// The bytes can be written, and remain writable and are not accessed elsewhere until the copy
    /// has run.
    pub unsafe fn download(&self, destination: *mut u8, wait: bool) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.download_to(destination, wait, None) }
    }

    /// Like [`Array::download`]. If the copy is captured, the graphs that contain it keep `owner`.
    ///
    /// # Errors
    /// As for [`Array::download`].
    ///
    /// # Safety
    /// As for [`Array::download`].
    pub unsafe fn download_to(
        &self,
        destination: *mut u8,
        wait: bool,
        owner: Option<&GraphObject>,
    ) -> Result<()> {
        let destination = destination as u64;
        // SAFETY: the caller's promise.
        self.during(|| unsafe { self.transfer(Direction::DeviceToHost, destination, wait, owner) })
    }

    /// # Safety
    /// As for `upload` and `download`.
    unsafe fn transfer(
        &self,
        direction: Direction,
        host: u64,
        wait: bool,
        owner: Option<&GraphObject>,
    ) -> Result<()> {
        if !self.layout.is_packed() {
            return Err(Error::invalid(
                "transfer",
                format!(
                    "an array of shape {} and strides {:?} has gaps; copy it first",
                    shape_text(self.shape()),
                    self.strides()
                ),
            ));
        }
        let bytes = self.layout.nbytes();
        if bytes == 0 {
            return Ok(());
        }
        let (destination, source, access) = match direction {
            Direction::HostToDevice => (self.address(), host, Access::Write),
            _ => (host, self.address(), Access::Read),
        };
        let transfer = Transfer::linear(direction, destination, source, bytes, wait);
        self.stream().wait_for_room();
        let _guard =
            AccessGuard::acquire_for_transfer(self.stream(), &[(&self.memory, access)], &transfer)?;
        owner.map_or(Ok(()), |owner| self.stream().keep_object(owner))?;
        let stream = self.stream().as_ref();
        // SAFETY: the array's bytes are one block inside its memory, the guard orders the work, and
        // the caller guarantees the validity of the host's bytes.
        let copy = || unsafe { stream.transfer(&transfer) };
        recording::queued(stream, || Work::copy(&transfer), copy)
    }
}
