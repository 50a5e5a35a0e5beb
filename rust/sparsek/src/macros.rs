//! What the builders of problems share.

/// Setters of a problem, each with the example that documentation shows.
macro_rules! setters {
    ($problem:ident($sizes:literal): $($setters:tt)*) => {
        setters! { of concat!(stringify!($problem), "::new(", $sizes, ")"), $($setters)* }
    };
    (of $made:expr, $($(#[$doc:meta])+ $name:ident($argument:ident: $type:ident) $field:ident = $value:expr;)*) => {$(
        $(#[$doc])+
        ///
        /// ```
        /// # use sparsek::*;
        #[doc = concat!("let problem = ", $made, ".", stringify!($name), "(", example!($type), ");")]
        /// # let _ = problem;
        /// ```
        pub fn $name(mut self, $argument: $type) -> Self {
            self.raw.$field = $value;
            self
        }
    )*};
}

macro_rules! example {
    (usize) => {
        "16"
    };
    (bool) => {
        "true"
    };
    (Layout) => {
        "Layout::ColMajor"
    };
    (Diagonal) => {
        "Diagonal::BottomRight"
    };
    (Activation) => {
        "Activation::Relu"
    };
}
