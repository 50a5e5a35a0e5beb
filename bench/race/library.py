"""sparsek through ctypes: structures of include/sparsek, generators, plans; the structs of operations by the library's own tables. Needs Python
alone; pointers are plain numbers."""
import ctypes as C
import functools
import os

ROW, COL = 0, 1
I64, HOST = 64, 0  # spk_index_type, whose 32 bits are 0; spk_memory
EXHAUSTIVE = 2
ACTIVATIONS = ("none", "relu", "gelu_erf", "gelu_tanh", "silu")
DTYPES = {"f32": 1, "f64": 2, "f16": 3, "bf16": 4, "tf32": 7}


class ContextOptions(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("device", C.c_char_p), ("store_path", C.c_char_p), ("threads", C.c_int), ("parallel_for", C.c_void_p),
                ("parallel_user", C.c_void_p), ("allocate", C.c_void_p), ("release", C.c_void_p), ("allocate_user", C.c_void_p), ("log", C.c_void_p),
                ("log_user", C.c_void_p), ("progress", C.c_void_p), ("progress_user", C.c_void_p)]


class Indices(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("rows", C.c_int64), ("cols", C.c_int64), ("block_rows", C.c_int64), ("block_cols", C.c_int64),
                ("nnzb", C.c_int64), ("row_offsets", C.c_void_p), ("col_indices", C.c_void_p), ("index_type", C.c_int), ("index_memory", C.c_int)]


class DeferredIndices(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("stream", C.c_void_p), ("longest_row", C.c_int64), ("row_spread", C.c_double), ("row_overlap", C.c_double)]


class DeviceIndices(C.Structure):
    """All of spk_bsr_indices: those of a mask on the device."""
    _fields_ = [*Indices._fields_, ("deferred", C.POINTER(DeferredIndices))]


class KernelInfo(C.Structure):
    OWN = 1  # spk_kind
    _fields_ = [("struct_size", C.c_size_t), ("name", C.c_char_p), ("operation", C.c_int), ("kind", C.c_int), ("device", C.c_char_p), ("isa", C.c_char_p),
                ("tunables", C.c_char_p)]


class OperationInfo(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("operation", C.c_int), ("takes_pattern", C.c_int), ("name", C.c_char_p), ("formula", C.c_char_p),
                ("problem_type", C.c_char_p), ("args_type", C.c_char_p), ("problem_bytes", C.c_size_t), ("args_bytes", C.c_size_t),
                ("workspace_offset", C.c_size_t), ("workspace_bytes_offset", C.c_size_t), ("stream_offset", C.c_size_t), ("field_count", C.c_int),
                ("size_count", C.c_int), ("operand_count", C.c_int), ("scalar_count", C.c_int)]


class FieldInfo(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("name", C.c_char_p), ("kind", C.c_int), ("operand", C.c_int), ("offset", C.c_size_t)]
    WIDE = (1, 2, 9, 10, 12, 13, 14, 15)  # sizes, items, leading dimensions, strides, groups, heads and their strides, counts


class OperandInfo(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("name", C.c_char_p), ("title", C.c_char_p), ("extents", C.c_char_p), ("offset", C.c_size_t)]


class ScalarInfo(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("name", C.c_char_p), ("offset", C.c_size_t)]


NOW_EACH = 2  # spk_tuning: a size is tuned though another of the same layer is known


class TuneOptions(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("effort", C.c_int), ("tuning", C.c_int), ("cache", C.c_int), ("budget_s", C.c_double),
                ("tolerance", C.c_double), ("fresh", C.c_int), ("reserved", C.c_int), ("only", C.c_char_p), ("exclude", C.c_char_p), ("choice", C.c_char_p),
                ("seed", C.c_uint64)]


