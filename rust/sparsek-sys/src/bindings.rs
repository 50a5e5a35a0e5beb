// Generated from sparsek/sparsek.h by tests/current.rs: do not edit.

pub const SPK_VERSION_MAJOR: u32 = 0;
pub const SPK_VERSION_MINOR: u32 = 2;
pub const SPK_VERSION_PATCH: u32 = 0;
pub const SPK_FIRST_OUTPUT: i32 = -1;
unsafe extern "C" {
    pub fn spk_version() -> *const ::std::os::raw::c_char;
}
unsafe extern "C" {
    pub fn spk_version_number() -> ::std::os::raw::c_int;
}
unsafe extern "C" {
    pub fn spk_commit() -> *const ::std::os::raw::c_char;
}
pub const SPK_OK: spk_status = spk_status(0);
pub const SPK_ERR_ARGUMENT: spk_status = spk_status(1);
pub const SPK_ERR_OUT_OF_MEMORY: spk_status = spk_status(2);
pub const SPK_ERR_UNSUPPORTED: spk_status = spk_status(3);
pub const SPK_ERR_UNAVAILABLE: spk_status = spk_status(4);
pub const SPK_ERR_IO: spk_status = spk_status(5);
pub const SPK_ERR_FORMAT: spk_status = spk_status(6);
pub const SPK_ERR_NO_CANDIDATE: spk_status = spk_status(7);
pub const SPK_ERR_UNKNOWN_CLASS: spk_status = spk_status(8);
pub const SPK_ERR_INTERRUPTED: spk_status = spk_status(9);
pub const SPK_ERR_NO_SPACE: spk_status = spk_status(10);
pub const SPK_ERR_INTERNAL: spk_status = spk_status(11);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_status(pub ::std::os::raw::c_uint);
unsafe extern "C" {
    pub fn spk_status_name(status: spk_status) -> *const ::std::os::raw::c_char;
}
pub const SPK_DTYPE_DEFAULT: spk_dtype = spk_dtype(0);
pub const SPK_F32: spk_dtype = spk_dtype(1);
pub const SPK_F64: spk_dtype = spk_dtype(2);
pub const SPK_F16: spk_dtype = spk_dtype(3);
pub const SPK_BF16: spk_dtype = spk_dtype(4);
pub const SPK_F8E4M3: spk_dtype = spk_dtype(5);
pub const SPK_F8E5M2: spk_dtype = spk_dtype(6);
pub const SPK_TF32: spk_dtype = spk_dtype(7);
pub const SPK_INT32: spk_dtype = spk_dtype(8);
pub const SPK_INT8: spk_dtype = spk_dtype(9);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_dtype(pub ::std::os::raw::c_uint);
pub const SPK_ROW_MAJOR: spk_layout = spk_layout(0);
pub const SPK_COL_MAJOR: spk_layout = spk_layout(1);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_layout(pub ::std::os::raw::c_uint);
pub const SPK_NO_TRANS: spk_trans = spk_trans(0);
pub const SPK_TRANS: spk_trans = spk_trans(1);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_trans(pub ::std::os::raw::c_uint);
pub const SPK_INDEX_I32: spk_index_type = spk_index_type(0);
pub const SPK_INDEX_I64: spk_index_type = spk_index_type(64);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_index_type(pub ::std::os::raw::c_uint);
pub const SPK_HOST: spk_memory = spk_memory(0);
pub const SPK_DEVICE: spk_memory = spk_memory(1);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_memory(pub ::std::os::raw::c_uint);
pub const SPK_SPMM: spk_operation = spk_operation(1);
pub const SPK_SDDMM: spk_operation = spk_operation(2);
pub const SPK_GEMM: spk_operation = spk_operation(3);
pub const SPK_ATTENTION: spk_operation = spk_operation(4);
pub const SPK_ATTENTION_BACKWARD: spk_operation = spk_operation(5);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_operation(pub ::std::os::raw::c_uint);
pub const SPK_ACT_NONE: spk_activation = spk_activation(0);
pub const SPK_ACT_RELU: spk_activation = spk_activation(1);
pub const SPK_ACT_GELU_ERF: spk_activation = spk_activation(2);
pub const SPK_ACT_GELU_TANH: spk_activation = spk_activation(3);
pub const SPK_ACT_SILU: spk_activation = spk_activation(4);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_activation(pub ::std::os::raw::c_uint);
pub const SPK_RESIDUAL_NONE: spk_residual = spk_residual(0);
pub const SPK_RESIDUAL_ADD: spk_residual = spk_residual(1);
pub const SPK_RESIDUAL_MULTIPLY: spk_residual = spk_residual(2);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_residual(pub ::std::os::raw::c_uint);
pub const SPK_GROUP_NONE: spk_group_axis = spk_group_axis(0);
pub const SPK_GROUP_ROWS: spk_group_axis = spk_group_axis(1);
pub const SPK_GROUP_COLS: spk_group_axis = spk_group_axis(2);
pub const SPK_GROUP_DEPTH: spk_group_axis = spk_group_axis(3);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_group_axis(pub ::std::os::raw::c_uint);
pub const SPK_DIAGONAL_NONE: spk_diagonal = spk_diagonal(0);
pub const SPK_DIAGONAL_TOP_LEFT: spk_diagonal = spk_diagonal(1);
pub const SPK_DIAGONAL_BOTTOM_RIGHT: spk_diagonal = spk_diagonal(2);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_diagonal(pub ::std::os::raw::c_uint);
pub const SPK_BIAS_NONE: spk_bias = spk_bias(0);
pub const SPK_BIAS_PER_ROW: spk_bias = spk_bias(1);
pub const SPK_BIAS_PER_COL: spk_bias = spk_bias(2);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_bias(pub ::std::os::raw::c_uint);
unsafe extern "C" {
    pub fn spk_dtype_name(dtype: spk_dtype) -> *const ::std::os::raw::c_char;
}
unsafe extern "C" {
    pub fn spk_dtype_bytes(dtype: spk_dtype) -> usize;
}
unsafe extern "C" {
    pub fn spk_dtype_from_name(name: *const ::std::os::raw::c_char) -> spk_dtype;
}
#[repr(C)]
#[derive(Debug)]
pub struct spk_context {
    _unused: [u8; 0],
}
pub type spk_parallel_body = ::std::option::Option<
    unsafe extern "C" fn(arg: *mut ::std::os::raw::c_void, task: i64),
>;
pub type spk_parallel_for = ::std::option::Option<
    unsafe extern "C" fn(
        user: *mut ::std::os::raw::c_void,
        tasks: i64,
        body: spk_parallel_body,
        arg: *mut ::std::os::raw::c_void,
    ),
>;
pub type spk_allocate = ::std::option::Option<
    unsafe extern "C" fn(
        user: *mut ::std::os::raw::c_void,
        bytes: usize,
        alignment: usize,
    ) -> *mut ::std::os::raw::c_void,
>;
pub type spk_release = ::std::option::Option<
    unsafe extern "C" fn(
        user: *mut ::std::os::raw::c_void,
        memory: *mut ::std::os::raw::c_void,
        bytes: usize,
    ),
>;
pub type spk_device_allocate = ::std::option::Option<
    unsafe extern "C" fn(
        user: *mut ::std::os::raw::c_void,
        bytes: usize,
        stream: *mut ::std::os::raw::c_void,
    ) -> *mut ::std::os::raw::c_void,
>;
pub type spk_device_release = ::std::option::Option<
    unsafe extern "C" fn(
        user: *mut ::std::os::raw::c_void,
        memory: *mut ::std::os::raw::c_void,
        bytes: usize,
        stream: *mut ::std::os::raw::c_void,
    ),
>;
pub type spk_log = ::std::option::Option<
    unsafe extern "C" fn(
        user: *mut ::std::os::raw::c_void,
        level: ::std::os::raw::c_int,
        message: *const ::std::os::raw::c_char,
    ),
>;
pub type spk_progress = ::std::option::Option<
    unsafe extern "C" fn(
        user: *mut ::std::os::raw::c_void,
        done: i64,
        total: i64,
        what: *const ::std::os::raw::c_char,
    ),
