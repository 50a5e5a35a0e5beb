#include "report.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "type/tile.h"

namespace sparse_autotune {

namespace {

/* The little of JSON that is wanted here. */
class Json {
    std::string text_;
    void comma()
    {
        if (!text_.empty() && text_.back() != '{' && text_.back() != '[' && text_.back() != ':')
            text_ += ',';
    }

  public:
    Json &open(char bracket) { return comma(), text_ += bracket, *this; }
    Json &close(char bracket) { return text_ += bracket, *this; }
    Json &key(const char *name) { return string(name), text_ += ':', *this; }
    Json &number(double value)
    {
        char digits[40]; /* as %.17g, of which to_chars makes the same in every locale */
        comma();
        if (!std::isfinite(value))
            return text_ += "null", *this;
        return text_.append(digits, std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 17).ptr), *this;
    }
    Json &boolean(bool value) { return comma(), text_ += value ? "true" : "false", *this; }
    Json &string(const char *value)
    {
        comma();
        if (value == nullptr)
            return text_ += "null", *this;
        text_ += '"';
        for (const char *c = value; *c != '\0'; c++) {
            const unsigned char byte = static_cast<unsigned char>(*c);
            if (*c == '"' || *c == '\\')
                text_ += '\\', text_ += *c;
            else if (byte < 0x20)
                text_ += "\\u00", text_ += static_cast<char>('0' + byte / 16), text_ += "0123456789abcdef"[byte % 16];
            else
                text_ += *c;
        }
        return text_ += '"', *this;
    }
    const std::string &text() const { return text_; }
};

const char *kind_name(spk_kind kind)
{
    static const char *const names[] = {"", "own", "vendor", "dense", "reference", "peer"};
    return kind >= SPK_KIND_OWN && kind <= SPK_KIND_PEER ? names[kind] : "";
}

const char *status_name(spk_candidate_status status)
{
    static const char *const names[] = {"ok", "wrong", "failed", "timed out", "not measured", "not eligible", "not applicable"};
    return status >= SPK_CANDIDATE_OK && status <= SPK_CANDIDATE_NOT_APPLICABLE ? names[status] : "";
}

/* NULL: finished. */
const char *provisional_name(spk_provisional provisional)
{
    static const char *const names[] = {nullptr, "interrupted", "budget", "load", "in_place"};
    return static_cast<size_t>(provisional) < sizeof names / sizeof *names ? names[provisional] : "unknown";
}

void put_candidate(Json &json, const spk_candidate_info &c)
{
    json.open('{').key("name").string(c.name).key("params").string(c.params).key("hash").string(c.hash).key("kind").string(
        kind_name(c.kind));
    json.key("status").string(status_name(c.status)).key("why").string(c.why);
    json.key("median_us").number(c.median_us > 0 ? c.median_us : NAN).key("spread_us").number(c.median_us > 0 ? c.spread_us : NAN);
    json.key("least_us").number(c.least_us > 0 ? c.least_us : NAN);
    json.key("prepare_us")
        .number(c.median_us > 0 ? c.prepare_us : NAN)
        .key("predicted_us")
        .number(c.predicted_us > 0 ? c.predicted_us : NAN);
    json.key("error").number(c.error >= 0 ? c.error : NAN).key("tolerance").number(c.tolerance > 0 ? c.tolerance : NAN);
    json.key("samples_us").open('[');
    for (int64_t i = 0; i < c.sample_count; i++)
        json.number(c.samples_us[i]);
    json.close(']').close('}');
}

/* Word `index` of "a|b|c". */
std::string word_of(const char *list, int index)
{
    std::string all = list;
    size_t begin = 0;
    for (; index > 0 && begin != std::string::npos; index--)
        begin = all.find('|', begin) == std::string::npos ? std::string::npos : all.find('|', begin) + 1;
    if (begin == std::string::npos)
        return "";
    const std::string word = all.substr(begin, all.find('|', begin) - begin);
    return word == "gelu_erf" ? "gelu" : word; /* PyTorch's name */
}

spk_operation_info operation_of(spk_operation operation)
{
    spk_operation_info info = {};
    info.struct_size = sizeof info;
    for (int i = 0; spk_operation_get_info(i, &info) == SPK_OK; i++)
        if (info.operation == operation)
            return info;
    throw std::logic_error("an unknown operation");
}

/* A problem of any operation, for the functions that ask about it. */
struct Described {
    const Device &device;
    const spk_pattern *pattern;
    const void *problem;
    spk_operation_info operation;
    spk_problem_info numbers;

