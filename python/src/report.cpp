#include "report.h"

#include <cmath>
#include <cstdio>

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
        char buffer[40] = "null";
        if (std::isfinite(value))
            std::snprintf(buffer, sizeof buffer, "%.17g", value);
        return comma(), text_ += buffer, *this;
    }
    Json &string(const char *value)
    {
        comma();
        if (value == nullptr)
            return text_ += "null", *this;
        text_ += '"';
        for (const char *c = value; *c != '\0'; c++) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned char>(*c));
            if (*c == '"' || *c == '\\')
                text_ += '\\', text_ += *c;
            else if (static_cast<unsigned char>(*c) < 0x20)
                text_ += escape;
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

void put_candidate(Json &json, const spk_candidate_info &c)
{
    json.open('{').key("name").string(c.name).key("params").string(c.params).key("hash").string(c.hash).key("kind").string(kind_name(c.kind));
    json.key("status").string(status_name(c.status)).key("why").string(c.why);
    json.key("median_us").number(c.median_us > 0 ? c.median_us : NAN).key("spread_us").number(c.median_us > 0 ? c.spread_us : NAN);
    json.key("prepare_us").number(c.median_us > 0 ? c.prepare_us : NAN).key("predicted_us").number(c.predicted_us > 0 ? c.predicted_us : NAN);
    json.key("error").number(c.error >= 0 ? c.error : NAN).key("tolerance").number(c.tolerance > 0 ? c.tolerance : NAN);
    json.key("samples_us").open('[');
    for (int64_t i = 0; i < c.sample_count; i++)
        json.number(c.samples_us[i]);
    json.close(']').close('}');
}

std::string text_of_report(const Device &device, spk_report *report)
{
    std::unique_ptr<spk_report, void (*)(spk_report *)> hold(report, [](spk_report *r) { spk_report_destroy(&r); });
    spk_report_info info = {};
    info.struct_size = sizeof info;
    device.check(spk_report_get_info(report, &info));
    spk_device_info facts = {};
    facts.struct_size = sizeof facts;
    device.check(spk_context_device(device.context, &facts));
    Json json;
    json.open('{').key("device").string(facts.name).key("threads").number(facts.threads).key("version").string(spk_version()).key("commit").string(spk_commit());
    json.key("chosen").number(info.chosen).key("from_store").number(info.from_store).key("tuning_s").number(info.tuning_s);
    json.key("measured_at").number(static_cast<double>(info.measured_at)).key("class_key").string(info.class_key).key("summary").string(info.summary);
    json.key("candidates").open('[');
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {};
        candidate.struct_size = sizeof candidate;
        device.check(spk_report_candidate(report, i, &candidate));
        put_candidate(json, candidate);
    }
    json.close(']').close('}');
    return json.text();
}

template <typename Call, typename Problem>
std::string make_report(const Call &call, int64_t action, int64_t rounds, spk_status (*tune)(spk_context *, spk_pattern *, const Problem *, const spk_tune_options *, spk_report **),
                        spk_status (*explain)(spk_context *, spk_pattern *, const Problem *, const spk_tune_options *, spk_report **),
                        spk_status (*list)(spk_context *, spk_pattern *, const Problem *, const spk_tune_options *, spk_report **),
                        spk_status (*race)(spk_context *, spk_pattern *, const Problem *, const spk_tune_options *, const spk_race_options *, spk_report **))
{
    const Device &device = *call.pattern->device;
    const auto options = current_options();
    spk_tune_options o = tune_options(*options, call.assume_finite);
    spk_pattern *pattern = call.pattern->handle;
    spk_report *report = nullptr;
    spk_status status = SPK_OK;
    spk_race_options racing = {};
    racing.struct_size = sizeof racing;
    racing.rounds = static_cast<int>(rounds);
    racing.keep = 1;
    o.fresh = action == REPORT_TUNE_FRESH;
    switch (action) {
    case REPORT_EXPLAIN: status = explain(device.context, pattern, &call.problem, &o, &report); break;
    case REPORT_LIST: status = list(device.context, pattern, &call.problem, &o, &report); break;
    case REPORT_RACE: status = race(device.context, pattern, &call.problem, &o, &racing, &report); break;
    default: status = tune(device.context, pattern, &call.problem, &o, &report);
    }
    if (status != SPK_OK)
        spk_report_destroy(&report);
    device.check(status);
    return text_of_report(device, report);
}

} // namespace

std::string report_of(const Multiply &call, int64_t action, int64_t rounds)
{
    return make_report(call, action, rounds, spk_tune_spmm, spk_explain_spmm, spk_list_spmm, spk_race_spmm);
}

std::string report_of(const Sample &call, int64_t action, int64_t rounds)
{
    return make_report(call, action, rounds, spk_tune_sddmm, spk_explain_sddmm, spk_list_sddmm, spk_race_sddmm);
}

std::string inspect_of(const std::shared_ptr<Pattern> &pattern)
{
    spk_pattern_info info = {};
    info.struct_size = sizeof info;
    pattern->device->check(spk_pattern_get_info(pattern->handle, &info));
    Json json;
    json.open('{').key("rows").number(info.rows).key("cols").number(info.cols).key("block_rows").number(info.block_rows).key("block_cols").number(info.block_cols);
    json.key("grid_rows").number(info.grid_rows).key("grid_cols").number(info.grid_cols).key("nnzb").number(info.nnzb).key("density").number(info.density);
    json.key("empty_rows").number(info.empty_rows).key("longest_row").number(info.longest_row).key("row_spread").number(info.row_spread);
    json.key("row_overlap").number(info.row_overlap).key("bandwidth").number(info.bandwidth).close('}');
    return json.text();
}

} // namespace sparse_autotune
