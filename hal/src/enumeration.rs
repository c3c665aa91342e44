//! Enumerations that know all their values.

/// Defines an enumeration whose list of all values cannot miss one.
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
