//! Macros for enumerations that list all their values, and for structs whose options are set one by
//! one.

/// Defines an enumeration with a complete list of its values.
macro_rules! enumeration {
    ($(#[$outer:meta])* pub enum $name:ident { $($(#[$inner:meta])* $variant:ident,)* }) => {
        $(#[$outer])*
        pub enum $name { $($(#[$inner])* $variant,)* }

        impl $name {
            /// Every value.
            pub const ALL: [$name; [$($name::$variant),*].len()] = [$($name::$variant),*];
        }
    };
}
pub(crate) use enumeration;

/// Defines a method for each option of a struct. The method returns the options with that one
/// changed.
macro_rules! setters {
    ($name:ident: $($option:ident: $value:ty;)*) => {
        impl $name {
            $(
                #[doc = concat!("Returns these with another [`", stringify!($option), "`](field@Self::", stringify!($option), ").")]
                #[must_use]
                pub const fn $option(mut self, $option: $value) -> Self {
                    self.$option = $option;
                    self
                }
            )*
        }
    };
}
pub(crate) use setters;