    Described(const Device &on, const spk_pattern *of, const void *what, spk_operation id)
        : device(on), pattern(of), problem(what), operation(operation_of(id)), numbers{}
    {
        numbers.struct_size = sizeof numbers;
        device.check(spk_problem_get_info(device.context, pattern, problem, &numbers));
    }
    spk_array_info array(int operand) const
    {
        spk_array_info info = {};
        info.struct_size = sizeof info;
        device.check(spk_problem_get_array(device.context, pattern, problem, operand, &info));
        return info;
    }
};

void put_pattern(Json &json, const spk_pattern_info &info)
{
    json.key("block_rows")
        .number(info.block_rows)
        .key("block_cols")
        .number(info.block_cols)
        .key("nnzb")
        .number(info.nnzb)
        .key("density")
        .number(info.density);
}

/* Fields that have a name of their own across operations. */
void put_field(Json &json, const Described &p, const spk_field_info &field)
{
    int value = 0;
    std::int64_t heads = 0;
    if (field.option == nullptr || std::strchr(field.option, '|') != nullptr)
        return;
    switch (field.kind) {
    case SPK_FIELD_DTYPE:
        json.key(field.option).string(spk_dtype_name(field.operand >= 0 ? p.array(field.operand).dtype : p.numbers.compute));
        break;
    case SPK_FIELD_ITEMS:
        json.key(field.option).number(static_cast<double>(p.numbers.items));
        break;
    case SPK_FIELD_HEADS:
        std::memcpy(&heads, static_cast<const char *>(p.problem) + field.offset, sizeof heads);
        json.key(field.option).number(static_cast<double>(heads > 1 ? heads : 1));
        break;
    case SPK_FIELD_LAYOUT:
    case SPK_FIELD_TRANS:
    case SPK_FIELD_CHOICE:
        std::memcpy(&value, static_cast<const char *>(p.problem) + field.offset, sizeof value);
        json.key(field.option).string(word_of(field.values, value).c_str());
        break;
    case SPK_FIELD_PART:
        std::memcpy(&value, static_cast<const char *>(p.problem) + field.offset, sizeof value);
        json.key(field.option).boolean(value != 0);
        break;
    case SPK_FIELD_SCALE: {
        spk_scale tile = {};
        std::memcpy(&tile, static_cast<const char *>(p.problem) + field.offset, sizeof tile);
        char text[SPK_TILE_TEXT];
        if (tile.rows != 0)
            json.key(field.option).string(spk_tile_text(tile, text, sizeof text));
        break;
    }
    case SPK_FIELD_SIZE:
    case SPK_FIELD_BLOCK_LAYOUT:
    case SPK_FIELD_LD:
    case SPK_FIELD_STRIDE:
    case SPK_FIELD_HEAD_STRIDE:
    case SPK_FIELD_GROUPS:
    case SPK_FIELD_COUNT:
    case SPK_FIELD_REAL:
    case SPK_FIELD_PROMISE:
        break;
    }
}

spk_pattern_info info_of(const Device &device, const spk_pattern *pattern)
{
    spk_pattern_info info = {};
    info.struct_size = sizeof info;
    device.check(spk_pattern_get_info(pattern, &info));
    return info;
}

void put_problem(Json &json, const Described &p)
{
    const spk_operation id = p.operation.operation;
    json.key("op").string(p.operation.name);
    for (int i = 0; i < p.operation.size_count; i++) {
        spk_size_info size = {};
        size.struct_size = sizeof size;
        p.device.check(spk_operation_get_size(id, i, &size));
        json.key(size.name).number(static_cast<double>(p.numbers.sizes[i]));
    }
    if (p.pattern != nullptr)
        put_pattern(json, info_of(p.device, p.pattern));
    for (int i = 0; i < p.operation.field_count; i++) {
        spk_field_info field = {};
        field.struct_size = sizeof field;
        p.device.check(spk_operation_get_field(id, i, &field));
        put_field(json, p, field);
    }
}

template <typename Call> std::string text_of_report(const Call &call, bool warm, spk_report *report)
{
    const Device &device = *call.device();
    std::unique_ptr<spk_report, void (*)(spk_report *)> hold(report, [](spk_report *r) { spk_report_destroy(&r); });
    spk_report_info info = {};
    info.struct_size = sizeof info;
    device.check(spk_report_get_info(report, &info));
    spk_device_info facts = {};
    facts.struct_size = sizeof facts;
    device.check(spk_context_get_device(device.context, &facts));
    Json json;
    json.open('{')
        .key("sparsek")
        .string(spk_version())
        .key("commit")
        .string(spk_commit())
        .key("device")
        .open('{')
        .key("kind")
        .string(facts.kind);
    json.key("name").string(facts.name).key("threads").number(facts.threads).key("isa").open('[');
    for (int i = 0; i < facts.isa_count; i++)
        json.string(facts.isa[i]);
    json.close(']')
        .key("clocks_mhz")
        .number(facts.clock_mhz > 0 ? facts.clock_mhz : NAN)
        .key("power_w")
        .number(facts.power_w > 0 ? facts.power_w : NAN)
        .close('}');
    json.key("problem").open('{');
    const Described described(device, call.handle(), &call.problem, call.problem.operation);
    put_problem(json, described);
    json.key("assume_finite").number(call.problem.assume_finite).key("cache").string(warm ? "warm" : "cold").close('}');
    json.key("sentence").string(described.operation.sentence).key("flops").number(described.numbers.flops);
    json.key("dense_flops").number(described.numbers.dense_flops);
    json.key("chosen").number(info.chosen).key("from_store").number(info.from_store).key("tuning_s").number(info.tuning_s);
    json.key("provisional").string(provisional_name(info.provisional));
    json.key("origin").string(info.origin).key("foreign").boolean(info.foreign != 0);
    json.key("measured_at")
        .number(static_cast<double>(info.measured_at))
        .key("class_key")
        .string(info.class_key)
        .key("summary")
        .string(in_python(info.summary != nullptr ? info.summary : "").c_str());
    json.key("candidates").open('[');
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {};
        candidate.struct_size = sizeof candidate;
        device.check(spk_report_get_candidate(report, i, &candidate));
        put_candidate(json, candidate);
    }
    json.close(']').close('}');
    return json.text();
}

