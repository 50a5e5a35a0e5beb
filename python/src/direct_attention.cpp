/* Attention of plain tensors, called straight from Python. */
#include <array>
#include <cmath>

#include "direct.h"
#include "handover.h"
#include "ops.h"

namespace sparse_autotune {

namespace {

typedef DirectAttention At;
enum { OPERANDS = At::V + 1 }; /* tensors stand first */

/* Whether an attribute of a tensor is true. 1: yes; 0: no; -1: an exception is set. */
int has(PyObject *tensor, PyObject *attribute)
{
    const Owned found(PyObject_GetAttr(tensor, attribute));
    return found.get() == nullptr ? -1 : found.get() == Py_True;
}

int is_on_cpu(PyObject *tensor)
{
    static PyObject *is_cpu = PyUnicode_InternFromString("is_cpu");
    return has(tensor, is_cpu);
}

/* A nested tensor says that it is strided, and has no sizes: PyTorch prints where they are asked for. 1: none is; 0: one is; -1: an
 * exception is set. */
int are_not_nested(PyObject *const *args)
{
    static PyObject *is_nested = PyUnicode_InternFromString("is_nested");
    for (int i = 0; i < OPERANDS; i++) {
        const int nested = has(args[i], is_nested);
        if (nested != 0)
            return nested < 0 ? -1 : 0;
    }
    return 1;
}

/* Whether autograd would keep something. 1: no; 0: yes; -1: an exception is set. */
int wants_no_gradient(PyObject *const *args)
{
    static PyObject *requires_grad = PyUnicode_InternFromString("requires_grad");
    if (!aoti_torch_grad_mode_is_enabled())
        return 1;
    for (int i = 0; i < OPERANDS; i++) {
        const int wanted = has(args[i], requires_grad);
        if (wanted != 0)
            return wanted < 0 ? -1 : 0;
    }
    return 1;
}

/* None, or a number that the library takes; false: something else. */
bool read_scale(PyObject *object, std::optional<double> *scale)
{
    if (object == Py_None)
        return true;
    if (!PyFloat_Check(object))
        return false;
    *scale = PyFloat_AsDouble(object);
    return std::fabs(**scale) <= 1e38;
}

int32_t device_type(const Tensor &t)
{
    int32_t type = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(t.get(), &type));
    return type;
}

bool is_strided(const Tensor &t)
{
    int32_t layout = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_layout(t.get(), &layout));
    return layout == aoti_torch_layout_strided();
}

/* Whether [batch, heads, rows, depth] is a view of [batch, rows, heads, depth], as that of a projection is. */
bool lies_rows_first(const Tensor &t)
{
    return t.size(1) > 1 && t.size(2) > 1 && t.stride(1) < t.stride(2);
}

/* Whether the operands are on the CPU and fit, none of them empty. What does not is for the operator, or PyTorch, which say what is wrong.
 */
bool fit(const Tensor &q, const Tensor &k, const Tensor &v, bool rows_first, bool shared)
{
    const int64_t head = rows_first ? 2 : 1, row = rows_first ? 1 : 2;
    for (const Tensor *t : {&q, &k, &v})
        if (device_type(*t) != aoti_torch_device_type_cpu() || !is_strided(*t) || t->dim() != 4 || !has_memory_here(*t))
            return false;
    const int32_t dtype = dtype_of(q);
    if (!has_values(dtype) || dtype_of(k) != dtype || dtype_of(v) != dtype)
        return false;
    const auto of_q = q.sizes(), of_k = k.sizes(), of_v = v.sizes();
    if (q.numel() == 0 || k.numel() == 0 || v.numel() == 0)
        return false;
    const bool heads = shared ? of_q[head] % of_k[head] == 0 : of_q[head] == of_k[head];
    return heads && of_q[0] == of_k[0] && of_q[3] == of_k[3] && of_k[0] == of_v[0] && of_k[head] == of_v[head] && of_k[row] == of_v[row];
}

/* 1: taken; 0: not for here; -1: an exception is set. */
int take(PyObject *const *args, Py_ssize_t count, std::array<std::optional<Tensor>, OPERANDS> *tensors, AttendOptions *o)
{
    if (!is_set_up() || count != At::ARGUMENTS || !read_scale(args[At::SCALE], &o->scale) || !PyFloat_Check(args[At::SOFTCAP]))
        return 0;
    for (int i = 0; i < OPERANDS; i++)
        if (!is_plain(args[i]))
            return 0;
    int found = is_on_cpu(args[At::Q]); /* what is commonly not for here comes first, and costs little */
    if (found == 1)
        found = wants_no_gradient(args);
    if (found == 1)
        found = unwatched();
    if (found == 1)
        found = are_not_nested(args);
    for (int i = 0; i < OPERANDS && found == 1; i++)
        found = is_not_negated(args[i]);
    if (found != 1)
        return found;
    o->softcap = PyFloat_AsDouble(args[At::SOFTCAP]);
    int64_t *const numbers[] = {&o->window_left, &o->window_right, &o->sinks};
    for (int i = 0; i < 3; i++)
        *numbers[i] = PyLong_AsLongLong(args[At::LEFT + i]);
    o->flags = PyLong_AsLongLong(args[At::FLAGS]);
    if (PyErr_Occurred())
        return -1;
    for (int i = 0; i < OPERANDS; i++) {
        (*tensors)[i] = from_python(args[i]);
        if (!(*tensors)[i])
            return -1;
    }
    const auto &[q, k, v] = *tensors;
    if (!fit(*q, *k, *v, o->flags & FLAG_ROWS_FIRST, args[At::MAY_SHARE_HEADS] == Py_True))
        return 0;
    o->rows_first_out = (o->flags & FLAG_AS_QUERY) && lies_rows_first(*q);
    o->flags &= ~FLAG_AS_QUERY;
    return 1;
}

} // namespace

PyObject *direct_attention(PyObject *, PyObject *const *args, Py_ssize_t count)
{
    return guarded([&]() -> PyObject * {
        std::array<std::optional<Tensor>, OPERANDS> tensors;
        AttendOptions options = {};
        options.block_rows = options.block_cols = options.mask_heads = options.mask_items = 1;
        const int taken = take(args, count, &tensors, &options);
        if (taken != 1)
            return taken < 0 ? nullptr : Py_NewRef(Py_NotImplemented);
        std::optional<Tensor> out;
        {
            Unlocked free;
            out = attended(attend_of(*tensors[At::Q], *tensors[At::K], *tensors[At::V], options));
        }
        return to_python(options.rows_first_out ? torch::stable::transpose(*out, 1, 2) : *out);
    });
}

} // namespace sparse_autotune