class Generate(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("generator", C.c_int), ("rows", C.c_int64), ("cols", C.c_int64), ("block_rows", C.c_int64),
                ("block_cols", C.c_int64), ("density", C.c_double), ("seed", C.c_uint64), ("dtype", C.c_int), ("cells_x", C.c_int64), ("cells_y", C.c_int64),
                ("cells_z", C.c_int64), ("young", C.c_double), ("poisson", C.c_double)]


class MatrixDesc(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("format", C.c_int), ("dtype", C.c_int), ("rows", C.c_int64), ("cols", C.c_int64), ("block_rows", C.c_int64),
                ("block_cols", C.c_int64), ("layout", C.c_int), ("ld", C.c_int64), ("nnz", C.c_int64), ("index_type", C.c_int), ("row_offsets", C.c_void_p),
                ("row_indices", C.c_void_p), ("col_indices", C.c_void_p), ("values", C.c_void_p), ("pattern_only", C.c_int),
                ("reserved", C.c_int)]


def sized(kind, **fields):
    made = kind(**fields)
    made.struct_size = C.sizeof(kind)
    return made


class Operation:
    """One row of the library's table: makes its structs, which are bytes to us, by the names of their members."""

    def __init__(self, library, info):
        self.info = info
        self.fields = self.members(library.lib.spk_operation_get_field, FieldInfo, info.field_count)
        self.operands = self.members(library.lib.spk_operation_get_operand, OperandInfo, info.operand_count)
        self.scalars = self.members(library.lib.spk_operation_get_scalar, ScalarInfo, info.scalar_count)

    def members(self, get, kind, count):
        rows = [sized(kind) for _ in range(count)]
        for i, row in enumerate(rows):
            if get(self.info.operation, i, C.byref(row)):
                raise RuntimeError(f"{self.info.name.decode()}: row {i} of {kind.__name__}")
        return {row.name.decode(): row for row in rows}

    def made(self, size):
        memory = (C.c_uint64 * (size // 8))()
        self.put(memory, 0, C.c_size_t, size)
        self.put(memory, C.sizeof(C.c_size_t), C.c_int, self.info.operation)
        return memory

    @staticmethod
    def put(memory, offset, kind, value):
        kind.from_buffer(memory, offset).value = value

    def problem(self, **fields):
        memory = self.made(self.info.problem_bytes)
        for name, value in fields.items():
            field = self.fields[name]
            self.put(memory, field.offset, C.c_int64 if field.kind in FieldInfo.WIDE else C.c_int, value)
        return memory

    def args(self, workspace=None, workspace_bytes=0, **given):
        """Pointers of operands, and scalars: alpha, where there is one, is 1."""
        memory = self.made(self.info.args_bytes)
        for name, value in {**({"alpha": 1.0} if "alpha" in self.scalars else {}), **given}.items():
            if name in self.scalars:
                self.put(memory, self.scalars[name].offset, C.c_double, value)
            else:
                self.put(memory, self.operands[name].offset, C.c_void_p, value)
        self.put(memory, self.info.workspace_offset, C.c_void_p, workspace)
        self.put(memory, self.info.workspace_bytes_offset, C.c_size_t, workspace_bytes)
        return memory


class Library:
    def __init__(self, path, device, store):
        self.lib = C.CDLL(os.path.abspath(path))
        for name, kind in (("spk_last_error", C.c_char_p), ("spk_plan_choice", C.c_char_p), ("spk_version", C.c_char_p), ("spk_commit", C.c_char_p),
                           ("spk_plan_workspace_bytes", C.c_size_t)):
            getattr(self.lib, name).restype = kind
        self.context = C.c_void_p()
        self.check(self.lib.spk_context_create(C.byref(sized(ContextOptions, device=device.encode(), store_path=store.encode())), C.byref(self.context)), None)
        self.version, self.commit = self.lib.spk_version().decode(), self.lib.spk_commit().decode()

    def check(self, status, context=0):
        if status:
            raise RuntimeError(self.lib.spk_last_error(self.context if context == 0 else None).decode() or f"status {status}")

    def generate(self, case, seed):
        """Where a generator of docs/generators.md puts the case's blocks: (row offsets, block columns), two lists."""
        matrix, view = C.c_void_p(), sized(MatrixDesc)
        generator = self.lib.spk_generator_from_name(case.pattern.encode())
        if not generator:
            raise RuntimeError(f"no generator is called {case.pattern}")
        rows, cols = case.sparse_shape()
        self.check(self.lib.spk_matrix_generate(self.context, C.byref(sized(Generate, generator=generator, rows=rows, cols=cols, block_rows=case.block[0],
                                                                            block_cols=case.block[1], density=case.density, seed=seed)), C.byref(matrix), None))
        try:
            self.check(self.lib.spk_matrix_view(matrix, C.byref(view)))
            offsets = list((C.c_int64 * (-(-rows // case.block[0]) + 1)).from_address(view.row_offsets))
            return offsets, list((C.c_int64 * view.nnz).from_address(view.col_indices)) if view.nnz else []
        finally:
            self.lib.spk_matrix_destroy(C.byref(matrix))

    def pattern(self, case, offsets, columns):
        made = C.c_void_p()
        offsets_array, columns_array = (C.c_int64 * len(offsets))(*offsets), (C.c_int64 * len(columns))(*columns)
        rows, cols = case.sparse_shape()
        indices = sized(Indices, rows=rows, cols=cols, block_rows=case.block[0], block_cols=case.block[1], nnzb=len(columns),
                        row_offsets=C.addressof(offsets_array), col_indices=C.addressof(columns_array), index_type=I64, index_memory=HOST)
        self.check(self.lib.spk_pattern_create(self.context, C.byref(indices), C.byref(made)))
        return made

    @functools.cached_property
    def operations(self):
        """By name."""
        rows = [sized(OperationInfo) for _ in range(self.lib.spk_operation_count())]
        for i, row in enumerate(rows):
            self.check(self.lib.spk_operation_get_info(i, C.byref(row)), None)
        return {row.name.decode(): Operation(self, row) for row in rows}

    def own_rows(self, op, device="cpu"):
        """Names of the library's own kernels of an operation."""
        rows = [sized(KernelInfo) for _ in range(self.lib.spk_kernel_count())]
        for i, row in enumerate(rows):
            self.check(self.lib.spk_kernel_get_info(i, C.byref(row)), None)
        return [row.name.decode() for row in rows
                if row.kind == KernelInfo.OWN and row.device.decode() == device and row.operation == self.operations[op].info.operation]

    def plan(self, op, case, pattern, fields, choice=None, fresh=False, only=None, exclude=None, effort=0):
        made, problem = C.c_void_p(), self.operations[op].problem(**fields, assume_finite=int(case.assume_finite))
        options = sized(TuneOptions, cache=int(case.cache == "warm"), choice=choice.encode() if choice else None, fresh=int(fresh), only=only.encode() if only else None,
                        exclude=exclude.encode() if exclude and not choice else None, effort=effort, tuning=NOW_EACH)
        self.check(self.lib.spk_plan_create(self.context, pattern, problem, C.byref(options), C.byref(made)))
        return made

    def choice(self, plan):
        return self.lib.spk_plan_choice(plan).decode()

    def workspace_bytes(self, plan):
        return int(self.lib.spk_plan_workspace_bytes(plan))

    def args(self, op, workspace=None, workspace_bytes=0, **arrays):
        return self.operations[op].args(workspace, workspace_bytes, **arrays)

    def run(self, plan, args, stream=None):
        self.check(self.lib.spk_plan_run(plan, args, C.c_void_p(stream)))

    def destroy_plan(self, plan):
        self.lib.spk_plan_destroy(C.byref(plan))

    def destroy_pattern(self, pattern):
        self.lib.spk_pattern_destroy(C.byref(pattern))
