//! Opening a vendor's library at run time.