>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_context_options {
    pub struct_size: usize,
    pub device: *const ::std::os::raw::c_char,
    pub store_path: *const ::std::os::raw::c_char,
    pub threads: ::std::os::raw::c_int,
    pub parallel_for: spk_parallel_for,
    pub parallel_user: *mut ::std::os::raw::c_void,
    pub allocate: spk_allocate,
    pub release: spk_release,
    pub allocate_user: *mut ::std::os::raw::c_void,
    pub log: spk_log,
    pub log_user: *mut ::std::os::raw::c_void,
    pub progress: spk_progress,
    pub progress_user: *mut ::std::os::raw::c_void,
    pub device_allocate: spk_device_allocate,
    pub device_release: spk_device_release,
    pub device_user: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of spk_context_options",
    ][::std::mem::size_of::<spk_context_options>() - 128usize];
    [
        "Alignment of spk_context_options",
    ][::std::mem::align_of::<spk_context_options>() - 8usize];
    [
        "Offset of field: spk_context_options::struct_size",
    ][::std::mem::offset_of!(spk_context_options, struct_size) - 0usize];
    [
        "Offset of field: spk_context_options::device",
    ][::std::mem::offset_of!(spk_context_options, device) - 8usize];
    [
        "Offset of field: spk_context_options::store_path",
    ][::std::mem::offset_of!(spk_context_options, store_path) - 16usize];
    [
        "Offset of field: spk_context_options::threads",
    ][::std::mem::offset_of!(spk_context_options, threads) - 24usize];
    [
        "Offset of field: spk_context_options::parallel_for",
    ][::std::mem::offset_of!(spk_context_options, parallel_for) - 32usize];
    [
        "Offset of field: spk_context_options::parallel_user",
    ][::std::mem::offset_of!(spk_context_options, parallel_user) - 40usize];
    [
        "Offset of field: spk_context_options::allocate",
    ][::std::mem::offset_of!(spk_context_options, allocate) - 48usize];
    [
        "Offset of field: spk_context_options::release",
    ][::std::mem::offset_of!(spk_context_options, release) - 56usize];
    [
        "Offset of field: spk_context_options::allocate_user",
    ][::std::mem::offset_of!(spk_context_options, allocate_user) - 64usize];
    [
        "Offset of field: spk_context_options::log",
    ][::std::mem::offset_of!(spk_context_options, log) - 72usize];
    [
        "Offset of field: spk_context_options::log_user",
    ][::std::mem::offset_of!(spk_context_options, log_user) - 80usize];
    [
        "Offset of field: spk_context_options::progress",
    ][::std::mem::offset_of!(spk_context_options, progress) - 88usize];
    [
        "Offset of field: spk_context_options::progress_user",
    ][::std::mem::offset_of!(spk_context_options, progress_user) - 96usize];
    [
        "Offset of field: spk_context_options::device_allocate",
    ][::std::mem::offset_of!(spk_context_options, device_allocate) - 104usize];
    [
        "Offset of field: spk_context_options::device_release",
    ][::std::mem::offset_of!(spk_context_options, device_release) - 112usize];
    [
        "Offset of field: spk_context_options::device_user",
    ][::std::mem::offset_of!(spk_context_options, device_user) - 120usize];
};
unsafe extern "C" {
    pub fn spk_context_create(
        options: *const spk_context_options,
        context: *mut *mut spk_context,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_context_destroy(context: *mut *mut spk_context);
}
unsafe extern "C" {
    pub fn spk_last_error(context: *const spk_context) -> *const ::std::os::raw::c_char;
}
unsafe extern "C" {
    pub fn spk_context_interrupt(context: *mut spk_context);
}
unsafe extern "C" {
    pub fn spk_context_resume(context: *mut spk_context);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_device_info {
    pub struct_size: usize,
    pub kind: *const ::std::os::raw::c_char,
    pub name: *const ::std::os::raw::c_char,
    pub threads: ::std::os::raw::c_int,
    pub isa_count: ::std::os::raw::c_int,
    pub isa: [*const ::std::os::raw::c_char; 16usize],
    pub l1_bytes: i64,
    pub l2_bytes: i64,
    pub l3_bytes: i64,
    pub memory_bytes: i64,
    pub processors: ::std::os::raw::c_int,
    pub clock_mhz: f64,
    pub power_w: f64,
    pub proved_candidates: ::std::os::raw::c_int,
    pub reserved: ::std::os::raw::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_device_info"][::std::mem::size_of::<spk_device_info>() - 224usize];
    ["Alignment of spk_device_info"][::std::mem::align_of::<spk_device_info>() - 8usize];
    [
        "Offset of field: spk_device_info::struct_size",
    ][::std::mem::offset_of!(spk_device_info, struct_size) - 0usize];
    [
        "Offset of field: spk_device_info::kind",
    ][::std::mem::offset_of!(spk_device_info, kind) - 8usize];
    [
        "Offset of field: spk_device_info::name",
    ][::std::mem::offset_of!(spk_device_info, name) - 16usize];
    [
        "Offset of field: spk_device_info::threads",
    ][::std::mem::offset_of!(spk_device_info, threads) - 24usize];
    [
        "Offset of field: spk_device_info::isa_count",
    ][::std::mem::offset_of!(spk_device_info, isa_count) - 28usize];
    [
        "Offset of field: spk_device_info::isa",
    ][::std::mem::offset_of!(spk_device_info, isa) - 32usize];
    [
        "Offset of field: spk_device_info::l1_bytes",
    ][::std::mem::offset_of!(spk_device_info, l1_bytes) - 160usize];
    [
        "Offset of field: spk_device_info::l2_bytes",
    ][::std::mem::offset_of!(spk_device_info, l2_bytes) - 168usize];
    [
        "Offset of field: spk_device_info::l3_bytes",
    ][::std::mem::offset_of!(spk_device_info, l3_bytes) - 176usize];
    [
        "Offset of field: spk_device_info::memory_bytes",
    ][::std::mem::offset_of!(spk_device_info, memory_bytes) - 184usize];
    [
        "Offset of field: spk_device_info::processors",
    ][::std::mem::offset_of!(spk_device_info, processors) - 192usize];
    [
        "Offset of field: spk_device_info::clock_mhz",
    ][::std::mem::offset_of!(spk_device_info, clock_mhz) - 200usize];
    [
        "Offset of field: spk_device_info::power_w",
    ][::std::mem::offset_of!(spk_device_info, power_w) - 208usize];
    [
        "Offset of field: spk_device_info::proved_candidates",
    ][::std::mem::offset_of!(spk_device_info, proved_candidates) - 216usize];
    [
        "Offset of field: spk_device_info::reserved",
    ][::std::mem::offset_of!(spk_device_info, reserved) - 220usize];
};
unsafe extern "C" {
    pub fn spk_context_get_device(
        context: *mut spk_context,
        info: *mut spk_device_info,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_device_entry {
    pub struct_size: usize,
    pub device: *const ::std::os::raw::c_char,
    pub name: *const ::std::os::raw::c_char,
    pub memory_bytes: i64,
    pub why: *const ::std::os::raw::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_device_entry"][::std::mem::size_of::<spk_device_entry>() - 40usize];
    [
        "Alignment of spk_device_entry",
    ][::std::mem::align_of::<spk_device_entry>() - 8usize];
    [
        "Offset of field: spk_device_entry::struct_size",
    ][::std::mem::offset_of!(spk_device_entry, struct_size) - 0usize];
    [
        "Offset of field: spk_device_entry::device",
    ][::std::mem::offset_of!(spk_device_entry, device) - 8usize];
    [
        "Offset of field: spk_device_entry::name",
    ][::std::mem::offset_of!(spk_device_entry, name) - 16usize];
    [
        "Offset of field: spk_device_entry::memory_bytes",
    ][::std::mem::offset_of!(spk_device_entry, memory_bytes) - 24usize];
    [
        "Offset of field: spk_device_entry::why",
    ][::std::mem::offset_of!(spk_device_entry, why) - 32usize];
};
unsafe extern "C" {
    pub fn spk_device_list(
        visit: ::std::option::Option<
            unsafe extern "C" fn(
                user: *mut ::std::os::raw::c_void,
                entry: *const spk_device_entry,
            ) -> ::std::os::raw::c_int,
        >,
        user: *mut ::std::os::raw::c_void,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_library_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub found: ::std::os::raw::c_int,
    pub path: *const ::std::os::raw::c_char,
    pub version: *const ::std::os::raw::c_char,
    pub why: *const ::std::os::raw::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_library_info"][::std::mem::size_of::<spk_library_info>() - 48usize];
    [
        "Alignment of spk_library_info",
    ][::std::mem::align_of::<spk_library_info>() - 8usize];
    [
        "Offset of field: spk_library_info::struct_size",
    ][::std::mem::offset_of!(spk_library_info, struct_size) - 0usize];
    [
        "Offset of field: spk_library_info::name",
    ][::std::mem::offset_of!(spk_library_info, name) - 8usize];
    [
        "Offset of field: spk_library_info::found",
    ][::std::mem::offset_of!(spk_library_info, found) - 16usize];
    [
        "Offset of field: spk_library_info::path",
    ][::std::mem::offset_of!(spk_library_info, path) - 24usize];
    [
        "Offset of field: spk_library_info::version",
    ][::std::mem::offset_of!(spk_library_info, version) - 32usize];
    [
        "Offset of field: spk_library_info::why",
    ][::std::mem::offset_of!(spk_library_info, why) - 40usize];
};
unsafe extern "C" {
    pub fn spk_library_count(context: *const spk_context) -> ::std::os::raw::c_int;
}
unsafe extern "C" {
    pub fn spk_context_get_library(
        context: *mut spk_context,
        index: ::std::os::raw::c_int,
        info: *mut spk_library_info,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_memory_allocate(
        context: *mut spk_context,
        bytes: usize,
        memory: *mut *mut ::std::os::raw::c_void,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_memory_release(
        context: *mut spk_context,
        memory: *mut *mut ::std::os::raw::c_void,
    );
}
unsafe extern "C" {
    pub fn spk_synchronize(
        context: *mut spk_context,
        stream: *mut ::std::os::raw::c_void,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_memory_copy(
        context: *mut spk_context,
        to: *mut ::std::os::raw::c_void,
        to_kind: spk_memory,
        from: *const ::std::os::raw::c_void,
        from_kind: spk_memory,
        bytes: usize,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_cast_values(
        context: *mut spk_context,
        to_dtype: spk_dtype,
        to: *mut ::std::os::raw::c_void,
        from_dtype: spk_dtype,
        from: *const ::std::os::raw::c_void,
        count: i64,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug)]
pub struct spk_pattern {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_deferred_indices {
    pub struct_size: usize,
    pub stream: *mut ::std::os::raw::c_void,
    pub longest_row: i64,
    pub row_spread: f64,
    pub row_overlap: f64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of spk_deferred_indices",
    ][::std::mem::size_of::<spk_deferred_indices>() - 40usize];
    [
        "Alignment of spk_deferred_indices",
    ][::std::mem::align_of::<spk_deferred_indices>() - 8usize];
    [
        "Offset of field: spk_deferred_indices::struct_size",
    ][::std::mem::offset_of!(spk_deferred_indices, struct_size) - 0usize];
    [
        "Offset of field: spk_deferred_indices::stream",
    ][::std::mem::offset_of!(spk_deferred_indices, stream) - 8usize];
    [
        "Offset of field: spk_deferred_indices::longest_row",
    ][::std::mem::offset_of!(spk_deferred_indices, longest_row) - 16usize];
    [
        "Offset of field: spk_deferred_indices::row_spread",
    ][::std::mem::offset_of!(spk_deferred_indices, row_spread) - 24usize];
    [
        "Offset of field: spk_deferred_indices::row_overlap",
    ][::std::mem::offset_of!(spk_deferred_indices, row_overlap) - 32usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_bsr_indices {
    pub struct_size: usize,
    pub rows: i64,
    pub cols: i64,
    pub block_rows: i64,
    pub block_cols: i64,
    pub nnzb: i64,
    pub row_offsets: *const ::std::os::raw::c_void,
    pub col_indices: *const ::std::os::raw::c_void,
    pub index_type: spk_index_type,
    pub index_memory: spk_memory,
    pub deferred: *const spk_deferred_indices,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_bsr_indices"][::std::mem::size_of::<spk_bsr_indices>() - 80usize];
    ["Alignment of spk_bsr_indices"][::std::mem::align_of::<spk_bsr_indices>() - 8usize];
    [
        "Offset of field: spk_bsr_indices::struct_size",
    ][::std::mem::offset_of!(spk_bsr_indices, struct_size) - 0usize];
    [
        "Offset of field: spk_bsr_indices::rows",
    ][::std::mem::offset_of!(spk_bsr_indices, rows) - 8usize];
    [
        "Offset of field: spk_bsr_indices::cols",
    ][::std::mem::offset_of!(spk_bsr_indices, cols) - 16usize];
    [
        "Offset of field: spk_bsr_indices::block_rows",
    ][::std::mem::offset_of!(spk_bsr_indices, block_rows) - 24usize];
    [
        "Offset of field: spk_bsr_indices::block_cols",
    ][::std::mem::offset_of!(spk_bsr_indices, block_cols) - 32usize];
    [
        "Offset of field: spk_bsr_indices::nnzb",
    ][::std::mem::offset_of!(spk_bsr_indices, nnzb) - 40usize];
    [
        "Offset of field: spk_bsr_indices::row_offsets",
    ][::std::mem::offset_of!(spk_bsr_indices, row_offsets) - 48usize];
    [
        "Offset of field: spk_bsr_indices::col_indices",
    ][::std::mem::offset_of!(spk_bsr_indices, col_indices) - 56usize];
    [
        "Offset of field: spk_bsr_indices::index_type",
    ][::std::mem::offset_of!(spk_bsr_indices, index_type) - 64usize];
    [
        "Offset of field: spk_bsr_indices::index_memory",
    ][::std::mem::offset_of!(spk_bsr_indices, index_memory) - 68usize];
    [
        "Offset of field: spk_bsr_indices::deferred",
    ][::std::mem::offset_of!(spk_bsr_indices, deferred) - 72usize];
};
unsafe extern "C" {
    pub fn spk_pattern_create(
        context: *mut spk_context,
        indices: *const spk_bsr_indices,
        pattern: *mut *mut spk_pattern,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_pattern_destroy(pattern: *mut *mut spk_pattern);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_pattern_info {
    pub struct_size: usize,
    pub rows: i64,
    pub cols: i64,
    pub block_rows: i64,
    pub block_cols: i64,
    pub grid_rows: i64,
    pub grid_cols: i64,
    pub nnzb: i64,
    pub density: f64,
    pub empty_rows: i64,
    pub longest_row: i64,
    pub row_spread: f64,
    pub row_overlap: f64,
    pub bandwidth: f64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_pattern_info"][::std::mem::size_of::<spk_pattern_info>() - 112usize];
    [
        "Alignment of spk_pattern_info",
    ][::std::mem::align_of::<spk_pattern_info>() - 8usize];
    [
        "Offset of field: spk_pattern_info::struct_size",
    ][::std::mem::offset_of!(spk_pattern_info, struct_size) - 0usize];
    [
        "Offset of field: spk_pattern_info::rows",
    ][::std::mem::offset_of!(spk_pattern_info, rows) - 8usize];
    [
        "Offset of field: spk_pattern_info::cols",
    ][::std::mem::offset_of!(spk_pattern_info, cols) - 16usize];
    [
        "Offset of field: spk_pattern_info::block_rows",
    ][::std::mem::offset_of!(spk_pattern_info, block_rows) - 24usize];
    [
        "Offset of field: spk_pattern_info::block_cols",
    ][::std::mem::offset_of!(spk_pattern_info, block_cols) - 32usize];
    [
        "Offset of field: spk_pattern_info::grid_rows",
    ][::std::mem::offset_of!(spk_pattern_info, grid_rows) - 40usize];
    [
        "Offset of field: spk_pattern_info::grid_cols",
    ][::std::mem::offset_of!(spk_pattern_info, grid_cols) - 48usize];
    [
        "Offset of field: spk_pattern_info::nnzb",
    ][::std::mem::offset_of!(spk_pattern_info, nnzb) - 56usize];
    [
        "Offset of field: spk_pattern_info::density",
    ][::std::mem::offset_of!(spk_pattern_info, density) - 64usize];
    [
        "Offset of field: spk_pattern_info::empty_rows",
    ][::std::mem::offset_of!(spk_pattern_info, empty_rows) - 72usize];
    [
        "Offset of field: spk_pattern_info::longest_row",
    ][::std::mem::offset_of!(spk_pattern_info, longest_row) - 80usize];
    [
        "Offset of field: spk_pattern_info::row_spread",
    ][::std::mem::offset_of!(spk_pattern_info, row_spread) - 88usize];
    [
        "Offset of field: spk_pattern_info::row_overlap",
    ][::std::mem::offset_of!(spk_pattern_info, row_overlap) - 96usize];
    [
        "Offset of field: spk_pattern_info::bandwidth",
    ][::std::mem::offset_of!(spk_pattern_info, bandwidth) - 104usize];
};
unsafe extern "C" {
    pub fn spk_pattern_get_info(
        pattern: *const spk_pattern,
        info: *mut spk_pattern_info,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_scale {
    pub rows: i64,
    pub cols: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_scale"][::std::mem::size_of::<spk_scale>() - 16usize];
    ["Alignment of spk_scale"][::std::mem::align_of::<spk_scale>() - 8usize];
    [
        "Offset of field: spk_scale::rows",
    ][::std::mem::offset_of!(spk_scale, rows) - 0usize];
    [
        "Offset of field: spk_scale::cols",
    ][::std::mem::offset_of!(spk_scale, cols) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_spmm {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub trans_a: spk_trans,
    pub n: i64,
    pub dtype_a: spk_dtype,
    pub dtype_b: spk_dtype,
    pub dtype_d: spk_dtype,
    pub compute: spk_dtype,
    pub block_layout: spk_layout,
    pub layout_b: spk_layout,
    pub layout_d: spk_layout,
    pub use_c: ::std::os::raw::c_int,
    pub ldb: i64,
    pub ldc: i64,
    pub ldd: i64,
    pub ldr: i64,
    pub ldp: i64,
    pub bias: spk_bias,
    pub activation: spk_activation,
    pub residual: spk_residual,
    pub keep_preact: ::std::os::raw::c_int,
    pub batch: i64,
    pub stride_a: i64,
    pub stride_b: i64,
    pub stride_c: i64,
    pub stride_d: i64,
    pub stride_r: i64,
    pub stride_p: i64,
    pub scale_a: spk_scale,
    pub scale_b: spk_scale,
    pub assume_finite: ::std::os::raw::c_int,
    pub static_values: ::std::os::raw::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_spmm"][::std::mem::size_of::<spk_spmm>() - 208usize];
    ["Alignment of spk_spmm"][::std::mem::align_of::<spk_spmm>() - 8usize];
    [
        "Offset of field: spk_spmm::struct_size",
    ][::std::mem::offset_of!(spk_spmm, struct_size) - 0usize];
    [
        "Offset of field: spk_spmm::operation",
    ][::std::mem::offset_of!(spk_spmm, operation) - 8usize];
    [
        "Offset of field: spk_spmm::trans_a",
    ][::std::mem::offset_of!(spk_spmm, trans_a) - 12usize];
    ["Offset of field: spk_spmm::n"][::std::mem::offset_of!(spk_spmm, n) - 16usize];
    [
        "Offset of field: spk_spmm::dtype_a",
    ][::std::mem::offset_of!(spk_spmm, dtype_a) - 24usize];
    [
        "Offset of field: spk_spmm::dtype_b",
    ][::std::mem::offset_of!(spk_spmm, dtype_b) - 28usize];
    [
        "Offset of field: spk_spmm::dtype_d",
    ][::std::mem::offset_of!(spk_spmm, dtype_d) - 32usize];
    [
        "Offset of field: spk_spmm::compute",
    ][::std::mem::offset_of!(spk_spmm, compute) - 36usize];
    [
        "Offset of field: spk_spmm::block_layout",
    ][::std::mem::offset_of!(spk_spmm, block_layout) - 40usize];
    [
        "Offset of field: spk_spmm::layout_b",
    ][::std::mem::offset_of!(spk_spmm, layout_b) - 44usize];
    [
        "Offset of field: spk_spmm::layout_d",
    ][::std::mem::offset_of!(spk_spmm, layout_d) - 48usize];
    [
        "Offset of field: spk_spmm::use_c",
    ][::std::mem::offset_of!(spk_spmm, use_c) - 52usize];
    ["Offset of field: spk_spmm::ldb"][::std::mem::offset_of!(spk_spmm, ldb) - 56usize];
    ["Offset of field: spk_spmm::ldc"][::std::mem::offset_of!(spk_spmm, ldc) - 64usize];
    ["Offset of field: spk_spmm::ldd"][::std::mem::offset_of!(spk_spmm, ldd) - 72usize];
    ["Offset of field: spk_spmm::ldr"][::std::mem::offset_of!(spk_spmm, ldr) - 80usize];
    ["Offset of field: spk_spmm::ldp"][::std::mem::offset_of!(spk_spmm, ldp) - 88usize];
    [
        "Offset of field: spk_spmm::bias",
    ][::std::mem::offset_of!(spk_spmm, bias) - 96usize];
    [
        "Offset of field: spk_spmm::activation",
    ][::std::mem::offset_of!(spk_spmm, activation) - 100usize];
    [
        "Offset of field: spk_spmm::residual",
    ][::std::mem::offset_of!(spk_spmm, residual) - 104usize];
    [
        "Offset of field: spk_spmm::keep_preact",
    ][::std::mem::offset_of!(spk_spmm, keep_preact) - 108usize];
    [
        "Offset of field: spk_spmm::batch",
    ][::std::mem::offset_of!(spk_spmm, batch) - 112usize];
    [
        "Offset of field: spk_spmm::stride_a",
    ][::std::mem::offset_of!(spk_spmm, stride_a) - 120usize];
    [
        "Offset of field: spk_spmm::stride_b",
    ][::std::mem::offset_of!(spk_spmm, stride_b) - 128usize];
    [
        "Offset of field: spk_spmm::stride_c",
    ][::std::mem::offset_of!(spk_spmm, stride_c) - 136usize];
    [
        "Offset of field: spk_spmm::stride_d",
    ][::std::mem::offset_of!(spk_spmm, stride_d) - 144usize];
    [
        "Offset of field: spk_spmm::stride_r",
    ][::std::mem::offset_of!(spk_spmm, stride_r) - 152usize];
    [
        "Offset of field: spk_spmm::stride_p",
    ][::std::mem::offset_of!(spk_spmm, stride_p) - 160usize];
    [
        "Offset of field: spk_spmm::scale_a",
    ][::std::mem::offset_of!(spk_spmm, scale_a) - 168usize];
    [
        "Offset of field: spk_spmm::scale_b",
    ][::std::mem::offset_of!(spk_spmm, scale_b) - 184usize];
    [
        "Offset of field: spk_spmm::assume_finite",
    ][::std::mem::offset_of!(spk_spmm, assume_finite) - 200usize];
    [
        "Offset of field: spk_spmm::static_values",
    ][::std::mem::offset_of!(spk_spmm, static_values) - 204usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_spmm_args {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub reserved: ::std::os::raw::c_int,
    pub values: *const ::std::os::raw::c_void,
    pub b: *const ::std::os::raw::c_void,
    pub c: *const ::std::os::raw::c_void,
    pub d: *mut ::std::os::raw::c_void,
    pub bias: *const ::std::os::raw::c_void,
    pub residual: *const ::std::os::raw::c_void,
    pub preact: *mut ::std::os::raw::c_void,
    pub scale_a: *const ::std::os::raw::c_void,
    pub scale_b: *const ::std::os::raw::c_void,
    pub alpha: f64,
    pub beta: f64,
    pub workspace: *mut ::std::os::raw::c_void,
    pub workspace_bytes: usize,
    pub stream: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_spmm_args"][::std::mem::size_of::<spk_spmm_args>() - 128usize];
    ["Alignment of spk_spmm_args"][::std::mem::align_of::<spk_spmm_args>() - 8usize];
    [
        "Offset of field: spk_spmm_args::struct_size",
    ][::std::mem::offset_of!(spk_spmm_args, struct_size) - 0usize];
    [
        "Offset of field: spk_spmm_args::operation",
    ][::std::mem::offset_of!(spk_spmm_args, operation) - 8usize];
    [
        "Offset of field: spk_spmm_args::reserved",
    ][::std::mem::offset_of!(spk_spmm_args, reserved) - 12usize];
    [
        "Offset of field: spk_spmm_args::values",
    ][::std::mem::offset_of!(spk_spmm_args, values) - 16usize];
    [
        "Offset of field: spk_spmm_args::b",
    ][::std::mem::offset_of!(spk_spmm_args, b) - 24usize];
    [
        "Offset of field: spk_spmm_args::c",
    ][::std::mem::offset_of!(spk_spmm_args, c) - 32usize];
    [
        "Offset of field: spk_spmm_args::d",
    ][::std::mem::offset_of!(spk_spmm_args, d) - 40usize];
    [
        "Offset of field: spk_spmm_args::bias",
    ][::std::mem::offset_of!(spk_spmm_args, bias) - 48usize];
    [
        "Offset of field: spk_spmm_args::residual",
    ][::std::mem::offset_of!(spk_spmm_args, residual) - 56usize];
    [
        "Offset of field: spk_spmm_args::preact",
    ][::std::mem::offset_of!(spk_spmm_args, preact) - 64usize];
    [
        "Offset of field: spk_spmm_args::scale_a",
    ][::std::mem::offset_of!(spk_spmm_args, scale_a) - 72usize];
    [
        "Offset of field: spk_spmm_args::scale_b",
    ][::std::mem::offset_of!(spk_spmm_args, scale_b) - 80usize];
    [
        "Offset of field: spk_spmm_args::alpha",
    ][::std::mem::offset_of!(spk_spmm_args, alpha) - 88usize];
    [
        "Offset of field: spk_spmm_args::beta",
    ][::std::mem::offset_of!(spk_spmm_args, beta) - 96usize];
    [
        "Offset of field: spk_spmm_args::workspace",
    ][::std::mem::offset_of!(spk_spmm_args, workspace) - 104usize];
    [
        "Offset of field: spk_spmm_args::workspace_bytes",
    ][::std::mem::offset_of!(spk_spmm_args, workspace_bytes) - 112usize];
    [
        "Offset of field: spk_spmm_args::stream",
    ][::std::mem::offset_of!(spk_spmm_args, stream) - 120usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_sddmm {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub assume_finite: ::std::os::raw::c_int,
    pub k: i64,
    pub dtype_x: spk_dtype,
    pub dtype_y: spk_dtype,
    pub dtype_d: spk_dtype,
    pub compute: spk_dtype,
    pub block_layout: spk_layout,
    pub layout_x: spk_layout,
    pub layout_y: spk_layout,
    pub use_c: ::std::os::raw::c_int,
    pub ldx: i64,
    pub ldy: i64,
    pub batch: i64,
    pub stride_x: i64,
    pub stride_y: i64,
    pub stride_c: i64,
    pub stride_d: i64,
    pub scale_x: spk_scale,
    pub scale_y: spk_scale,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_sddmm"][::std::mem::size_of::<spk_sddmm>() - 144usize];
    ["Alignment of spk_sddmm"][::std::mem::align_of::<spk_sddmm>() - 8usize];
    [
        "Offset of field: spk_sddmm::struct_size",
    ][::std::mem::offset_of!(spk_sddmm, struct_size) - 0usize];
    [
        "Offset of field: spk_sddmm::operation",
    ][::std::mem::offset_of!(spk_sddmm, operation) - 8usize];
    [
        "Offset of field: spk_sddmm::assume_finite",
    ][::std::mem::offset_of!(spk_sddmm, assume_finite) - 12usize];
    ["Offset of field: spk_sddmm::k"][::std::mem::offset_of!(spk_sddmm, k) - 16usize];
    [
        "Offset of field: spk_sddmm::dtype_x",
    ][::std::mem::offset_of!(spk_sddmm, dtype_x) - 24usize];
    [
        "Offset of field: spk_sddmm::dtype_y",
    ][::std::mem::offset_of!(spk_sddmm, dtype_y) - 28usize];
    [
        "Offset of field: spk_sddmm::dtype_d",
    ][::std::mem::offset_of!(spk_sddmm, dtype_d) - 32usize];
    [
        "Offset of field: spk_sddmm::compute",
    ][::std::mem::offset_of!(spk_sddmm, compute) - 36usize];
    [
        "Offset of field: spk_sddmm::block_layout",
    ][::std::mem::offset_of!(spk_sddmm, block_layout) - 40usize];
    [
        "Offset of field: spk_sddmm::layout_x",
    ][::std::mem::offset_of!(spk_sddmm, layout_x) - 44usize];
    [
        "Offset of field: spk_sddmm::layout_y",
    ][::std::mem::offset_of!(spk_sddmm, layout_y) - 48usize];
    [
        "Offset of field: spk_sddmm::use_c",
    ][::std::mem::offset_of!(spk_sddmm, use_c) - 52usize];
    [
        "Offset of field: spk_sddmm::ldx",
    ][::std::mem::offset_of!(spk_sddmm, ldx) - 56usize];
    [
        "Offset of field: spk_sddmm::ldy",
    ][::std::mem::offset_of!(spk_sddmm, ldy) - 64usize];
    [
        "Offset of field: spk_sddmm::batch",
    ][::std::mem::offset_of!(spk_sddmm, batch) - 72usize];
    [
        "Offset of field: spk_sddmm::stride_x",
    ][::std::mem::offset_of!(spk_sddmm, stride_x) - 80usize];
    [
        "Offset of field: spk_sddmm::stride_y",
    ][::std::mem::offset_of!(spk_sddmm, stride_y) - 88usize];
    [
        "Offset of field: spk_sddmm::stride_c",
    ][::std::mem::offset_of!(spk_sddmm, stride_c) - 96usize];
    [
        "Offset of field: spk_sddmm::stride_d",
    ][::std::mem::offset_of!(spk_sddmm, stride_d) - 104usize];
    [
        "Offset of field: spk_sddmm::scale_x",
    ][::std::mem::offset_of!(spk_sddmm, scale_x) - 112usize];
    [
        "Offset of field: spk_sddmm::scale_y",
    ][::std::mem::offset_of!(spk_sddmm, scale_y) - 128usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_sddmm_args {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub reserved: ::std::os::raw::c_int,
    pub x: *const ::std::os::raw::c_void,
    pub y: *const ::std::os::raw::c_void,
    pub c: *const ::std::os::raw::c_void,
    pub d: *mut ::std::os::raw::c_void,
    pub scale_x: *const ::std::os::raw::c_void,
    pub scale_y: *const ::std::os::raw::c_void,
    pub alpha: f64,
    pub beta: f64,
    pub workspace: *mut ::std::os::raw::c_void,
    pub workspace_bytes: usize,
    pub stream: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_sddmm_args"][::std::mem::size_of::<spk_sddmm_args>() - 104usize];
    ["Alignment of spk_sddmm_args"][::std::mem::align_of::<spk_sddmm_args>() - 8usize];
    [
        "Offset of field: spk_sddmm_args::struct_size",
    ][::std::mem::offset_of!(spk_sddmm_args, struct_size) - 0usize];
    [
        "Offset of field: spk_sddmm_args::operation",
    ][::std::mem::offset_of!(spk_sddmm_args, operation) - 8usize];
    [
        "Offset of field: spk_sddmm_args::reserved",
    ][::std::mem::offset_of!(spk_sddmm_args, reserved) - 12usize];
    [
        "Offset of field: spk_sddmm_args::x",
    ][::std::mem::offset_of!(spk_sddmm_args, x) - 16usize];
    [
        "Offset of field: spk_sddmm_args::y",
    ][::std::mem::offset_of!(spk_sddmm_args, y) - 24usize];
    [
        "Offset of field: spk_sddmm_args::c",
    ][::std::mem::offset_of!(spk_sddmm_args, c) - 32usize];
    [
        "Offset of field: spk_sddmm_args::d",
    ][::std::mem::offset_of!(spk_sddmm_args, d) - 40usize];
    [
        "Offset of field: spk_sddmm_args::scale_x",
    ][::std::mem::offset_of!(spk_sddmm_args, scale_x) - 48usize];
    [
        "Offset of field: spk_sddmm_args::scale_y",
    ][::std::mem::offset_of!(spk_sddmm_args, scale_y) - 56usize];
    [
        "Offset of field: spk_sddmm_args::alpha",
    ][::std::mem::offset_of!(spk_sddmm_args, alpha) - 64usize];
    [
        "Offset of field: spk_sddmm_args::beta",
    ][::std::mem::offset_of!(spk_sddmm_args, beta) - 72usize];
    [
        "Offset of field: spk_sddmm_args::workspace",
    ][::std::mem::offset_of!(spk_sddmm_args, workspace) - 80usize];
    [
        "Offset of field: spk_sddmm_args::workspace_bytes",
    ][::std::mem::offset_of!(spk_sddmm_args, workspace_bytes) - 88usize];
    [
        "Offset of field: spk_sddmm_args::stream",
    ][::std::mem::offset_of!(spk_sddmm_args, stream) - 96usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_gemm {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub group_axis: spk_group_axis,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub dtype_a: spk_dtype,
    pub dtype_b: spk_dtype,
    pub dtype_d: spk_dtype,
    pub compute: spk_dtype,
    pub trans_a: spk_trans,
    pub trans_b: spk_trans,
    pub layout_a: spk_layout,
    pub layout_b: spk_layout,
    pub layout_d: spk_layout,
    pub use_c: ::std::os::raw::c_int,
    pub lda: i64,
    pub ldb: i64,
    pub ldc: i64,
    pub ldd: i64,
    pub ldr: i64,
    pub ldp: i64,
    pub bias: spk_bias,
    pub activation: spk_activation,
    pub residual: spk_residual,
    pub keep_preact: ::std::os::raw::c_int,
    pub batch: i64,
    pub stride_a: i64,
    pub stride_b: i64,
    pub stride_c: i64,
    pub stride_d: i64,
    pub stride_r: i64,
    pub stride_p: i64,
    pub groups: i64,
    pub scale_a: spk_scale,
    pub scale_b: spk_scale,
    pub assume_finite: ::std::os::raw::c_int,
    pub reserved: ::std::os::raw::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_gemm"][::std::mem::size_of::<spk_gemm>() - 248usize];
    ["Alignment of spk_gemm"][::std::mem::align_of::<spk_gemm>() - 8usize];
    [
        "Offset of field: spk_gemm::struct_size",
    ][::std::mem::offset_of!(spk_gemm, struct_size) - 0usize];
    [
        "Offset of field: spk_gemm::operation",
    ][::std::mem::offset_of!(spk_gemm, operation) - 8usize];
    [
        "Offset of field: spk_gemm::group_axis",
    ][::std::mem::offset_of!(spk_gemm, group_axis) - 12usize];
    ["Offset of field: spk_gemm::m"][::std::mem::offset_of!(spk_gemm, m) - 16usize];
    ["Offset of field: spk_gemm::n"][::std::mem::offset_of!(spk_gemm, n) - 24usize];
    ["Offset of field: spk_gemm::k"][::std::mem::offset_of!(spk_gemm, k) - 32usize];
    [
        "Offset of field: spk_gemm::dtype_a",
    ][::std::mem::offset_of!(spk_gemm, dtype_a) - 40usize];
    [
        "Offset of field: spk_gemm::dtype_b",
    ][::std::mem::offset_of!(spk_gemm, dtype_b) - 44usize];
    [
        "Offset of field: spk_gemm::dtype_d",
    ][::std::mem::offset_of!(spk_gemm, dtype_d) - 48usize];
    [
        "Offset of field: spk_gemm::compute",
    ][::std::mem::offset_of!(spk_gemm, compute) - 52usize];
    [
        "Offset of field: spk_gemm::trans_a",
    ][::std::mem::offset_of!(spk_gemm, trans_a) - 56usize];
    [
        "Offset of field: spk_gemm::trans_b",
    ][::std::mem::offset_of!(spk_gemm, trans_b) - 60usize];
    [
        "Offset of field: spk_gemm::layout_a",
    ][::std::mem::offset_of!(spk_gemm, layout_a) - 64usize];
    [
        "Offset of field: spk_gemm::layout_b",
    ][::std::mem::offset_of!(spk_gemm, layout_b) - 68usize];
    [
        "Offset of field: spk_gemm::layout_d",
    ][::std::mem::offset_of!(spk_gemm, layout_d) - 72usize];
    [
        "Offset of field: spk_gemm::use_c",
    ][::std::mem::offset_of!(spk_gemm, use_c) - 76usize];
    ["Offset of field: spk_gemm::lda"][::std::mem::offset_of!(spk_gemm, lda) - 80usize];
    ["Offset of field: spk_gemm::ldb"][::std::mem::offset_of!(spk_gemm, ldb) - 88usize];
    ["Offset of field: spk_gemm::ldc"][::std::mem::offset_of!(spk_gemm, ldc) - 96usize];
    ["Offset of field: spk_gemm::ldd"][::std::mem::offset_of!(spk_gemm, ldd) - 104usize];
    ["Offset of field: spk_gemm::ldr"][::std::mem::offset_of!(spk_gemm, ldr) - 112usize];
    ["Offset of field: spk_gemm::ldp"][::std::mem::offset_of!(spk_gemm, ldp) - 120usize];
    [
        "Offset of field: spk_gemm::bias",
    ][::std::mem::offset_of!(spk_gemm, bias) - 128usize];
    [
        "Offset of field: spk_gemm::activation",
    ][::std::mem::offset_of!(spk_gemm, activation) - 132usize];
    [
        "Offset of field: spk_gemm::residual",
    ][::std::mem::offset_of!(spk_gemm, residual) - 136usize];
    [
        "Offset of field: spk_gemm::keep_preact",
    ][::std::mem::offset_of!(spk_gemm, keep_preact) - 140usize];
    [
        "Offset of field: spk_gemm::batch",
    ][::std::mem::offset_of!(spk_gemm, batch) - 144usize];
    [
        "Offset of field: spk_gemm::stride_a",
    ][::std::mem::offset_of!(spk_gemm, stride_a) - 152usize];
    [
        "Offset of field: spk_gemm::stride_b",
    ][::std::mem::offset_of!(spk_gemm, stride_b) - 160usize];
    [
        "Offset of field: spk_gemm::stride_c",
    ][::std::mem::offset_of!(spk_gemm, stride_c) - 168usize];
    [
        "Offset of field: spk_gemm::stride_d",
    ][::std::mem::offset_of!(spk_gemm, stride_d) - 176usize];
    [
        "Offset of field: spk_gemm::stride_r",
    ][::std::mem::offset_of!(spk_gemm, stride_r) - 184usize];
    [
        "Offset of field: spk_gemm::stride_p",
    ][::std::mem::offset_of!(spk_gemm, stride_p) - 192usize];
    [
        "Offset of field: spk_gemm::groups",
    ][::std::mem::offset_of!(spk_gemm, groups) - 200usize];
    [
        "Offset of field: spk_gemm::scale_a",
    ][::std::mem::offset_of!(spk_gemm, scale_a) - 208usize];
    [
        "Offset of field: spk_gemm::scale_b",
    ][::std::mem::offset_of!(spk_gemm, scale_b) - 224usize];
    [
        "Offset of field: spk_gemm::assume_finite",
    ][::std::mem::offset_of!(spk_gemm, assume_finite) - 240usize];
    [
        "Offset of field: spk_gemm::reserved",
    ][::std::mem::offset_of!(spk_gemm, reserved) - 244usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_gemm_args {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub reserved: ::std::os::raw::c_int,
    pub a: *const ::std::os::raw::c_void,
    pub b: *const ::std::os::raw::c_void,
    pub c: *const ::std::os::raw::c_void,
    pub d: *mut ::std::os::raw::c_void,
    pub bias: *const ::std::os::raw::c_void,
    pub residual: *const ::std::os::raw::c_void,
    pub preact: *mut ::std::os::raw::c_void,
    pub offsets: *const ::std::os::raw::c_void,
    pub scale_a: *const ::std::os::raw::c_void,
    pub scale_b: *const ::std::os::raw::c_void,
    pub alpha: f64,
    pub beta: f64,
    pub workspace: *mut ::std::os::raw::c_void,
    pub workspace_bytes: usize,
    pub stream: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_gemm_args"][::std::mem::size_of::<spk_gemm_args>() - 136usize];
    ["Alignment of spk_gemm_args"][::std::mem::align_of::<spk_gemm_args>() - 8usize];
    [
        "Offset of field: spk_gemm_args::struct_size",
    ][::std::mem::offset_of!(spk_gemm_args, struct_size) - 0usize];
    [
        "Offset of field: spk_gemm_args::operation",
    ][::std::mem::offset_of!(spk_gemm_args, operation) - 8usize];
    [
        "Offset of field: spk_gemm_args::reserved",
    ][::std::mem::offset_of!(spk_gemm_args, reserved) - 12usize];
    [
        "Offset of field: spk_gemm_args::a",
    ][::std::mem::offset_of!(spk_gemm_args, a) - 16usize];
    [
        "Offset of field: spk_gemm_args::b",
    ][::std::mem::offset_of!(spk_gemm_args, b) - 24usize];
    [
        "Offset of field: spk_gemm_args::c",
    ][::std::mem::offset_of!(spk_gemm_args, c) - 32usize];
    [
        "Offset of field: spk_gemm_args::d",
    ][::std::mem::offset_of!(spk_gemm_args, d) - 40usize];
    [
        "Offset of field: spk_gemm_args::bias",
    ][::std::mem::offset_of!(spk_gemm_args, bias) - 48usize];
    [
        "Offset of field: spk_gemm_args::residual",
    ][::std::mem::offset_of!(spk_gemm_args, residual) - 56usize];
    [
        "Offset of field: spk_gemm_args::preact",
    ][::std::mem::offset_of!(spk_gemm_args, preact) - 64usize];
    [
        "Offset of field: spk_gemm_args::offsets",
    ][::std::mem::offset_of!(spk_gemm_args, offsets) - 72usize];
    [
        "Offset of field: spk_gemm_args::scale_a",
    ][::std::mem::offset_of!(spk_gemm_args, scale_a) - 80usize];
    [
        "Offset of field: spk_gemm_args::scale_b",
    ][::std::mem::offset_of!(spk_gemm_args, scale_b) - 88usize];
    [
        "Offset of field: spk_gemm_args::alpha",
    ][::std::mem::offset_of!(spk_gemm_args, alpha) - 96usize];
    [
        "Offset of field: spk_gemm_args::beta",
    ][::std::mem::offset_of!(spk_gemm_args, beta) - 104usize];
    [
        "Offset of field: spk_gemm_args::workspace",
    ][::std::mem::offset_of!(spk_gemm_args, workspace) - 112usize];
    [
        "Offset of field: spk_gemm_args::workspace_bytes",
    ][::std::mem::offset_of!(spk_gemm_args, workspace_bytes) - 120usize];
    [
        "Offset of field: spk_gemm_args::stream",
    ][::std::mem::offset_of!(spk_gemm_args, stream) - 128usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_attention {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub dtype: spk_dtype,
    pub queries: i64,
    pub keys: i64,
    pub depth: i64,
    pub depth_v: i64,
    pub batch: i64,
    pub heads: i64,
    pub heads_kv: i64,
    pub diagonal: spk_diagonal,
    pub causal: ::std::os::raw::c_int,
    pub window_left: i64,
    pub window_right: i64,
    pub sinks: i64,
    pub use_softcap: ::std::os::raw::c_int,
    pub want_lse: ::std::os::raw::c_int,
    pub mask_heads: i64,
    pub mask_items: i64,
    pub ldq: i64,
    pub ldk: i64,
    pub ldv: i64,
    pub ldo: i64,
    pub head_stride_q: i64,
    pub head_stride_k: i64,
    pub head_stride_v: i64,
    pub head_stride_o: i64,
    pub head_stride_lse: i64,
    pub stride_q: i64,
    pub stride_k: i64,
    pub stride_v: i64,
    pub stride_o: i64,
    pub stride_lse: i64,
    pub sequences: i64,
    pub key_lengths: ::std::os::raw::c_int,
    pub assume_finite: ::std::os::raw::c_int,
    pub page_keys: i64,
    pub pages: i64,
    pub tiles: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_attention"][::std::mem::size_of::<spk_attention>() - 280usize];
    ["Alignment of spk_attention"][::std::mem::align_of::<spk_attention>() - 8usize];
    [
        "Offset of field: spk_attention::struct_size",
    ][::std::mem::offset_of!(spk_attention, struct_size) - 0usize];
    [
        "Offset of field: spk_attention::operation",
    ][::std::mem::offset_of!(spk_attention, operation) - 8usize];
    [
        "Offset of field: spk_attention::dtype",
    ][::std::mem::offset_of!(spk_attention, dtype) - 12usize];
    [
        "Offset of field: spk_attention::queries",
    ][::std::mem::offset_of!(spk_attention, queries) - 16usize];
    [
        "Offset of field: spk_attention::keys",
    ][::std::mem::offset_of!(spk_attention, keys) - 24usize];
    [
        "Offset of field: spk_attention::depth",
    ][::std::mem::offset_of!(spk_attention, depth) - 32usize];
    [
        "Offset of field: spk_attention::depth_v",
    ][::std::mem::offset_of!(spk_attention, depth_v) - 40usize];
    [
        "Offset of field: spk_attention::batch",
    ][::std::mem::offset_of!(spk_attention, batch) - 48usize];
    [
        "Offset of field: spk_attention::heads",
    ][::std::mem::offset_of!(spk_attention, heads) - 56usize];
    [
        "Offset of field: spk_attention::heads_kv",
    ][::std::mem::offset_of!(spk_attention, heads_kv) - 64usize];
    [
        "Offset of field: spk_attention::diagonal",
    ][::std::mem::offset_of!(spk_attention, diagonal) - 72usize];
    [
        "Offset of field: spk_attention::causal",
    ][::std::mem::offset_of!(spk_attention, causal) - 76usize];
    [
        "Offset of field: spk_attention::window_left",
    ][::std::mem::offset_of!(spk_attention, window_left) - 80usize];
    [
        "Offset of field: spk_attention::window_right",
    ][::std::mem::offset_of!(spk_attention, window_right) - 88usize];
    [
        "Offset of field: spk_attention::sinks",
    ][::std::mem::offset_of!(spk_attention, sinks) - 96usize];
    [
        "Offset of field: spk_attention::use_softcap",
    ][::std::mem::offset_of!(spk_attention, use_softcap) - 104usize];
    [
        "Offset of field: spk_attention::want_lse",
    ][::std::mem::offset_of!(spk_attention, want_lse) - 108usize];
    [
        "Offset of field: spk_attention::mask_heads",
    ][::std::mem::offset_of!(spk_attention, mask_heads) - 112usize];
    [
        "Offset of field: spk_attention::mask_items",
    ][::std::mem::offset_of!(spk_attention, mask_items) - 120usize];
    [
        "Offset of field: spk_attention::ldq",
    ][::std::mem::offset_of!(spk_attention, ldq) - 128usize];
    [
        "Offset of field: spk_attention::ldk",
    ][::std::mem::offset_of!(spk_attention, ldk) - 136usize];
    [
        "Offset of field: spk_attention::ldv",
    ][::std::mem::offset_of!(spk_attention, ldv) - 144usize];
    [
        "Offset of field: spk_attention::ldo",
    ][::std::mem::offset_of!(spk_attention, ldo) - 152usize];
    [
        "Offset of field: spk_attention::head_stride_q",
    ][::std::mem::offset_of!(spk_attention, head_stride_q) - 160usize];
    [
        "Offset of field: spk_attention::head_stride_k",
    ][::std::mem::offset_of!(spk_attention, head_stride_k) - 168usize];
    [
        "Offset of field: spk_attention::head_stride_v",
    ][::std::mem::offset_of!(spk_attention, head_stride_v) - 176usize];
    [
        "Offset of field: spk_attention::head_stride_o",
    ][::std::mem::offset_of!(spk_attention, head_stride_o) - 184usize];
    [
        "Offset of field: spk_attention::head_stride_lse",
    ][::std::mem::offset_of!(spk_attention, head_stride_lse) - 192usize];
    [
        "Offset of field: spk_attention::stride_q",
    ][::std::mem::offset_of!(spk_attention, stride_q) - 200usize];
    [
        "Offset of field: spk_attention::stride_k",
    ][::std::mem::offset_of!(spk_attention, stride_k) - 208usize];
    [
        "Offset of field: spk_attention::stride_v",
    ][::std::mem::offset_of!(spk_attention, stride_v) - 216usize];
    [
        "Offset of field: spk_attention::stride_o",
    ][::std::mem::offset_of!(spk_attention, stride_o) - 224usize];
    [
        "Offset of field: spk_attention::stride_lse",
    ][::std::mem::offset_of!(spk_attention, stride_lse) - 232usize];
    [
        "Offset of field: spk_attention::sequences",
    ][::std::mem::offset_of!(spk_attention, sequences) - 240usize];
    [
        "Offset of field: spk_attention::key_lengths",
    ][::std::mem::offset_of!(spk_attention, key_lengths) - 248usize];
    [
        "Offset of field: spk_attention::assume_finite",
    ][::std::mem::offset_of!(spk_attention, assume_finite) - 252usize];
    [
        "Offset of field: spk_attention::page_keys",
    ][::std::mem::offset_of!(spk_attention, page_keys) - 256usize];
    [
        "Offset of field: spk_attention::pages",
    ][::std::mem::offset_of!(spk_attention, pages) - 264usize];
    [
        "Offset of field: spk_attention::tiles",
    ][::std::mem::offset_of!(spk_attention, tiles) - 272usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_attention_args {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub reserved: ::std::os::raw::c_int,
    pub q: *const ::std::os::raw::c_void,
    pub k: *const ::std::os::raw::c_void,
    pub v: *const ::std::os::raw::c_void,
    pub o: *mut ::std::os::raw::c_void,
    pub lse: *mut ::std::os::raw::c_void,
    pub query_ends: *const ::std::os::raw::c_void,
    pub key_ends: *const ::std::os::raw::c_void,
    pub page_table: *const ::std::os::raw::c_void,
    pub tile_numbers: *const ::std::os::raw::c_void,
    pub tile_bits: *const ::std::os::raw::c_void,
    pub scale: f64,
    pub softcap: f64,
    pub workspace: *mut ::std::os::raw::c_void,
    pub workspace_bytes: usize,
    pub stream: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of spk_attention_args",
    ][::std::mem::size_of::<spk_attention_args>() - 136usize];
    [
        "Alignment of spk_attention_args",
    ][::std::mem::align_of::<spk_attention_args>() - 8usize];
    [
        "Offset of field: spk_attention_args::struct_size",
    ][::std::mem::offset_of!(spk_attention_args, struct_size) - 0usize];
    [
        "Offset of field: spk_attention_args::operation",
    ][::std::mem::offset_of!(spk_attention_args, operation) - 8usize];
    [
        "Offset of field: spk_attention_args::reserved",
    ][::std::mem::offset_of!(spk_attention_args, reserved) - 12usize];
    [
        "Offset of field: spk_attention_args::q",
    ][::std::mem::offset_of!(spk_attention_args, q) - 16usize];
    [
        "Offset of field: spk_attention_args::k",
    ][::std::mem::offset_of!(spk_attention_args, k) - 24usize];
    [
        "Offset of field: spk_attention_args::v",
    ][::std::mem::offset_of!(spk_attention_args, v) - 32usize];
    [
        "Offset of field: spk_attention_args::o",
    ][::std::mem::offset_of!(spk_attention_args, o) - 40usize];
    [
        "Offset of field: spk_attention_args::lse",
    ][::std::mem::offset_of!(spk_attention_args, lse) - 48usize];
    [
        "Offset of field: spk_attention_args::query_ends",
    ][::std::mem::offset_of!(spk_attention_args, query_ends) - 56usize];
    [
        "Offset of field: spk_attention_args::key_ends",
    ][::std::mem::offset_of!(spk_attention_args, key_ends) - 64usize];
    [
        "Offset of field: spk_attention_args::page_table",
    ][::std::mem::offset_of!(spk_attention_args, page_table) - 72usize];
    [
        "Offset of field: spk_attention_args::tile_numbers",
    ][::std::mem::offset_of!(spk_attention_args, tile_numbers) - 80usize];
    [
        "Offset of field: spk_attention_args::tile_bits",
    ][::std::mem::offset_of!(spk_attention_args, tile_bits) - 88usize];
    [
        "Offset of field: spk_attention_args::scale",
    ][::std::mem::offset_of!(spk_attention_args, scale) - 96usize];
    [
        "Offset of field: spk_attention_args::softcap",
    ][::std::mem::offset_of!(spk_attention_args, softcap) - 104usize];
    [
        "Offset of field: spk_attention_args::workspace",
    ][::std::mem::offset_of!(spk_attention_args, workspace) - 112usize];
    [
        "Offset of field: spk_attention_args::workspace_bytes",
    ][::std::mem::offset_of!(spk_attention_args, workspace_bytes) - 120usize];
    [
        "Offset of field: spk_attention_args::stream",
    ][::std::mem::offset_of!(spk_attention_args, stream) - 128usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_attention_backward {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub dtype: spk_dtype,
    pub queries: i64,
    pub keys: i64,
    pub depth: i64,
    pub depth_v: i64,
    pub batch: i64,
    pub heads: i64,
    pub heads_kv: i64,
    pub diagonal: spk_diagonal,
    pub causal: ::std::os::raw::c_int,
    pub window_left: i64,
    pub window_right: i64,
    pub sinks: i64,
    pub use_softcap: ::std::os::raw::c_int,
    pub use_grad_lse: ::std::os::raw::c_int,
    pub mask_heads: i64,
    pub mask_items: i64,
    pub ldq: i64,
    pub ldk: i64,
    pub ldv: i64,
    pub ldo: i64,
    pub head_stride_q: i64,
    pub head_stride_k: i64,
    pub head_stride_v: i64,
    pub head_stride_o: i64,
    pub head_stride_lse: i64,
    pub stride_q: i64,
    pub stride_k: i64,
    pub stride_v: i64,
    pub stride_o: i64,
    pub stride_lse: i64,
    pub ld_grad_o: i64,
    pub ld_grad_q: i64,
    pub ld_grad_k: i64,
    pub ld_grad_v: i64,
    pub head_stride_grad_o: i64,
    pub head_stride_grad_lse: i64,
    pub head_stride_grad_q: i64,
    pub head_stride_grad_k: i64,
    pub head_stride_grad_v: i64,
    pub stride_grad_o: i64,
    pub stride_grad_lse: i64,
    pub stride_grad_q: i64,
    pub stride_grad_k: i64,
    pub stride_grad_v: i64,
    pub sequences: i64,
    pub key_lengths: ::std::os::raw::c_int,
    pub assume_finite: ::std::os::raw::c_int,
    pub tiles: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of spk_attention_backward",
    ][::std::mem::size_of::<spk_attention_backward>() - 376usize];
    [
        "Alignment of spk_attention_backward",
    ][::std::mem::align_of::<spk_attention_backward>() - 8usize];
    [
        "Offset of field: spk_attention_backward::struct_size",
    ][::std::mem::offset_of!(spk_attention_backward, struct_size) - 0usize];
    [
        "Offset of field: spk_attention_backward::operation",
    ][::std::mem::offset_of!(spk_attention_backward, operation) - 8usize];
    [
        "Offset of field: spk_attention_backward::dtype",
    ][::std::mem::offset_of!(spk_attention_backward, dtype) - 12usize];
    [
        "Offset of field: spk_attention_backward::queries",
    ][::std::mem::offset_of!(spk_attention_backward, queries) - 16usize];
    [
        "Offset of field: spk_attention_backward::keys",
    ][::std::mem::offset_of!(spk_attention_backward, keys) - 24usize];
    [
        "Offset of field: spk_attention_backward::depth",
    ][::std::mem::offset_of!(spk_attention_backward, depth) - 32usize];
    [
        "Offset of field: spk_attention_backward::depth_v",
    ][::std::mem::offset_of!(spk_attention_backward, depth_v) - 40usize];
    [
        "Offset of field: spk_attention_backward::batch",
    ][::std::mem::offset_of!(spk_attention_backward, batch) - 48usize];
    [
        "Offset of field: spk_attention_backward::heads",
    ][::std::mem::offset_of!(spk_attention_backward, heads) - 56usize];
    [
        "Offset of field: spk_attention_backward::heads_kv",
    ][::std::mem::offset_of!(spk_attention_backward, heads_kv) - 64usize];
    [
        "Offset of field: spk_attention_backward::diagonal",
    ][::std::mem::offset_of!(spk_attention_backward, diagonal) - 72usize];
    [
        "Offset of field: spk_attention_backward::causal",
    ][::std::mem::offset_of!(spk_attention_backward, causal) - 76usize];
    [
        "Offset of field: spk_attention_backward::window_left",
    ][::std::mem::offset_of!(spk_attention_backward, window_left) - 80usize];
    [
        "Offset of field: spk_attention_backward::window_right",
    ][::std::mem::offset_of!(spk_attention_backward, window_right) - 88usize];
    [
        "Offset of field: spk_attention_backward::sinks",
    ][::std::mem::offset_of!(spk_attention_backward, sinks) - 96usize];
    [
        "Offset of field: spk_attention_backward::use_softcap",
    ][::std::mem::offset_of!(spk_attention_backward, use_softcap) - 104usize];
    [
        "Offset of field: spk_attention_backward::use_grad_lse",
    ][::std::mem::offset_of!(spk_attention_backward, use_grad_lse) - 108usize];
    [
        "Offset of field: spk_attention_backward::mask_heads",
    ][::std::mem::offset_of!(spk_attention_backward, mask_heads) - 112usize];
    [
        "Offset of field: spk_attention_backward::mask_items",
    ][::std::mem::offset_of!(spk_attention_backward, mask_items) - 120usize];
    [
        "Offset of field: spk_attention_backward::ldq",
    ][::std::mem::offset_of!(spk_attention_backward, ldq) - 128usize];
    [
        "Offset of field: spk_attention_backward::ldk",
    ][::std::mem::offset_of!(spk_attention_backward, ldk) - 136usize];
    [
        "Offset of field: spk_attention_backward::ldv",
    ][::std::mem::offset_of!(spk_attention_backward, ldv) - 144usize];
    [
        "Offset of field: spk_attention_backward::ldo",
    ][::std::mem::offset_of!(spk_attention_backward, ldo) - 152usize];
    [
        "Offset of field: spk_attention_backward::head_stride_q",
    ][::std::mem::offset_of!(spk_attention_backward, head_stride_q) - 160usize];
    [
        "Offset of field: spk_attention_backward::head_stride_k",
    ][::std::mem::offset_of!(spk_attention_backward, head_stride_k) - 168usize];
    [
        "Offset of field: spk_attention_backward::head_stride_v",
    ][::std::mem::offset_of!(spk_attention_backward, head_stride_v) - 176usize];
    [
        "Offset of field: spk_attention_backward::head_stride_o",
    ][::std::mem::offset_of!(spk_attention_backward, head_stride_o) - 184usize];
    [
        "Offset of field: spk_attention_backward::head_stride_lse",
    ][::std::mem::offset_of!(spk_attention_backward, head_stride_lse) - 192usize];
    [
        "Offset of field: spk_attention_backward::stride_q",
    ][::std::mem::offset_of!(spk_attention_backward, stride_q) - 200usize];
    [
        "Offset of field: spk_attention_backward::stride_k",
    ][::std::mem::offset_of!(spk_attention_backward, stride_k) - 208usize];
    [
        "Offset of field: spk_attention_backward::stride_v",
    ][::std::mem::offset_of!(spk_attention_backward, stride_v) - 216usize];
    [
        "Offset of field: spk_attention_backward::stride_o",
    ][::std::mem::offset_of!(spk_attention_backward, stride_o) - 224usize];
    [
        "Offset of field: spk_attention_backward::stride_lse",
    ][::std::mem::offset_of!(spk_attention_backward, stride_lse) - 232usize];
    [
        "Offset of field: spk_attention_backward::ld_grad_o",
    ][::std::mem::offset_of!(spk_attention_backward, ld_grad_o) - 240usize];
    [
        "Offset of field: spk_attention_backward::ld_grad_q",
    ][::std::mem::offset_of!(spk_attention_backward, ld_grad_q) - 248usize];
    [
        "Offset of field: spk_attention_backward::ld_grad_k",
    ][::std::mem::offset_of!(spk_attention_backward, ld_grad_k) - 256usize];
    [
        "Offset of field: spk_attention_backward::ld_grad_v",
    ][::std::mem::offset_of!(spk_attention_backward, ld_grad_v) - 264usize];
    [
        "Offset of field: spk_attention_backward::head_stride_grad_o",
    ][::std::mem::offset_of!(spk_attention_backward, head_stride_grad_o) - 272usize];
    [
        "Offset of field: spk_attention_backward::head_stride_grad_lse",
    ][::std::mem::offset_of!(spk_attention_backward, head_stride_grad_lse) - 280usize];
    [
        "Offset of field: spk_attention_backward::head_stride_grad_q",
    ][::std::mem::offset_of!(spk_attention_backward, head_stride_grad_q) - 288usize];
    [
        "Offset of field: spk_attention_backward::head_stride_grad_k",
    ][::std::mem::offset_of!(spk_attention_backward, head_stride_grad_k) - 296usize];
    [
        "Offset of field: spk_attention_backward::head_stride_grad_v",
    ][::std::mem::offset_of!(spk_attention_backward, head_stride_grad_v) - 304usize];
    [
        "Offset of field: spk_attention_backward::stride_grad_o",
    ][::std::mem::offset_of!(spk_attention_backward, stride_grad_o) - 312usize];
    [
        "Offset of field: spk_attention_backward::stride_grad_lse",
    ][::std::mem::offset_of!(spk_attention_backward, stride_grad_lse) - 320usize];
    [
        "Offset of field: spk_attention_backward::stride_grad_q",
    ][::std::mem::offset_of!(spk_attention_backward, stride_grad_q) - 328usize];
    [
        "Offset of field: spk_attention_backward::stride_grad_k",
    ][::std::mem::offset_of!(spk_attention_backward, stride_grad_k) - 336usize];
    [
        "Offset of field: spk_attention_backward::stride_grad_v",
    ][::std::mem::offset_of!(spk_attention_backward, stride_grad_v) - 344usize];
    [
        "Offset of field: spk_attention_backward::sequences",
    ][::std::mem::offset_of!(spk_attention_backward, sequences) - 352usize];
    [
        "Offset of field: spk_attention_backward::key_lengths",
    ][::std::mem::offset_of!(spk_attention_backward, key_lengths) - 360usize];
    [
        "Offset of field: spk_attention_backward::assume_finite",
    ][::std::mem::offset_of!(spk_attention_backward, assume_finite) - 364usize];
    [
        "Offset of field: spk_attention_backward::tiles",
    ][::std::mem::offset_of!(spk_attention_backward, tiles) - 368usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_attention_backward_args {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub reserved: ::std::os::raw::c_int,
    pub q: *const ::std::os::raw::c_void,
    pub k: *const ::std::os::raw::c_void,
    pub v: *const ::std::os::raw::c_void,
    pub o: *const ::std::os::raw::c_void,
    pub lse: *const ::std::os::raw::c_void,
    pub grad_o: *const ::std::os::raw::c_void,
    pub grad_lse: *const ::std::os::raw::c_void,
    pub grad_q: *mut ::std::os::raw::c_void,
    pub grad_k: *mut ::std::os::raw::c_void,
    pub grad_v: *mut ::std::os::raw::c_void,
    pub query_ends: *const ::std::os::raw::c_void,
    pub key_ends: *const ::std::os::raw::c_void,
    pub tile_numbers: *const ::std::os::raw::c_void,
    pub tile_bits: *const ::std::os::raw::c_void,
    pub scale: f64,
    pub softcap: f64,
    pub workspace: *mut ::std::os::raw::c_void,
    pub workspace_bytes: usize,
    pub stream: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of spk_attention_backward_args",
    ][::std::mem::size_of::<spk_attention_backward_args>() - 168usize];
    [
        "Alignment of spk_attention_backward_args",
    ][::std::mem::align_of::<spk_attention_backward_args>() - 8usize];
    [
        "Offset of field: spk_attention_backward_args::struct_size",
    ][::std::mem::offset_of!(spk_attention_backward_args, struct_size) - 0usize];
    [
        "Offset of field: spk_attention_backward_args::operation",
    ][::std::mem::offset_of!(spk_attention_backward_args, operation) - 8usize];
    [
        "Offset of field: spk_attention_backward_args::reserved",
    ][::std::mem::offset_of!(spk_attention_backward_args, reserved) - 12usize];
    [
        "Offset of field: spk_attention_backward_args::q",
    ][::std::mem::offset_of!(spk_attention_backward_args, q) - 16usize];
    [
        "Offset of field: spk_attention_backward_args::k",
    ][::std::mem::offset_of!(spk_attention_backward_args, k) - 24usize];
    [
        "Offset of field: spk_attention_backward_args::v",
    ][::std::mem::offset_of!(spk_attention_backward_args, v) - 32usize];
    [
        "Offset of field: spk_attention_backward_args::o",
    ][::std::mem::offset_of!(spk_attention_backward_args, o) - 40usize];
    [
        "Offset of field: spk_attention_backward_args::lse",
    ][::std::mem::offset_of!(spk_attention_backward_args, lse) - 48usize];
    [
        "Offset of field: spk_attention_backward_args::grad_o",
    ][::std::mem::offset_of!(spk_attention_backward_args, grad_o) - 56usize];
    [
        "Offset of field: spk_attention_backward_args::grad_lse",
    ][::std::mem::offset_of!(spk_attention_backward_args, grad_lse) - 64usize];
    [
        "Offset of field: spk_attention_backward_args::grad_q",
    ][::std::mem::offset_of!(spk_attention_backward_args, grad_q) - 72usize];
    [
        "Offset of field: spk_attention_backward_args::grad_k",
    ][::std::mem::offset_of!(spk_attention_backward_args, grad_k) - 80usize];
    [
        "Offset of field: spk_attention_backward_args::grad_v",
    ][::std::mem::offset_of!(spk_attention_backward_args, grad_v) - 88usize];
    [
        "Offset of field: spk_attention_backward_args::query_ends",
    ][::std::mem::offset_of!(spk_attention_backward_args, query_ends) - 96usize];
    [
        "Offset of field: spk_attention_backward_args::key_ends",
    ][::std::mem::offset_of!(spk_attention_backward_args, key_ends) - 104usize];
    [
        "Offset of field: spk_attention_backward_args::tile_numbers",
    ][::std::mem::offset_of!(spk_attention_backward_args, tile_numbers) - 112usize];
    [
        "Offset of field: spk_attention_backward_args::tile_bits",
    ][::std::mem::offset_of!(spk_attention_backward_args, tile_bits) - 120usize];
    [
        "Offset of field: spk_attention_backward_args::scale",
    ][::std::mem::offset_of!(spk_attention_backward_args, scale) - 128usize];
    [
        "Offset of field: spk_attention_backward_args::softcap",
    ][::std::mem::offset_of!(spk_attention_backward_args, softcap) - 136usize];
    [
        "Offset of field: spk_attention_backward_args::workspace",
    ][::std::mem::offset_of!(spk_attention_backward_args, workspace) - 144usize];
    [
        "Offset of field: spk_attention_backward_args::workspace_bytes",
    ][::std::mem::offset_of!(spk_attention_backward_args, workspace_bytes) - 152usize];
    [
        "Offset of field: spk_attention_backward_args::stream",
    ][::std::mem::offset_of!(spk_attention_backward_args, stream) - 160usize];
};
pub const SPK_TUNE_MEASURE: spk_effort = spk_effort(0);
pub const SPK_TUNE_ESTIMATE: spk_effort = spk_effort(1);
pub const SPK_TUNE_EXHAUSTIVE: spk_effort = spk_effort(2);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_effort(pub ::std::os::raw::c_uint);
pub const SPK_TUNING_IN_PLACE: spk_tuning = spk_tuning(0);
pub const SPK_TUNING_NOW: spk_tuning = spk_tuning(1);
pub const SPK_TUNING_NOW_EACH: spk_tuning = spk_tuning(2);
pub const SPK_TUNING_NEVER: spk_tuning = spk_tuning(3);
pub const SPK_TUNING_AHEAD: spk_tuning = spk_tuning(4);
pub const SPK_TUNING_AHEAD_EACH: spk_tuning = spk_tuning(5);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_tuning(pub ::std::os::raw::c_uint);
pub const SPK_COLD: spk_cache_mode = spk_cache_mode(0);
pub const SPK_WARM: spk_cache_mode = spk_cache_mode(1);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_cache_mode(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_tune_options {
    pub struct_size: usize,
    pub effort: spk_effort,
    pub tuning: spk_tuning,
    pub cache: spk_cache_mode,
    pub budget_s: f64,
    pub tolerance: f64,
    pub fresh: ::std::os::raw::c_int,
    pub reserved: ::std::os::raw::c_int,
    pub only: *const ::std::os::raw::c_char,
    pub exclude: *const ::std::os::raw::c_char,
    pub choice: *const ::std::os::raw::c_char,
    pub seed: u64,
    pub cancel: *const ::std::os::raw::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_tune_options"][::std::mem::size_of::<spk_tune_options>() - 88usize];
    [
        "Alignment of spk_tune_options",
    ][::std::mem::align_of::<spk_tune_options>() - 8usize];
    [
        "Offset of field: spk_tune_options::struct_size",
    ][::std::mem::offset_of!(spk_tune_options, struct_size) - 0usize];
    [
        "Offset of field: spk_tune_options::effort",
    ][::std::mem::offset_of!(spk_tune_options, effort) - 8usize];
    [
        "Offset of field: spk_tune_options::tuning",
    ][::std::mem::offset_of!(spk_tune_options, tuning) - 12usize];
    [
        "Offset of field: spk_tune_options::cache",
    ][::std::mem::offset_of!(spk_tune_options, cache) - 16usize];
    [
        "Offset of field: spk_tune_options::budget_s",
    ][::std::mem::offset_of!(spk_tune_options, budget_s) - 24usize];
    [
        "Offset of field: spk_tune_options::tolerance",
    ][::std::mem::offset_of!(spk_tune_options, tolerance) - 32usize];
    [
        "Offset of field: spk_tune_options::fresh",
    ][::std::mem::offset_of!(spk_tune_options, fresh) - 40usize];
    [
        "Offset of field: spk_tune_options::reserved",
    ][::std::mem::offset_of!(spk_tune_options, reserved) - 44usize];
    [
        "Offset of field: spk_tune_options::only",
    ][::std::mem::offset_of!(spk_tune_options, only) - 48usize];
    [
        "Offset of field: spk_tune_options::exclude",
    ][::std::mem::offset_of!(spk_tune_options, exclude) - 56usize];
    [
        "Offset of field: spk_tune_options::choice",
    ][::std::mem::offset_of!(spk_tune_options, choice) - 64usize];
    [
        "Offset of field: spk_tune_options::seed",
    ][::std::mem::offset_of!(spk_tune_options, seed) - 72usize];
    [
        "Offset of field: spk_tune_options::cancel",
    ][::std::mem::offset_of!(spk_tune_options, cancel) - 80usize];
};
#[repr(C)]
#[derive(Debug)]
pub struct spk_plan {
    _unused: [u8; 0],
}
unsafe extern "C" {
    pub fn spk_plan_create(
        context: *mut spk_context,
        pattern: *mut spk_pattern,
        problem: *const ::std::os::raw::c_void,
        options: *const spk_tune_options,
        plan: *mut *mut spk_plan,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_plan_destroy(plan: *mut *mut spk_plan);
}
unsafe extern "C" {
    pub fn spk_plan_run(
        plan: *const spk_plan,
        args: *const ::std::os::raw::c_void,
        stream: *mut ::std::os::raw::c_void,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_plan_update_values(
        plan: *mut spk_plan,
        values: *const ::std::os::raw::c_void,
        stream: *mut ::std::os::raw::c_void,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_plan_info {
    pub struct_size: usize,
    pub kernel: *const ::std::os::raw::c_char,
    pub params: *const ::std::os::raw::c_char,
    pub why: *const ::std::os::raw::c_char,
    pub from_store: ::std::os::raw::c_int,
    pub workspace_bytes: usize,
    pub prepare_us: f64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_plan_info"][::std::mem::size_of::<spk_plan_info>() - 56usize];
    ["Alignment of spk_plan_info"][::std::mem::align_of::<spk_plan_info>() - 8usize];
    [
        "Offset of field: spk_plan_info::struct_size",
    ][::std::mem::offset_of!(spk_plan_info, struct_size) - 0usize];
    [
        "Offset of field: spk_plan_info::kernel",
    ][::std::mem::offset_of!(spk_plan_info, kernel) - 8usize];
    [
        "Offset of field: spk_plan_info::params",
    ][::std::mem::offset_of!(spk_plan_info, params) - 16usize];
    [
        "Offset of field: spk_plan_info::why",
    ][::std::mem::offset_of!(spk_plan_info, why) - 24usize];
    [
        "Offset of field: spk_plan_info::from_store",
    ][::std::mem::offset_of!(spk_plan_info, from_store) - 32usize];
    [
        "Offset of field: spk_plan_info::workspace_bytes",
    ][::std::mem::offset_of!(spk_plan_info, workspace_bytes) - 40usize];
    [
        "Offset of field: spk_plan_info::prepare_us",
    ][::std::mem::offset_of!(spk_plan_info, prepare_us) - 48usize];
};
unsafe extern "C" {
    pub fn spk_plan_get_info(
        plan: *const spk_plan,
        info: *mut spk_plan_info,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_plan_workspace_bytes(plan: *const spk_plan) -> usize;
}
unsafe extern "C" {
    pub fn spk_plan_choice(plan: *const spk_plan) -> *const ::std::os::raw::c_char;
}
unsafe extern "C" {
    pub fn spk_compute(
        context: *mut spk_context,
        pattern: *mut spk_pattern,
        problem: *const ::std::os::raw::c_void,
        args: *const ::std::os::raw::c_void,
        options: *const spk_tune_options,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_oracle(
        context: *mut spk_context,
        pattern: *const spk_pattern,
        problem: *const ::std::os::raw::c_void,
        args: *const ::std::os::raw::c_void,
        operand: ::std::os::raw::c_int,
        rows: *const i64,
        row_count: i64,
        out: *mut f64,
        magnitude: *mut f64,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_default_tolerance(
        context: *mut spk_context,
        pattern: *const spk_pattern,
        problem: *const ::std::os::raw::c_void,
        operand: ::std::os::raw::c_int,
        tolerance: *mut f64,
    ) -> spk_status;
}
pub const SPK_KIND_OWN: spk_kind = spk_kind(1);
pub const SPK_KIND_VENDOR: spk_kind = spk_kind(2);
pub const SPK_KIND_DENSE: spk_kind = spk_kind(3);
pub const SPK_KIND_REFERENCE: spk_kind = spk_kind(4);
pub const SPK_KIND_PEER: spk_kind = spk_kind(5);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_kind(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_kernel_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub operation: spk_operation,
    pub kind: spk_kind,
    pub device: *const ::std::os::raw::c_char,
    pub isa: *const ::std::os::raw::c_char,
    pub tunables: *const ::std::os::raw::c_char,
    pub types: *const ::std::os::raw::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_kernel_info"][::std::mem::size_of::<spk_kernel_info>() - 56usize];
    ["Alignment of spk_kernel_info"][::std::mem::align_of::<spk_kernel_info>() - 8usize];
    [
        "Offset of field: spk_kernel_info::struct_size",
    ][::std::mem::offset_of!(spk_kernel_info, struct_size) - 0usize];
    [
        "Offset of field: spk_kernel_info::name",
    ][::std::mem::offset_of!(spk_kernel_info, name) - 8usize];
    [
        "Offset of field: spk_kernel_info::operation",
    ][::std::mem::offset_of!(spk_kernel_info, operation) - 16usize];
    [
        "Offset of field: spk_kernel_info::kind",
    ][::std::mem::offset_of!(spk_kernel_info, kind) - 20usize];
    [
        "Offset of field: spk_kernel_info::device",
    ][::std::mem::offset_of!(spk_kernel_info, device) - 24usize];
    [
        "Offset of field: spk_kernel_info::isa",
    ][::std::mem::offset_of!(spk_kernel_info, isa) - 32usize];
    [
        "Offset of field: spk_kernel_info::tunables",
    ][::std::mem::offset_of!(spk_kernel_info, tunables) - 40usize];
    [
        "Offset of field: spk_kernel_info::types",
    ][::std::mem::offset_of!(spk_kernel_info, types) - 48usize];
};
unsafe extern "C" {
    pub fn spk_kernel_count() -> ::std::os::raw::c_int;
}
unsafe extern "C" {
    pub fn spk_kernel_get_info(
        index: ::std::os::raw::c_int,
        info: *mut spk_kernel_info,
    ) -> spk_status;
}
pub const SPK_CANDIDATE_OK: spk_candidate_status = spk_candidate_status(0);
pub const SPK_CANDIDATE_WRONG: spk_candidate_status = spk_candidate_status(1);
pub const SPK_CANDIDATE_FAILED: spk_candidate_status = spk_candidate_status(2);
pub const SPK_CANDIDATE_TIMED_OUT: spk_candidate_status = spk_candidate_status(3);
pub const SPK_CANDIDATE_PRUNED: spk_candidate_status = spk_candidate_status(4);
pub const SPK_CANDIDATE_NOT_ELIGIBLE: spk_candidate_status = spk_candidate_status(5);
pub const SPK_CANDIDATE_NOT_APPLICABLE: spk_candidate_status = spk_candidate_status(6);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_candidate_status(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_candidate_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub params: *const ::std::os::raw::c_char,
    pub hash: *const ::std::os::raw::c_char,
    pub kind: spk_kind,
    pub status: spk_candidate_status,
    pub why: *const ::std::os::raw::c_char,
    pub predicted_us: f64,
    pub median_us: f64,
    pub spread_us: f64,
    pub least_us: f64,
    pub prepare_us: f64,
    pub error: f64,
    pub tolerance: f64,
    pub sample_count: i64,
    pub samples_us: *const f64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of spk_candidate_info",
    ][::std::mem::size_of::<spk_candidate_info>() - 120usize];
    [
        "Alignment of spk_candidate_info",
    ][::std::mem::align_of::<spk_candidate_info>() - 8usize];
    [
        "Offset of field: spk_candidate_info::struct_size",
    ][::std::mem::offset_of!(spk_candidate_info, struct_size) - 0usize];
    [
        "Offset of field: spk_candidate_info::name",
    ][::std::mem::offset_of!(spk_candidate_info, name) - 8usize];
    [
        "Offset of field: spk_candidate_info::params",
    ][::std::mem::offset_of!(spk_candidate_info, params) - 16usize];
    [
        "Offset of field: spk_candidate_info::hash",
    ][::std::mem::offset_of!(spk_candidate_info, hash) - 24usize];
    [
        "Offset of field: spk_candidate_info::kind",
    ][::std::mem::offset_of!(spk_candidate_info, kind) - 32usize];
    [
        "Offset of field: spk_candidate_info::status",
    ][::std::mem::offset_of!(spk_candidate_info, status) - 36usize];
    [
        "Offset of field: spk_candidate_info::why",
    ][::std::mem::offset_of!(spk_candidate_info, why) - 40usize];
    [
        "Offset of field: spk_candidate_info::predicted_us",
    ][::std::mem::offset_of!(spk_candidate_info, predicted_us) - 48usize];
    [
        "Offset of field: spk_candidate_info::median_us",
    ][::std::mem::offset_of!(spk_candidate_info, median_us) - 56usize];
    [
        "Offset of field: spk_candidate_info::spread_us",
    ][::std::mem::offset_of!(spk_candidate_info, spread_us) - 64usize];
    [
        "Offset of field: spk_candidate_info::least_us",
    ][::std::mem::offset_of!(spk_candidate_info, least_us) - 72usize];
    [
        "Offset of field: spk_candidate_info::prepare_us",
    ][::std::mem::offset_of!(spk_candidate_info, prepare_us) - 80usize];
    [
        "Offset of field: spk_candidate_info::error",
    ][::std::mem::offset_of!(spk_candidate_info, error) - 88usize];
    [
        "Offset of field: spk_candidate_info::tolerance",
    ][::std::mem::offset_of!(spk_candidate_info, tolerance) - 96usize];
    [
        "Offset of field: spk_candidate_info::sample_count",
    ][::std::mem::offset_of!(spk_candidate_info, sample_count) - 104usize];
    [
        "Offset of field: spk_candidate_info::samples_us",
    ][::std::mem::offset_of!(spk_candidate_info, samples_us) - 112usize];
};
#[repr(C)]
#[derive(Debug)]
pub struct spk_report {
    _unused: [u8; 0],
}
pub const SPK_PROVISIONAL_NO: spk_provisional = spk_provisional(0);
pub const SPK_PROVISIONAL_INTERRUPTED: spk_provisional = spk_provisional(1);
pub const SPK_PROVISIONAL_BUDGET: spk_provisional = spk_provisional(2);
pub const SPK_PROVISIONAL_LOAD: spk_provisional = spk_provisional(3);
pub const SPK_PROVISIONAL_IN_PLACE: spk_provisional = spk_provisional(4);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_provisional(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_report_info {
    pub struct_size: usize,
    pub candidate_count: ::std::os::raw::c_int,
    pub chosen: ::std::os::raw::c_int,
    pub from_store: ::std::os::raw::c_int,
    pub foreign: ::std::os::raw::c_int,
    pub provisional: spk_provisional,
    pub reserved: ::std::os::raw::c_int,
    pub tuning_s: f64,
    pub measured_at: i64,
    pub class_key: *const ::std::os::raw::c_char,
    pub summary: *const ::std::os::raw::c_char,
    pub origin: *const ::std::os::raw::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_report_info"][::std::mem::size_of::<spk_report_info>() - 72usize];
    ["Alignment of spk_report_info"][::std::mem::align_of::<spk_report_info>() - 8usize];
    [
        "Offset of field: spk_report_info::struct_size",
    ][::std::mem::offset_of!(spk_report_info, struct_size) - 0usize];
    [
        "Offset of field: spk_report_info::candidate_count",
    ][::std::mem::offset_of!(spk_report_info, candidate_count) - 8usize];
    [
        "Offset of field: spk_report_info::chosen",
    ][::std::mem::offset_of!(spk_report_info, chosen) - 12usize];
    [
        "Offset of field: spk_report_info::from_store",
    ][::std::mem::offset_of!(spk_report_info, from_store) - 16usize];
    [
        "Offset of field: spk_report_info::foreign",
    ][::std::mem::offset_of!(spk_report_info, foreign) - 20usize];
    [
        "Offset of field: spk_report_info::provisional",
    ][::std::mem::offset_of!(spk_report_info, provisional) - 24usize];
    [
        "Offset of field: spk_report_info::reserved",
    ][::std::mem::offset_of!(spk_report_info, reserved) - 28usize];
    [
        "Offset of field: spk_report_info::tuning_s",
    ][::std::mem::offset_of!(spk_report_info, tuning_s) - 32usize];
    [
        "Offset of field: spk_report_info::measured_at",
    ][::std::mem::offset_of!(spk_report_info, measured_at) - 40usize];
    [
        "Offset of field: spk_report_info::class_key",
    ][::std::mem::offset_of!(spk_report_info, class_key) - 48usize];
    [
        "Offset of field: spk_report_info::summary",
    ][::std::mem::offset_of!(spk_report_info, summary) - 56usize];
    [
        "Offset of field: spk_report_info::origin",
    ][::std::mem::offset_of!(spk_report_info, origin) - 64usize];
};
unsafe extern "C" {
    pub fn spk_report_get_info(
        report: *const spk_report,
        info: *mut spk_report_info,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_report_get_candidate(
        report: *const spk_report,
        index: ::std::os::raw::c_int,
        info: *mut spk_candidate_info,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_report_destroy(report: *mut *mut spk_report);
}
unsafe extern "C" {
    pub fn spk_list_candidates(
        context: *mut spk_context,
        pattern: *mut spk_pattern,
        problem: *const ::std::os::raw::c_void,
        options: *const spk_tune_options,
        report: *mut *mut spk_report,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_tune(
        context: *mut spk_context,
        pattern: *mut spk_pattern,
        problem: *const ::std::os::raw::c_void,
        options: *const spk_tune_options,
        report: *mut *mut spk_report,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_explain(
        context: *mut spk_context,
        pattern: *mut spk_pattern,
        problem: *const ::std::os::raw::c_void,
        options: *const spk_tune_options,
        report: *mut *mut spk_report,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_race_options {
    pub struct_size: usize,
    pub rounds: ::std::os::raw::c_int,
    pub choices: *const ::std::os::raw::c_char,
    pub keep: ::std::os::raw::c_int,
    pub all: ::std::os::raw::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_race_options"][::std::mem::size_of::<spk_race_options>() - 32usize];
    [
        "Alignment of spk_race_options",
    ][::std::mem::align_of::<spk_race_options>() - 8usize];
    [
        "Offset of field: spk_race_options::struct_size",
    ][::std::mem::offset_of!(spk_race_options, struct_size) - 0usize];
    [
        "Offset of field: spk_race_options::rounds",
    ][::std::mem::offset_of!(spk_race_options, rounds) - 8usize];
    [
        "Offset of field: spk_race_options::choices",
    ][::std::mem::offset_of!(spk_race_options, choices) - 16usize];
    [
        "Offset of field: spk_race_options::keep",
    ][::std::mem::offset_of!(spk_race_options, keep) - 24usize];
    [
        "Offset of field: spk_race_options::all",
    ][::std::mem::offset_of!(spk_race_options, all) - 28usize];
};
unsafe extern "C" {
    pub fn spk_race_kernels(
        context: *mut spk_context,
        pattern: *mut spk_pattern,
        problem: *const ::std::os::raw::c_void,
        options: *const spk_tune_options,
        race: *const spk_race_options,
        report: *mut *mut spk_report,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_store_path(context: *const spk_context) -> *const ::std::os::raw::c_char;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_store_entry {
    pub struct_size: usize,
    pub class_key: *const ::std::os::raw::c_char,
    pub device: *const ::std::os::raw::c_char,
    pub choice: *const ::std::os::raw::c_char,
    pub median_us: f64,
    pub candidate_count: ::std::os::raw::c_int,
    pub provisional: spk_provisional,
    pub measured_at: i64,
    pub bytes: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_store_entry"][::std::mem::size_of::<spk_store_entry>() - 64usize];
    ["Alignment of spk_store_entry"][::std::mem::align_of::<spk_store_entry>() - 8usize];
    [
        "Offset of field: spk_store_entry::struct_size",
    ][::std::mem::offset_of!(spk_store_entry, struct_size) - 0usize];
    [
        "Offset of field: spk_store_entry::class_key",
    ][::std::mem::offset_of!(spk_store_entry, class_key) - 8usize];
    [
        "Offset of field: spk_store_entry::device",
    ][::std::mem::offset_of!(spk_store_entry, device) - 16usize];
    [
        "Offset of field: spk_store_entry::choice",
    ][::std::mem::offset_of!(spk_store_entry, choice) - 24usize];
    [
        "Offset of field: spk_store_entry::median_us",
    ][::std::mem::offset_of!(spk_store_entry, median_us) - 32usize];
    [
        "Offset of field: spk_store_entry::candidate_count",
    ][::std::mem::offset_of!(spk_store_entry, candidate_count) - 40usize];
    [
        "Offset of field: spk_store_entry::provisional",
    ][::std::mem::offset_of!(spk_store_entry, provisional) - 44usize];
    [
        "Offset of field: spk_store_entry::measured_at",
    ][::std::mem::offset_of!(spk_store_entry, measured_at) - 48usize];
    [
        "Offset of field: spk_store_entry::bytes",
    ][::std::mem::offset_of!(spk_store_entry, bytes) - 56usize];
};
unsafe extern "C" {
    pub fn spk_store_list(
        context: *mut spk_context,
        visit: ::std::option::Option<
            unsafe extern "C" fn(
                user: *mut ::std::os::raw::c_void,
                entry: *const spk_store_entry,
            ) -> ::std::os::raw::c_int,
        >,
        user: *mut ::std::os::raw::c_void,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_store_export(
        context: *mut spk_context,
        path: *const ::std::os::raw::c_char,
        count: *mut i64,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_store_import(
        context: *mut spk_context,
        path: *const ::std::os::raw::c_char,
        count: *mut i64,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_store_verify(
        context: *mut spk_context,
        good: *mut i64,
        bad: *mut i64,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_store_clear(context: *mut spk_context, removed: *mut i64) -> spk_status;
}
#[repr(C)]
#[derive(Debug)]
pub struct spk_matrix {
    _unused: [u8; 0],
}
pub const SPK_DENSE: spk_format = spk_format(1);
pub const SPK_COO: spk_format = spk_format(2);
pub const SPK_CSR: spk_format = spk_format(3);
pub const SPK_BSR: spk_format = spk_format(4);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_format(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_matrix_desc {
    pub struct_size: usize,
    pub format: spk_format,
    pub dtype: spk_dtype,
    pub rows: i64,
    pub cols: i64,
    pub block_rows: i64,
    pub block_cols: i64,
    pub layout: spk_layout,
    pub ld: i64,
    pub nnz: i64,
    pub index_type: spk_index_type,
    pub row_offsets: *const ::std::os::raw::c_void,
    pub row_indices: *const ::std::os::raw::c_void,
    pub col_indices: *const ::std::os::raw::c_void,
    pub values: *const ::std::os::raw::c_void,
    pub pattern_only: ::std::os::raw::c_int,
    pub reserved: ::std::os::raw::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_matrix_desc"][::std::mem::size_of::<spk_matrix_desc>() - 120usize];
    ["Alignment of spk_matrix_desc"][::std::mem::align_of::<spk_matrix_desc>() - 8usize];
    [
        "Offset of field: spk_matrix_desc::struct_size",
    ][::std::mem::offset_of!(spk_matrix_desc, struct_size) - 0usize];
    [
        "Offset of field: spk_matrix_desc::format",
    ][::std::mem::offset_of!(spk_matrix_desc, format) - 8usize];
    [
        "Offset of field: spk_matrix_desc::dtype",
    ][::std::mem::offset_of!(spk_matrix_desc, dtype) - 12usize];
    [
        "Offset of field: spk_matrix_desc::rows",
    ][::std::mem::offset_of!(spk_matrix_desc, rows) - 16usize];
    [
        "Offset of field: spk_matrix_desc::cols",
    ][::std::mem::offset_of!(spk_matrix_desc, cols) - 24usize];
    [
        "Offset of field: spk_matrix_desc::block_rows",
    ][::std::mem::offset_of!(spk_matrix_desc, block_rows) - 32usize];
    [
        "Offset of field: spk_matrix_desc::block_cols",
    ][::std::mem::offset_of!(spk_matrix_desc, block_cols) - 40usize];
    [
        "Offset of field: spk_matrix_desc::layout",
    ][::std::mem::offset_of!(spk_matrix_desc, layout) - 48usize];
    [
        "Offset of field: spk_matrix_desc::ld",
    ][::std::mem::offset_of!(spk_matrix_desc, ld) - 56usize];
    [
        "Offset of field: spk_matrix_desc::nnz",
    ][::std::mem::offset_of!(spk_matrix_desc, nnz) - 64usize];
    [
        "Offset of field: spk_matrix_desc::index_type",
    ][::std::mem::offset_of!(spk_matrix_desc, index_type) - 72usize];
    [
        "Offset of field: spk_matrix_desc::row_offsets",
    ][::std::mem::offset_of!(spk_matrix_desc, row_offsets) - 80usize];
    [
        "Offset of field: spk_matrix_desc::row_indices",
    ][::std::mem::offset_of!(spk_matrix_desc, row_indices) - 88usize];
    [
        "Offset of field: spk_matrix_desc::col_indices",
    ][::std::mem::offset_of!(spk_matrix_desc, col_indices) - 96usize];
    [
        "Offset of field: spk_matrix_desc::values",
    ][::std::mem::offset_of!(spk_matrix_desc, values) - 104usize];
    [
        "Offset of field: spk_matrix_desc::pattern_only",
    ][::std::mem::offset_of!(spk_matrix_desc, pattern_only) - 112usize];
    [
        "Offset of field: spk_matrix_desc::reserved",
    ][::std::mem::offset_of!(spk_matrix_desc, reserved) - 116usize];
};
unsafe extern "C" {
    pub fn spk_matrix_create(
        context: *mut spk_context,
        desc: *const spk_matrix_desc,
        matrix: *mut *mut spk_matrix,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_matrix_destroy(matrix: *mut *mut spk_matrix);
}
unsafe extern "C" {
    pub fn spk_matrix_view(
        matrix: *const spk_matrix,
        desc: *mut spk_matrix_desc,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_pattern_from_matrix(
        context: *mut spk_context,
        bsr: *const spk_matrix,
        pattern: *mut *mut spk_pattern,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_matrix_to_bsr(
        context: *mut spk_context,
        matrix: *const spk_matrix,
        block_rows: i64,
        block_cols: i64,
        block_layout: spk_layout,
        out: *mut *mut spk_matrix,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_matrix_to_csr(
        context: *mut spk_context,
        matrix: *const spk_matrix,
        out: *mut *mut spk_matrix,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_matrix_to_coo(
        context: *mut spk_context,
        matrix: *const spk_matrix,
        out: *mut *mut spk_matrix,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_matrix_to_dense(
        context: *mut spk_context,
        matrix: *const spk_matrix,
        layout: spk_layout,
        out: *mut *mut spk_matrix,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_matrix_cast(
        context: *mut spk_context,
        matrix: *const spk_matrix,
        dtype: spk_dtype,
        out: *mut *mut spk_matrix,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_matrix_transpose(
        context: *mut spk_context,
        matrix: *const spk_matrix,
        out: *mut *mut spk_matrix,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_matrix_canonicalize(
        context: *mut spk_context,
        matrix: *const spk_matrix,
        out: *mut *mut spk_matrix,
    ) -> spk_status;
}
pub const SPK_NORM_L1: spk_norm = spk_norm(1);
pub const SPK_NORM_L2: spk_norm = spk_norm(2);
pub const SPK_NORM_MAX: spk_norm = spk_norm(3);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_norm(pub ::std::os::raw::c_uint);
unsafe extern "C" {
    pub fn spk_matrix_prune(
        context: *mut spk_context,
        matrix: *const spk_matrix,
        block_rows: i64,
        block_cols: i64,
        density: f64,
        norm: spk_norm,
        out: *mut *mut spk_matrix,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_block_advice {
    pub struct_size: usize,
    pub block_rows: i64,
    pub block_cols: i64,
    pub nnzb: i64,
    pub density: f64,
    pub fill: f64,
    pub score: f64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_block_advice"][::std::mem::size_of::<spk_block_advice>() - 56usize];
    [
        "Alignment of spk_block_advice",
    ][::std::mem::align_of::<spk_block_advice>() - 8usize];
    [
        "Offset of field: spk_block_advice::struct_size",
    ][::std::mem::offset_of!(spk_block_advice, struct_size) - 0usize];
    [
        "Offset of field: spk_block_advice::block_rows",
    ][::std::mem::offset_of!(spk_block_advice, block_rows) - 8usize];
    [
        "Offset of field: spk_block_advice::block_cols",
    ][::std::mem::offset_of!(spk_block_advice, block_cols) - 16usize];
    [
        "Offset of field: spk_block_advice::nnzb",
    ][::std::mem::offset_of!(spk_block_advice, nnzb) - 24usize];
    [
        "Offset of field: spk_block_advice::density",
    ][::std::mem::offset_of!(spk_block_advice, density) - 32usize];
    [
        "Offset of field: spk_block_advice::fill",
    ][::std::mem::offset_of!(spk_block_advice, fill) - 40usize];
    [
        "Offset of field: spk_block_advice::score",
    ][::std::mem::offset_of!(spk_block_advice, score) - 48usize];
};
unsafe extern "C" {
    pub fn spk_matrix_advise(
        context: *mut spk_context,
        matrix: *const spk_matrix,
        advice: *mut spk_block_advice,
        count: *mut ::std::os::raw::c_int,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_read_options {
    pub struct_size: usize,
    pub tensor: *const ::std::os::raw::c_char,
    pub dtype: spk_dtype,
    pub max_bytes: i64,
    pub cols: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_read_options"][::std::mem::size_of::<spk_read_options>() - 40usize];
    [
        "Alignment of spk_read_options",
    ][::std::mem::align_of::<spk_read_options>() - 8usize];
    [
        "Offset of field: spk_read_options::struct_size",
    ][::std::mem::offset_of!(spk_read_options, struct_size) - 0usize];
    [
        "Offset of field: spk_read_options::tensor",
    ][::std::mem::offset_of!(spk_read_options, tensor) - 8usize];
    [
        "Offset of field: spk_read_options::dtype",
    ][::std::mem::offset_of!(spk_read_options, dtype) - 16usize];
    [
        "Offset of field: spk_read_options::max_bytes",
    ][::std::mem::offset_of!(spk_read_options, max_bytes) - 24usize];
    [
        "Offset of field: spk_read_options::cols",
    ][::std::mem::offset_of!(spk_read_options, cols) - 32usize];
};
unsafe extern "C" {
    pub fn spk_matrix_read(
        context: *mut spk_context,
        path: *const ::std::os::raw::c_char,
        options: *const spk_read_options,
        matrix: *mut *mut spk_matrix,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_write_options {
    pub struct_size: usize,
    pub tensor: *const ::std::os::raw::c_char,
    pub comment: *const ::std::os::raw::c_char,
    pub format: *const ::std::os::raw::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_write_options"][::std::mem::size_of::<spk_write_options>() - 32usize];
    [
        "Alignment of spk_write_options",
    ][::std::mem::align_of::<spk_write_options>() - 8usize];
    [
        "Offset of field: spk_write_options::struct_size",
    ][::std::mem::offset_of!(spk_write_options, struct_size) - 0usize];
    [
        "Offset of field: spk_write_options::tensor",
    ][::std::mem::offset_of!(spk_write_options, tensor) - 8usize];
    [
        "Offset of field: spk_write_options::comment",
    ][::std::mem::offset_of!(spk_write_options, comment) - 16usize];
    [
        "Offset of field: spk_write_options::format",
    ][::std::mem::offset_of!(spk_write_options, format) - 24usize];
};
unsafe extern "C" {
    pub fn spk_matrix_write(
        context: *mut spk_context,
        matrix: *const spk_matrix,
        path: *const ::std::os::raw::c_char,
        options: *const spk_write_options,
    ) -> spk_status;
}
pub const SPK_PATTERN_NONE: spk_pattern_use = spk_pattern_use(0);
pub const SPK_PATTERN_NEEDED: spk_pattern_use = spk_pattern_use(1);
pub const SPK_PATTERN_OPTIONAL: spk_pattern_use = spk_pattern_use(2);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_pattern_use(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_operation_info {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub takes_pattern: spk_pattern_use,
    pub name: *const ::std::os::raw::c_char,
    pub formula: *const ::std::os::raw::c_char,
    pub problem_type: *const ::std::os::raw::c_char,
    pub args_type: *const ::std::os::raw::c_char,
    pub problem_bytes: usize,
    pub args_bytes: usize,
    pub workspace_offset: usize,
    pub workspace_bytes_offset: usize,
    pub stream_offset: usize,
    pub field_count: ::std::os::raw::c_int,
    pub size_count: ::std::os::raw::c_int,
    pub operand_count: ::std::os::raw::c_int,
    pub scalar_count: ::std::os::raw::c_int,
    pub sentence: *const ::std::os::raw::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of spk_operation_info",
    ][::std::mem::size_of::<spk_operation_info>() - 112usize];
    [
        "Alignment of spk_operation_info",
    ][::std::mem::align_of::<spk_operation_info>() - 8usize];
    [
        "Offset of field: spk_operation_info::struct_size",
    ][::std::mem::offset_of!(spk_operation_info, struct_size) - 0usize];
    [
        "Offset of field: spk_operation_info::operation",
    ][::std::mem::offset_of!(spk_operation_info, operation) - 8usize];
    [
        "Offset of field: spk_operation_info::takes_pattern",
    ][::std::mem::offset_of!(spk_operation_info, takes_pattern) - 12usize];
    [
        "Offset of field: spk_operation_info::name",
    ][::std::mem::offset_of!(spk_operation_info, name) - 16usize];
    [
        "Offset of field: spk_operation_info::formula",
    ][::std::mem::offset_of!(spk_operation_info, formula) - 24usize];
    [
        "Offset of field: spk_operation_info::problem_type",
    ][::std::mem::offset_of!(spk_operation_info, problem_type) - 32usize];
    [
        "Offset of field: spk_operation_info::args_type",
    ][::std::mem::offset_of!(spk_operation_info, args_type) - 40usize];
    [
        "Offset of field: spk_operation_info::problem_bytes",
    ][::std::mem::offset_of!(spk_operation_info, problem_bytes) - 48usize];
    [
        "Offset of field: spk_operation_info::args_bytes",
    ][::std::mem::offset_of!(spk_operation_info, args_bytes) - 56usize];
    [
        "Offset of field: spk_operation_info::workspace_offset",
    ][::std::mem::offset_of!(spk_operation_info, workspace_offset) - 64usize];
    [
        "Offset of field: spk_operation_info::workspace_bytes_offset",
    ][::std::mem::offset_of!(spk_operation_info, workspace_bytes_offset) - 72usize];
    [
        "Offset of field: spk_operation_info::stream_offset",
    ][::std::mem::offset_of!(spk_operation_info, stream_offset) - 80usize];
    [
        "Offset of field: spk_operation_info::field_count",
    ][::std::mem::offset_of!(spk_operation_info, field_count) - 88usize];
    [
        "Offset of field: spk_operation_info::size_count",
    ][::std::mem::offset_of!(spk_operation_info, size_count) - 92usize];
    [
        "Offset of field: spk_operation_info::operand_count",
    ][::std::mem::offset_of!(spk_operation_info, operand_count) - 96usize];
    [
        "Offset of field: spk_operation_info::scalar_count",
    ][::std::mem::offset_of!(spk_operation_info, scalar_count) - 100usize];
    [
        "Offset of field: spk_operation_info::sentence",
    ][::std::mem::offset_of!(spk_operation_info, sentence) - 104usize];
};
unsafe extern "C" {
    pub fn spk_operation_count() -> ::std::os::raw::c_int;
}
unsafe extern "C" {
    pub fn spk_operation_get_info(
        index: ::std::os::raw::c_int,
        info: *mut spk_operation_info,
    ) -> spk_status;
}
pub const SPK_FIELD_SIZE: spk_field_kind = spk_field_kind(1);
pub const SPK_FIELD_ITEMS: spk_field_kind = spk_field_kind(2);
pub const SPK_FIELD_DTYPE: spk_field_kind = spk_field_kind(3);
pub const SPK_FIELD_LAYOUT: spk_field_kind = spk_field_kind(4);
pub const SPK_FIELD_BLOCK_LAYOUT: spk_field_kind = spk_field_kind(5);
pub const SPK_FIELD_TRANS: spk_field_kind = spk_field_kind(6);
pub const SPK_FIELD_PART: spk_field_kind = spk_field_kind(7);
pub const SPK_FIELD_CHOICE: spk_field_kind = spk_field_kind(8);
pub const SPK_FIELD_LD: spk_field_kind = spk_field_kind(9);
pub const SPK_FIELD_STRIDE: spk_field_kind = spk_field_kind(10);
pub const SPK_FIELD_REAL: spk_field_kind = spk_field_kind(11);
pub const SPK_FIELD_GROUPS: spk_field_kind = spk_field_kind(12);
pub const SPK_FIELD_HEADS: spk_field_kind = spk_field_kind(13);
pub const SPK_FIELD_HEAD_STRIDE: spk_field_kind = spk_field_kind(14);
pub const SPK_FIELD_COUNT: spk_field_kind = spk_field_kind(15);
pub const SPK_FIELD_SCALE: spk_field_kind = spk_field_kind(16);
pub const SPK_FIELD_PROMISE: spk_field_kind = spk_field_kind(17);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_field_kind(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_field_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub kind: spk_field_kind,
    pub operand: ::std::os::raw::c_int,
    pub offset: usize,
    pub option: *const ::std::os::raw::c_char,
    pub values: *const ::std::os::raw::c_char,
    pub terms: *const ::std::os::raw::c_char,
    pub usual: *const ::std::os::raw::c_char,
    pub help: *const ::std::os::raw::c_char,
    pub low: f64,
    pub high: f64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_field_info"][::std::mem::size_of::<spk_field_info>() - 88usize];
    ["Alignment of spk_field_info"][::std::mem::align_of::<spk_field_info>() - 8usize];
    [
        "Offset of field: spk_field_info::struct_size",
    ][::std::mem::offset_of!(spk_field_info, struct_size) - 0usize];
    [
        "Offset of field: spk_field_info::name",
    ][::std::mem::offset_of!(spk_field_info, name) - 8usize];
    [
        "Offset of field: spk_field_info::kind",
    ][::std::mem::offset_of!(spk_field_info, kind) - 16usize];
    [
        "Offset of field: spk_field_info::operand",
    ][::std::mem::offset_of!(spk_field_info, operand) - 20usize];
    [
        "Offset of field: spk_field_info::offset",
    ][::std::mem::offset_of!(spk_field_info, offset) - 24usize];
    [
        "Offset of field: spk_field_info::option",
    ][::std::mem::offset_of!(spk_field_info, option) - 32usize];
    [
        "Offset of field: spk_field_info::values",
    ][::std::mem::offset_of!(spk_field_info, values) - 40usize];
    [
        "Offset of field: spk_field_info::terms",
    ][::std::mem::offset_of!(spk_field_info, terms) - 48usize];
    [
        "Offset of field: spk_field_info::usual",
    ][::std::mem::offset_of!(spk_field_info, usual) - 56usize];
    [
        "Offset of field: spk_field_info::help",
    ][::std::mem::offset_of!(spk_field_info, help) - 64usize];
    [
        "Offset of field: spk_field_info::low",
    ][::std::mem::offset_of!(spk_field_info, low) - 72usize];
    [
        "Offset of field: spk_field_info::high",
    ][::std::mem::offset_of!(spk_field_info, high) - 80usize];
};
unsafe extern "C" {
    pub fn spk_operation_get_field(
        operation: spk_operation,
        index: ::std::os::raw::c_int,
        info: *mut spk_field_info,
    ) -> spk_status;
}
pub const SPK_SIZE_FIELD: spk_size_source = spk_size_source(0);
pub const SPK_SIZE_PATTERN_ROWS: spk_size_source = spk_size_source(1);
pub const SPK_SIZE_PATTERN_COLS: spk_size_source = spk_size_source(2);
pub const SPK_SIZE_LIST_ROWS: spk_size_source = spk_size_source(3);
pub const SPK_SIZE_LIST_COLS: spk_size_source = spk_size_source(4);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_size_source(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_size_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub source: spk_size_source,
    pub reserved: ::std::os::raw::c_int,
    pub usual: i64,
    pub help: *const ::std::os::raw::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_size_info"][::std::mem::size_of::<spk_size_info>() - 40usize];
    ["Alignment of spk_size_info"][::std::mem::align_of::<spk_size_info>() - 8usize];
    [
        "Offset of field: spk_size_info::struct_size",
    ][::std::mem::offset_of!(spk_size_info, struct_size) - 0usize];
    [
        "Offset of field: spk_size_info::name",
    ][::std::mem::offset_of!(spk_size_info, name) - 8usize];
    [
        "Offset of field: spk_size_info::source",
    ][::std::mem::offset_of!(spk_size_info, source) - 16usize];
    [
        "Offset of field: spk_size_info::reserved",
    ][::std::mem::offset_of!(spk_size_info, reserved) - 20usize];
    [
        "Offset of field: spk_size_info::usual",
    ][::std::mem::offset_of!(spk_size_info, usual) - 24usize];
    [
        "Offset of field: spk_size_info::help",
    ][::std::mem::offset_of!(spk_size_info, help) - 32usize];
};
unsafe extern "C" {
    pub fn spk_operation_get_size(
        operation: spk_operation,
        index: ::std::os::raw::c_int,
        info: *mut spk_size_info,
    ) -> spk_status;
}
pub const SPK_ROLE_IN: spk_role = spk_role(0);
pub const SPK_ROLE_IN_SCALED: spk_role = spk_role(1);
pub const SPK_ROLE_OUT: spk_role = spk_role(2);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_role(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_operand_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub title: *const ::std::os::raw::c_char,
    pub extents: *const ::std::os::raw::c_char,
    pub offset: usize,
    pub role: spk_role,
    pub scalar: ::std::os::raw::c_int,
    pub is_values: ::std::os::raw::c_int,
    pub may_be_static: ::std::os::raw::c_int,
    pub may_be: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_operand_info"][::std::mem::size_of::<spk_operand_info>() - 64usize];
    [
        "Alignment of spk_operand_info",
    ][::std::mem::align_of::<spk_operand_info>() - 8usize];
    [
        "Offset of field: spk_operand_info::struct_size",
    ][::std::mem::offset_of!(spk_operand_info, struct_size) - 0usize];
    [
        "Offset of field: spk_operand_info::name",
    ][::std::mem::offset_of!(spk_operand_info, name) - 8usize];
    [
        "Offset of field: spk_operand_info::title",
    ][::std::mem::offset_of!(spk_operand_info, title) - 16usize];
    [
        "Offset of field: spk_operand_info::extents",
    ][::std::mem::offset_of!(spk_operand_info, extents) - 24usize];
    [
        "Offset of field: spk_operand_info::offset",
    ][::std::mem::offset_of!(spk_operand_info, offset) - 32usize];
    [
        "Offset of field: spk_operand_info::role",
    ][::std::mem::offset_of!(spk_operand_info, role) - 40usize];
    [
        "Offset of field: spk_operand_info::scalar",
    ][::std::mem::offset_of!(spk_operand_info, scalar) - 44usize];
    [
        "Offset of field: spk_operand_info::is_values",
    ][::std::mem::offset_of!(spk_operand_info, is_values) - 48usize];
    [
        "Offset of field: spk_operand_info::may_be_static",
    ][::std::mem::offset_of!(spk_operand_info, may_be_static) - 52usize];
    [
        "Offset of field: spk_operand_info::may_be",
    ][::std::mem::offset_of!(spk_operand_info, may_be) - 56usize];
};
unsafe extern "C" {
    pub fn spk_operation_get_operand(
        operation: spk_operation,
        index: ::std::os::raw::c_int,
        info: *mut spk_operand_info,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_scalar_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub offset: usize,
    pub operand: ::std::os::raw::c_int,
    pub reserved: ::std::os::raw::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_scalar_info"][::std::mem::size_of::<spk_scalar_info>() - 32usize];
    ["Alignment of spk_scalar_info"][::std::mem::align_of::<spk_scalar_info>() - 8usize];
    [
        "Offset of field: spk_scalar_info::struct_size",
    ][::std::mem::offset_of!(spk_scalar_info, struct_size) - 0usize];
    [
        "Offset of field: spk_scalar_info::name",
    ][::std::mem::offset_of!(spk_scalar_info, name) - 8usize];
    [
        "Offset of field: spk_scalar_info::offset",
    ][::std::mem::offset_of!(spk_scalar_info, offset) - 16usize];
    [
        "Offset of field: spk_scalar_info::operand",
    ][::std::mem::offset_of!(spk_scalar_info, operand) - 24usize];
    [
        "Offset of field: spk_scalar_info::reserved",
    ][::std::mem::offset_of!(spk_scalar_info, reserved) - 28usize];
};
unsafe extern "C" {
    pub fn spk_operation_get_scalar(
        operation: spk_operation,
        index: ::std::os::raw::c_int,
        info: *mut spk_scalar_info,
    ) -> spk_status;
}
pub const SPK_MOST_SIZES: _bindgen_ty_1 = _bindgen_ty_1(8);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct _bindgen_ty_1(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_problem_info {
    pub struct_size: usize,
    pub operation: spk_operation,
    pub compute: spk_dtype,
    pub items: i64,
    pub sizes: [i64; 8usize],
    pub flops: f64,
    pub dense_flops: f64,
    pub bytes: f64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_problem_info"][::std::mem::size_of::<spk_problem_info>() - 112usize];
    [
        "Alignment of spk_problem_info",
    ][::std::mem::align_of::<spk_problem_info>() - 8usize];
    [
        "Offset of field: spk_problem_info::struct_size",
    ][::std::mem::offset_of!(spk_problem_info, struct_size) - 0usize];
    [
        "Offset of field: spk_problem_info::operation",
    ][::std::mem::offset_of!(spk_problem_info, operation) - 8usize];
    [
        "Offset of field: spk_problem_info::compute",
    ][::std::mem::offset_of!(spk_problem_info, compute) - 12usize];
    [
        "Offset of field: spk_problem_info::items",
    ][::std::mem::offset_of!(spk_problem_info, items) - 16usize];
    [
        "Offset of field: spk_problem_info::sizes",
    ][::std::mem::offset_of!(spk_problem_info, sizes) - 24usize];
    [
        "Offset of field: spk_problem_info::flops",
    ][::std::mem::offset_of!(spk_problem_info, flops) - 88usize];
    [
        "Offset of field: spk_problem_info::dense_flops",
    ][::std::mem::offset_of!(spk_problem_info, dense_flops) - 96usize];
    [
        "Offset of field: spk_problem_info::bytes",
    ][::std::mem::offset_of!(spk_problem_info, bytes) - 104usize];
};
unsafe extern "C" {
    pub fn spk_problem_get_info(
        context: *mut spk_context,
        pattern: *const spk_pattern,
        problem: *const ::std::os::raw::c_void,
        info: *mut spk_problem_info,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_array_info {
    pub struct_size: usize,
    pub rows: i64,
    pub cols: i64,
    pub ld: i64,
    pub stride: i64,
    pub elements: i64,
    pub dtype: spk_dtype,
    pub layout: spk_layout,
    pub heads: i64,
    pub head_stride: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_array_info"][::std::mem::size_of::<spk_array_info>() - 72usize];
    ["Alignment of spk_array_info"][::std::mem::align_of::<spk_array_info>() - 8usize];
    [
        "Offset of field: spk_array_info::struct_size",
    ][::std::mem::offset_of!(spk_array_info, struct_size) - 0usize];
    [
        "Offset of field: spk_array_info::rows",
    ][::std::mem::offset_of!(spk_array_info, rows) - 8usize];
    [
        "Offset of field: spk_array_info::cols",
    ][::std::mem::offset_of!(spk_array_info, cols) - 16usize];
    [
        "Offset of field: spk_array_info::ld",
    ][::std::mem::offset_of!(spk_array_info, ld) - 24usize];
    [
        "Offset of field: spk_array_info::stride",
    ][::std::mem::offset_of!(spk_array_info, stride) - 32usize];
    [
        "Offset of field: spk_array_info::elements",
    ][::std::mem::offset_of!(spk_array_info, elements) - 40usize];
    [
        "Offset of field: spk_array_info::dtype",
    ][::std::mem::offset_of!(spk_array_info, dtype) - 48usize];
    [
        "Offset of field: spk_array_info::layout",
    ][::std::mem::offset_of!(spk_array_info, layout) - 52usize];
    [
        "Offset of field: spk_array_info::heads",
    ][::std::mem::offset_of!(spk_array_info, heads) - 56usize];
    [
        "Offset of field: spk_array_info::head_stride",
    ][::std::mem::offset_of!(spk_array_info, head_stride) - 64usize];
};
unsafe extern "C" {
    pub fn spk_problem_get_array(
        context: *mut spk_context,
        pattern: *const spk_pattern,
        problem: *const ::std::os::raw::c_void,
        operand: ::std::os::raw::c_int,
        info: *mut spk_array_info,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_problem_fill(
        context: *mut spk_context,
        pattern: *const spk_pattern,
        problem: *const ::std::os::raw::c_void,
        operand: ::std::os::raw::c_int,
        seed: u64,
        out: *mut ::std::os::raw::c_void,
    ) -> spk_status;
}
pub const SPK_GEN_UNIFORM: spk_generator = spk_generator(1);
pub const SPK_GEN_BERNOULLI: spk_generator = spk_generator(2);
pub const SPK_GEN_BANDED: spk_generator = spk_generator(3);
pub const SPK_GEN_WINDOW: spk_generator = spk_generator(4);
pub const SPK_GEN_CAUSAL: spk_generator = spk_generator(5);
pub const SPK_GEN_DIAGONAL: spk_generator = spk_generator(6);
pub const SPK_GEN_POWER_LAW: spk_generator = spk_generator(7);
pub const SPK_GEN_EMPTY_ROWS: spk_generator = spk_generator(8);
pub const SPK_GEN_ELASTICITY: spk_generator = spk_generator(9);
pub const SPK_GEN_EXPERTS: spk_generator = spk_generator(10);
pub const SPK_GEN_MASK: spk_generator = spk_generator(11);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_generator(pub ::std::os::raw::c_uint);
pub const SPK_MASK_CAUSAL: spk_mask_shape = spk_mask_shape(1);
pub const SPK_MASK_WINDOW: spk_mask_shape = spk_mask_shape(2);
pub const SPK_MASK_SINKS: spk_mask_shape = spk_mask_shape(3);
pub const SPK_MASK_DOCUMENTS: spk_mask_shape = spk_mask_shape(4);
pub const SPK_MASK_STRIDED: spk_mask_shape = spk_mask_shape(5);
pub const SPK_MASK_RANDOM: spk_mask_shape = spk_mask_shape(6);
pub const SPK_MASK_SELECTED: spk_mask_shape = spk_mask_shape(7);
pub const SPK_MASK_VIDEO: spk_mask_shape = spk_mask_shape(8);
pub const SPK_MASK_NSA: spk_mask_shape = spk_mask_shape(9);
pub const SPK_MASK_PREFIX: spk_mask_shape = spk_mask_shape(10);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_mask_shape(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_generate {
    pub struct_size: usize,
    pub generator: spk_generator,
    pub rows: i64,
    pub cols: i64,
    pub block_rows: i64,
    pub block_cols: i64,
    pub density: f64,
    pub seed: u64,
    pub dtype: spk_dtype,
    pub cells_x: i64,
    pub cells_y: i64,
    pub cells_z: i64,
    pub young: f64,
    pub poisson: f64,
    pub experts: i64,
    pub tokens: *const i64,
    pub tokens_least: i64,
    pub tokens_most: i64,
    pub mask: spk_mask_shape,
    pub all_keys: ::std::os::raw::c_int,
    pub lists: i64,
    pub window: i64,
    pub sinks: i64,
    pub stride: i64,
    pub selected: i64,
    pub window_x: i64,
    pub window_y: i64,
    pub window_z: i64,
    pub window_right: i64,
    pub prefix: i64,
    pub lengths: *const i64,
    pub length_count: i64,
    pub top_left: ::std::os::raw::c_int,
    pub reserved: ::std::os::raw::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_generate"][::std::mem::size_of::<spk_generate>() - 256usize];
    ["Alignment of spk_generate"][::std::mem::align_of::<spk_generate>() - 8usize];
    [
        "Offset of field: spk_generate::struct_size",
    ][::std::mem::offset_of!(spk_generate, struct_size) - 0usize];
    [
        "Offset of field: spk_generate::generator",
    ][::std::mem::offset_of!(spk_generate, generator) - 8usize];
    [
        "Offset of field: spk_generate::rows",
    ][::std::mem::offset_of!(spk_generate, rows) - 16usize];
    [
        "Offset of field: spk_generate::cols",
    ][::std::mem::offset_of!(spk_generate, cols) - 24usize];
    [
        "Offset of field: spk_generate::block_rows",
    ][::std::mem::offset_of!(spk_generate, block_rows) - 32usize];
    [
        "Offset of field: spk_generate::block_cols",
    ][::std::mem::offset_of!(spk_generate, block_cols) - 40usize];
    [
        "Offset of field: spk_generate::density",
    ][::std::mem::offset_of!(spk_generate, density) - 48usize];
    [
        "Offset of field: spk_generate::seed",
    ][::std::mem::offset_of!(spk_generate, seed) - 56usize];
    [
        "Offset of field: spk_generate::dtype",
    ][::std::mem::offset_of!(spk_generate, dtype) - 64usize];
    [
        "Offset of field: spk_generate::cells_x",
    ][::std::mem::offset_of!(spk_generate, cells_x) - 72usize];
    [
        "Offset of field: spk_generate::cells_y",
    ][::std::mem::offset_of!(spk_generate, cells_y) - 80usize];
    [
        "Offset of field: spk_generate::cells_z",
    ][::std::mem::offset_of!(spk_generate, cells_z) - 88usize];
    [
        "Offset of field: spk_generate::young",
    ][::std::mem::offset_of!(spk_generate, young) - 96usize];
    [
        "Offset of field: spk_generate::poisson",
    ][::std::mem::offset_of!(spk_generate, poisson) - 104usize];
    [
        "Offset of field: spk_generate::experts",
    ][::std::mem::offset_of!(spk_generate, experts) - 112usize];
    [
        "Offset of field: spk_generate::tokens",
    ][::std::mem::offset_of!(spk_generate, tokens) - 120usize];
    [
        "Offset of field: spk_generate::tokens_least",
    ][::std::mem::offset_of!(spk_generate, tokens_least) - 128usize];
    [
        "Offset of field: spk_generate::tokens_most",
    ][::std::mem::offset_of!(spk_generate, tokens_most) - 136usize];
    [
        "Offset of field: spk_generate::mask",
    ][::std::mem::offset_of!(spk_generate, mask) - 144usize];
    [
        "Offset of field: spk_generate::all_keys",
    ][::std::mem::offset_of!(spk_generate, all_keys) - 148usize];
    [
        "Offset of field: spk_generate::lists",
    ][::std::mem::offset_of!(spk_generate, lists) - 152usize];
    [
        "Offset of field: spk_generate::window",
    ][::std::mem::offset_of!(spk_generate, window) - 160usize];
    [
        "Offset of field: spk_generate::sinks",
    ][::std::mem::offset_of!(spk_generate, sinks) - 168usize];
    [
        "Offset of field: spk_generate::stride",
    ][::std::mem::offset_of!(spk_generate, stride) - 176usize];
    [
        "Offset of field: spk_generate::selected",
    ][::std::mem::offset_of!(spk_generate, selected) - 184usize];
    [
        "Offset of field: spk_generate::window_x",
    ][::std::mem::offset_of!(spk_generate, window_x) - 192usize];
    [
        "Offset of field: spk_generate::window_y",
    ][::std::mem::offset_of!(spk_generate, window_y) - 200usize];
    [
        "Offset of field: spk_generate::window_z",
    ][::std::mem::offset_of!(spk_generate, window_z) - 208usize];
    [
        "Offset of field: spk_generate::window_right",
    ][::std::mem::offset_of!(spk_generate, window_right) - 216usize];
    [
        "Offset of field: spk_generate::prefix",
    ][::std::mem::offset_of!(spk_generate, prefix) - 224usize];
    [
        "Offset of field: spk_generate::lengths",
    ][::std::mem::offset_of!(spk_generate, lengths) - 232usize];
    [
        "Offset of field: spk_generate::length_count",
    ][::std::mem::offset_of!(spk_generate, length_count) - 240usize];
    [
        "Offset of field: spk_generate::top_left",
    ][::std::mem::offset_of!(spk_generate, top_left) - 248usize];
    [
        "Offset of field: spk_generate::reserved",
    ][::std::mem::offset_of!(spk_generate, reserved) - 252usize];
};
unsafe extern "C" {
    pub fn spk_matrix_generate(
        context: *mut spk_context,
        options: *const spk_generate,
        matrix: *mut *mut spk_matrix,
        shortfall: *mut i64,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_generator_name(generator: spk_generator) -> *const ::std::os::raw::c_char;
}
unsafe extern "C" {
    pub fn spk_generator_from_name(name: *const ::std::os::raw::c_char) -> spk_generator;
}
unsafe extern "C" {
    pub fn spk_mask_shape_name(shape: spk_mask_shape) -> *const ::std::os::raw::c_char;
}
unsafe extern "C" {
    pub fn spk_mask_shape_from_name(
        name: *const ::std::os::raw::c_char,
    ) -> spk_mask_shape;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_mask_shape_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub help: *const ::std::os::raw::c_char,
    pub is_random: ::std::os::raw::c_int,
    pub parameter_count: ::std::os::raw::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of spk_mask_shape_info",
    ][::std::mem::size_of::<spk_mask_shape_info>() - 32usize];
    [
        "Alignment of spk_mask_shape_info",
    ][::std::mem::align_of::<spk_mask_shape_info>() - 8usize];
    [
        "Offset of field: spk_mask_shape_info::struct_size",
    ][::std::mem::offset_of!(spk_mask_shape_info, struct_size) - 0usize];
    [
        "Offset of field: spk_mask_shape_info::name",
    ][::std::mem::offset_of!(spk_mask_shape_info, name) - 8usize];
    [
        "Offset of field: spk_mask_shape_info::help",
    ][::std::mem::offset_of!(spk_mask_shape_info, help) - 16usize];
    [
        "Offset of field: spk_mask_shape_info::is_random",
    ][::std::mem::offset_of!(spk_mask_shape_info, is_random) - 24usize];
    [
        "Offset of field: spk_mask_shape_info::parameter_count",
    ][::std::mem::offset_of!(spk_mask_shape_info, parameter_count) - 28usize];
};
pub const SPK_MASK_VALUE_COUNT: spk_mask_value = spk_mask_value(1);
pub const SPK_MASK_VALUE_SHARE: spk_mask_value = spk_mask_value(2);
pub const SPK_MASK_VALUE_FLAG: spk_mask_value = spk_mask_value(3);
pub const SPK_MASK_VALUE_CELLS: spk_mask_value = spk_mask_value(4);
pub const SPK_MASK_VALUE_RANGE: spk_mask_value = spk_mask_value(5);
pub const SPK_MASK_VALUE_LIST: spk_mask_value = spk_mask_value(6);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct spk_mask_value(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_mask_parameter_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub offset: usize,
    pub usual: *const ::std::os::raw::c_char,
    pub help: *const ::std::os::raw::c_char,
    pub least: i64,
    pub most: i64,
    pub value: spk_mask_value,
    pub reserved: ::std::os::raw::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of spk_mask_parameter_info",
    ][::std::mem::size_of::<spk_mask_parameter_info>() - 64usize];
    [
        "Alignment of spk_mask_parameter_info",
    ][::std::mem::align_of::<spk_mask_parameter_info>() - 8usize];
    [
        "Offset of field: spk_mask_parameter_info::struct_size",
    ][::std::mem::offset_of!(spk_mask_parameter_info, struct_size) - 0usize];
    [
        "Offset of field: spk_mask_parameter_info::name",
    ][::std::mem::offset_of!(spk_mask_parameter_info, name) - 8usize];
    [
        "Offset of field: spk_mask_parameter_info::offset",
    ][::std::mem::offset_of!(spk_mask_parameter_info, offset) - 16usize];
    [
        "Offset of field: spk_mask_parameter_info::usual",
    ][::std::mem::offset_of!(spk_mask_parameter_info, usual) - 24usize];
    [
        "Offset of field: spk_mask_parameter_info::help",
    ][::std::mem::offset_of!(spk_mask_parameter_info, help) - 32usize];
    [
        "Offset of field: spk_mask_parameter_info::least",
    ][::std::mem::offset_of!(spk_mask_parameter_info, least) - 40usize];
    [
        "Offset of field: spk_mask_parameter_info::most",
    ][::std::mem::offset_of!(spk_mask_parameter_info, most) - 48usize];
    [
        "Offset of field: spk_mask_parameter_info::value",
    ][::std::mem::offset_of!(spk_mask_parameter_info, value) - 56usize];
    [
        "Offset of field: spk_mask_parameter_info::reserved",
    ][::std::mem::offset_of!(spk_mask_parameter_info, reserved) - 60usize];
};
unsafe extern "C" {
    pub fn spk_mask_shape_get_info(
        shape: spk_mask_shape,
        info: *mut spk_mask_shape_info,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_mask_shape_get_parameter(
        shape: spk_mask_shape,
        index: ::std::os::raw::c_int,
        info: *mut spk_mask_parameter_info,
    ) -> spk_status;
}
#[repr(C)]
#[derive(Debug)]
pub struct spk_mask {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct spk_mask_desc {
    pub struct_size: usize,
    pub grid_rows: i64,
    pub blocks: i64,
    pub tiles: i64,
    pub tile_words: i64,
    pub row_offsets: *const i64,
    pub col_indices: *const i64,
    pub tile_numbers: *const ::std::os::raw::c_void,
    pub tile_bits: *const ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of spk_mask_desc"][::std::mem::size_of::<spk_mask_desc>() - 72usize];
    ["Alignment of spk_mask_desc"][::std::mem::align_of::<spk_mask_desc>() - 8usize];
    [
        "Offset of field: spk_mask_desc::struct_size",
    ][::std::mem::offset_of!(spk_mask_desc, struct_size) - 0usize];
    [
        "Offset of field: spk_mask_desc::grid_rows",
    ][::std::mem::offset_of!(spk_mask_desc, grid_rows) - 8usize];
    [
        "Offset of field: spk_mask_desc::blocks",
    ][::std::mem::offset_of!(spk_mask_desc, blocks) - 16usize];
    [
        "Offset of field: spk_mask_desc::tiles",
    ][::std::mem::offset_of!(spk_mask_desc, tiles) - 24usize];
    [
        "Offset of field: spk_mask_desc::tile_words",
    ][::std::mem::offset_of!(spk_mask_desc, tile_words) - 32usize];
    [
        "Offset of field: spk_mask_desc::row_offsets",
    ][::std::mem::offset_of!(spk_mask_desc, row_offsets) - 40usize];
    [
        "Offset of field: spk_mask_desc::col_indices",
    ][::std::mem::offset_of!(spk_mask_desc, col_indices) - 48usize];
    [
        "Offset of field: spk_mask_desc::tile_numbers",
    ][::std::mem::offset_of!(spk_mask_desc, tile_numbers) - 56usize];
    [
        "Offset of field: spk_mask_desc::tile_bits",
    ][::std::mem::offset_of!(spk_mask_desc, tile_bits) - 64usize];
};
unsafe extern "C" {
    pub fn spk_mask_create(
        context: *mut spk_context,
        options: *const spk_generate,
        mask: *mut *mut spk_mask,
    ) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_mask_destroy(mask: *mut *mut spk_mask);
}
unsafe extern "C" {
    pub fn spk_mask_view(mask: *const spk_mask, desc: *mut spk_mask_desc) -> spk_status;
}
unsafe extern "C" {
    pub fn spk_fill_random(
        context: *mut spk_context,
        dtype: spk_dtype,
        count: i64,
        seed: u64,
        out: *mut ::std::os::raw::c_void,
    ) -> spk_status;
}
