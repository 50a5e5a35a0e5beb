#include "types.h"

#include "tensors.h"

namespace sparse_autotune {

namespace {

/* Of what PyTorch has no type for. */
int32_t aoti_torch_dtype_none()
{
    return -1;
}

#define RESULTS(...) \
    {                \
        __VA_ARGS__  \
    }
#define PEERS(npy, safetensors, torch, words) npy, #torch, aoti_torch_dtype_##torch()
#define SPK_TYPE(enumerator, name, use, stored, format, sums, results, names, numbers) \
    {enumerator, #name, use, &#use[sizeof "SPK_USE_" - 1], sums, RESULTS results, PEERS names},

std::vector<Type> make_types()
{
    return {
#include "type/types.def"
    };
}

#undef SPK_TYPE

/* nullptr: the library has none that is called so. */
const Type *find(int32_t number)
{
    for (const Type &type : types())
        if (type.number == number)
            return &type;
    return nullptr;
}

const Type &type_of(spk_dtype dtype)
{
    for (const Type &type : types())
        if (type.dtype == dtype)
            return type;
    refuse("dtype: " + std::to_string(dtype) + " is none of the library's");
}

const Type &first_factor()
{
    for (const Type &type : types())
        if (type.use == SPK_USE_FACTORS)
            return type;
    refuse("dtype: the library has no factors");
}

/* "a, b and c" */
std::string listed(const std::vector<std::string> &words, const char *last)
{
    std::string text;
    for (size_t i = 0; i < words.size(); i++)
        text += (i == 0 ? std::string() : i == words.size() - 1 ? std::string(" ") + last + " " : std::string(", ")) + words[i];
    return text;
}

} // namespace

const std::vector<Type> &types()
{
    static const std::vector<Type> all = make_types();
    return all;
}

std::string dtype_name(int32_t number)
{
    static const std::pair<int32_t, const char *> others[] = {{aoti_torch_dtype_uint8(), "uint8"},
                                                              {aoti_torch_dtype_int16(), "int16"},
                                                              {aoti_torch_dtype_uint16(), "uint16"},
                                                              {aoti_torch_dtype_uint32(), "uint32"},
                                                              {aoti_torch_dtype_int64(), "int64"},
                                                              {aoti_torch_dtype_uint64(), "uint64"},
                                                              {aoti_torch_dtype_bool(), "bool"},
                                                              {aoti_torch_dtype_complex32(), "complex32"},
                                                              {aoti_torch_dtype_complex64(), "complex64"},
                                                              {aoti_torch_dtype_complex128(), "complex128"},
                                                              {aoti_torch_dtype_float8_e5m2fnuz(), "float8_e5m2fnuz"},
                                                              {aoti_torch_dtype_float8_e4m3fnuz(), "float8_e4m3fnuz"}};
    const Type *type = number >= 0 ? find(number) : nullptr;
    if (type != nullptr)
        return type->torch;
    for (const auto &[its, name] : others)
        if (its == number)
            return name;
    static const char *const quantized[] = {"qint8", "quint8", "qint32"}; /* no function tells their numbers, 12 to 14 in every release */
    if (number >= 12 && number <= 14)
        return quantized[number - 12];
    return "number " + std::to_string(number) + " of PyTorch";
}

std::string type_names(spk_type_use use)
{
    std::vector<std::string> names;
    for (const Type &type : types())
        if (type.use == use)
            names.push_back(type.torch);
    return listed(names, "or");
}

bool has_values(int32_t number)
{
    const Type *type = find(number);
    return type != nullptr && type->use == SPK_USE_VALUES;
}

std::string result_names(const Type &type, const char *between)
{
    std::string text;
    for (int i = 0; i < SPK_MOST_RESULTS && type.results[i] != SPK_DTYPE_DEFAULT; i++)
        text += (i == 0 ? "" : between) + std::string(type_of(type.results[i]).torch);
    return text;
}

spk_dtype library_dtype(const char *name, int32_t number)
{
    const Type *type = find(number);
    if (type != nullptr && type->use == SPK_USE_VALUES)
        return type->dtype;
    refuse(std::string(name) + ": its dtype must be " + type_names(SPK_USE_VALUES) + ", not " + dtype_name(number) +
           (type != nullptr && type->use == SPK_USE_FACTORS ? " (scaled_matmul multiplies that)" : ""));
}

spk_dtype factor_dtype(const char *name, int32_t number)
{
    const Type *type = find(number);
    if (type != nullptr && type->use == SPK_USE_FACTORS)
        return type->dtype;
    refuse(std::string(name) + ": its dtype must be " + type_names(SPK_USE_FACTORS) + ", not " + dtype_name(number));
}

int32_t wide_dtype(int32_t number, bool wide)
{
    const Type *type = wide ? find(number) : nullptr;
    return type != nullptr && type->use == SPK_USE_VALUES ? type_of(type->sums).number : number;
}

int32_t result_dtype(int64_t place)
{
    const spk_dtype *results = first_factor().results;
    std::vector<std::string> words;
    for (int i = 0; i < SPK_MOST_RESULTS && results[i] != SPK_DTYPE_DEFAULT; i++) {
        const Type &type = type_of(results[i]);
        if (place == i)
            return type.number;
        words.push_back(std::to_string(i) + " (" + type.torch + ")");
    }
    refuse("result: " + std::to_string(place) + " is none of " + listed(words, "and"));
}

spk_dtype compute_dtype(int64_t flags, spk_dtype dtype)
{
    if (flags & FLAG_TF32)
        for (const Type &type : types())
            if (type.use == SPK_USE_PRODUCTS && type.sums == dtype)
                return type.dtype;
    return SPK_DTYPE_DEFAULT;
}

} // namespace sparse_autotune