template <typename Call> std::string make_report(const Call &call, int64_t action, int64_t rounds)
{
    const Device &device = *call.device();
    const auto options = current_options();
    spk_tune_options o = tune_options(*options);
    spk_pattern *pattern = call.handle();
    spk_report *report = nullptr;
    spk_status status = SPK_OK;
    spk_race_options racing = {};
    racing.struct_size = sizeof racing;
    racing.rounds = static_cast<int>(rounds);
    racing.keep = 1;
    o.fresh = action == REPORT_TUNE_FRESH;
    switch (action) {
    case REPORT_EXPLAIN:
        status = spk_explain(device.context, pattern, &call.problem, &o, &report);
        break;
    case REPORT_LIST:
        status = spk_list_candidates(device.context, pattern, &call.problem, &o, &report);
        break;
    case REPORT_RACE:
        status = spk_race_kernels(device.context, pattern, &call.problem, &o, &racing, &report);
        break;
    default:
        status = spk_tune(device.context, pattern, &call.problem, &o, &report);
    }
    if (status != SPK_OK)
        spk_report_destroy(&report);
    if (status == SPK_ERR_INTERRUPTED)
        spk_context_resume(device.context);
    if (status == SPK_ERR_INTERRUPTED || (status == SPK_ERR_UNKNOWN_CLASS && action == REPORT_EXPLAIN))
        return "null"; /* interrupted: Python raises what the signal's handler raised before anyone reads this */
    device.check(status);
    return text_of_report(call, options->warm != 0, report);
}

} // namespace

std::string report_of(const Multiply &call, int64_t action, int64_t rounds)
{
    return make_report(call, action, rounds);
}

std::string report_of(const Sample &call, int64_t action, int64_t rounds)
{
    return make_report(call, action, rounds);
}

std::string report_of(const Dense &call, int64_t action, int64_t rounds)
{
    return make_report(call, action, rounds);
}

std::string inspect_of(const std::shared_ptr<Pattern> &pattern)
{
    const spk_pattern_info info = info_of(*pattern->device, pattern->handle);
    Json json;
    json.open('{')
        .key("rows")
        .number(info.rows)
        .key("cols")
        .number(info.cols)
        .key("block_rows")
        .number(info.block_rows)
        .key("block_cols")
        .number(info.block_cols);
    json.key("grid_rows")
        .number(info.grid_rows)
        .key("grid_cols")
        .number(info.grid_cols)
        .key("nnzb")
        .number(info.nnzb)
        .key("density")
        .number(info.density);
    json.key("empty_rows").number(info.empty_rows).key("longest_row").number(info.longest_row).key("row_spread").number(info.row_spread);
    json.key("row_overlap").number(info.row_overlap).key("bandwidth").number(info.bandwidth).close('}');
    return json.text();
}

} // namespace sparse_autotune
