"""sparsek through ctypes: structures of include/sparsek/sparsek.h, generators, plans. Needs Python alone; pointers are plain numbers."""
import ctypes as C
import os

ROW, COL = 0, 1
SPMM, SDDMM = 1, 2
I64, HOST = 1, 0
DTYPES = {"f32": 1, "f64": 2, "f16": 3, "bf16": 4}


class ContextOptions(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("device", C.c_char_p), ("store_path", C.c_char_p), ("threads", C.c_int), ("parallel_for", C.c_void_p),
                ("parallel_user", C.c_void_p), ("allocate", C.c_void_p), ("release", C.c_void_p), ("allocate_user", C.c_void_p), ("log", C.c_void_p),
                ("log_user", C.c_void_p), ("progress", C.c_void_p), ("progress_user", C.c_void_p)]


class Indices(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("rows", C.c_int64), ("cols", C.c_int64), ("block_rows", C.c_int64), ("block_cols", C.c_int64),
                ("nnzb", C.c_int64), ("row_offsets", C.c_void_p), ("col_indices", C.c_void_p), ("index_type", C.c_int), ("index_memory", C.c_int)]


class Spmm(C.Structure):
    operation_id = SPMM
    _fields_ = [("struct_size", C.c_size_t), ("operation", C.c_int), ("trans_a", C.c_int), ("n", C.c_int64), ("dtype_a", C.c_int), ("dtype_b", C.c_int),
                ("dtype_d", C.c_int), ("compute", C.c_int), ("block_layout", C.c_int), ("layout_b", C.c_int), ("layout_d", C.c_int), ("use_c", C.c_int),
                ("ldb", C.c_int64), ("ldc", C.c_int64), ("ldd", C.c_int64), ("ldr", C.c_int64), ("ldp", C.c_int64), ("bias", C.c_int),
                ("activation", C.c_int), ("residual", C.c_int), ("keep_preact", C.c_int), ("batch", C.c_int64)]


class Sddmm(C.Structure):
    operation_id = SDDMM
    _fields_ = [("struct_size", C.c_size_t), ("operation", C.c_int), ("reserved", C.c_int), ("k", C.c_int64), ("dtype_x", C.c_int), ("dtype_y", C.c_int),
                ("dtype_d", C.c_int), ("compute", C.c_int), ("block_layout", C.c_int), ("layout_x", C.c_int), ("layout_y", C.c_int), ("use_c", C.c_int),
                ("ldx", C.c_int64), ("ldy", C.c_int64)]


class SddmmArgs(C.Structure):
    operation_id = SDDMM
    _fields_ = [("struct_size", C.c_size_t), ("operation", C.c_int), ("reserved", C.c_int), ("x", C.c_void_p), ("y", C.c_void_p), ("c", C.c_void_p),
                ("d", C.c_void_p), ("alpha", C.c_double), ("beta", C.c_double), ("workspace", C.c_void_p), ("workspace_bytes", C.c_size_t)]


class Args(C.Structure):
    operation_id = SPMM
    _fields_ = [("struct_size", C.c_size_t), ("operation", C.c_int), ("reserved", C.c_int), ("values", C.c_void_p), ("b", C.c_void_p), ("c", C.c_void_p),
                ("d", C.c_void_p), ("bias", C.c_void_p), ("residual", C.c_void_p), ("preact", C.c_void_p), ("alpha", C.c_double), ("beta", C.c_double),
                ("workspace", C.c_void_p), ("workspace_bytes", C.c_size_t)]


class TuneOptions(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("effort", C.c_int), ("unknown", C.c_int), ("cache", C.c_int), ("budget_s", C.c_double),
                ("tolerance", C.c_double), ("assume_finite", C.c_int), ("static_values", C.c_int), ("fresh", C.c_int), ("only", C.c_char_p),
                ("exclude", C.c_char_p), ("choice", C.c_char_p), ("seed", C.c_uint64)]


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
    if hasattr(kind, "operation_id"):
        made.operation = kind.operation_id
    return made


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

    def plan_spmm(self, case, pattern, choice=None, fresh=False):
        problem = sized(Spmm, n=case.n, dtype_a=DTYPES[case.dtype], trans_a=int(case.trans), layout_b=case.layout_b, layout_d=case.layout_d)
        return self.planned(case, pattern, problem, choice, fresh)

    def plan_sddmm(self, case, pattern, choice=None, fresh=False):
        problem = sized(Sddmm, k=case.k, dtype_x=DTYPES[case.dtype], layout_x=case.layout_a, layout_y=case.layout_b)
        return self.planned(case, pattern, problem, choice, fresh)

    def planned(self, case, pattern, problem, choice, fresh):
        made = C.c_void_p()
        options = sized(TuneOptions, cache=int(case.cache == "warm"), assume_finite=int(case.assume_finite), choice=choice.encode() if choice else None,
                        fresh=int(fresh))
        self.check(self.lib.spk_plan_create(self.context, pattern, C.byref(problem), C.byref(options), C.byref(made)))
        return made

    def choice(self, plan):
        return self.lib.spk_plan_choice(plan).decode()

    def workspace_bytes(self, plan):
        return int(self.lib.spk_plan_workspace_bytes(plan))

    def spmm_args(self, values, b, d, workspace=None, workspace_bytes=0):
        return sized(Args, values=values, b=b, d=d, alpha=1.0, workspace=workspace, workspace_bytes=workspace_bytes)

    def run_spmm(self, plan, args, stream=None):
        self.check(self.lib.spk_run(plan, C.byref(args), C.c_void_p(stream)))

    def sddmm_args(self, x, y, d, workspace=None, workspace_bytes=0):
        return sized(SddmmArgs, x=x, y=y, d=d, alpha=1.0, workspace=workspace, workspace_bytes=workspace_bytes)

    def run_sddmm(self, plan, args, stream=None):
        self.check(self.lib.spk_run(plan, C.byref(args), C.c_void_p(stream)))

    def destroy_plan(self, plan):
        self.lib.spk_plan_destroy(C.byref(plan))

    def destroy_pattern(self, pattern):
        self.lib.spk_pattern_destroy(C.byref(pattern))
