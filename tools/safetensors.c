// The .safetensors format. Layout: u64 little-endian length of the header, the header (JSON, padded
// with spaces), the elements. Header: name -> {dtype, shape, data_offsets: [begin, end)}, offsets
// from the end of the header; "__metadata__" -> strings.
// Input: bytes that may be anything. Output: entries whose data lies inside the file.
// Invariant: entries are sorted by offset, do not overlap, and leave no holes, as the format asks.
// Source: github.com/huggingface/safetensors, README "Format". JSON is read by jansson.
#include "tools/safetensors.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_SIZE = 8, DATA_ALIGNMENT = 64, MAX_HEADER = 100 * 1000 * 1000 };
static const char metadata_key[] = "__metadata__";

typedef struct Entry {
    char *name;
    const char *type; // spelling of the format; borrowed from the header or from type_rows
    json_t *shape;    // owned
    DType dtype;      // DT_NONE: a type that we only carry along
    const char *data; // borrowed
    size_t begin, bytes;
} Entry;

struct SafeTensors {
    const char *path; // for messages; borrowed
    FileView view;
    json_t *header; // NULL for a new set
    Entry *entries;
    size_t count;
};

static const struct {
    const char *text;
    DType dtype;
} type_rows[] = {{"BOOL", DT_BOOL},    {"U8", DT_U8},   {"I8", DT_I8},   {"F8_E5M2", DT_E5M2},
                 {"F8_E4M3", DT_E4M3}, {"I16", DT_I16}, {"U16", DT_U16}, {"F16", DT_F16},
                 {"BF16", DT_BF16},    {"I32", DT_I32}, {"U32", DT_U32}, {"F32", DT_F32},
                 {"F64", DT_F64},      {"I64", DT_I64}, {"U64", DT_U64}};
enum { TYPE_ROWS = sizeof type_rows / sizeof type_rows[0] };

static DType type_parse(const char *text) {
    for (size_t i = 0; i < TYPE_ROWS; i++)
        if (strcmp(type_rows[i].text, text) == 0)
            return type_rows[i].dtype;
    return DT_NONE;
}

static const char *type_text(DType dtype) {
    for (size_t i = 0; i < TYPE_ROWS; i++)
        if (type_rows[i].dtype == dtype)
            return type_rows[i].text;
    return NULL;
}

// --- Reading ---

// A JSON integer that is a size.
static bool json_size(const json_t *value, size_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (size_t)json_integer_value(value);
    return true;
}

static bool entry_shape(const Entry *entry, int *rank, int64_t *dims) {
    size_t n = json_array_size(entry->shape);
    if (n > TENSOR_MAX_RANK)
        return false;
    for (size_t i = 0; i < n; i++)
        dims[i] = json_integer_value(json_array_get(entry->shape, i));
    *rank = (int)n;
    return true;
}

// Fills an entry from its JSON object; data_size is what follows the header.
static bool parse_entry(const char *path, const char *name, json_t *value, size_t data_size,
                        Entry *out, ToolError *error) {
    const char *type = json_string_value(json_object_get(value, "dtype"));
    json_t *shape = json_object_get(value, "shape");
    json_t *offsets = json_object_get(value, "data_offsets");
    size_t begin, end, dim;
    if (!type || !json_is_array(shape) || json_array_size(offsets) != 2 ||
        !json_size(json_array_get(offsets, 0), &begin) ||
        !json_size(json_array_get(offsets, 1), &end))
        return tool_fail(error, "%s: malformed header at tensor '%.80s'", path, name);
    for (size_t i = 0; i < json_array_size(shape); i++)
        if (!json_size(json_array_get(shape, i), &dim))
            return tool_fail(error, "%s: malformed shape of tensor '%.80s'", path, name);
    if (begin > end || end > data_size)
        return tool_fail(error, "%s: tensor '%.80s' lies outside the file", path, name);

    *out = (Entry){.type = type, .shape = shape, .dtype = type_parse(type), .begin = begin};
    out->bytes = end - begin;
    int rank;
    int64_t elements, dims[TENSOR_MAX_RANK];
    if (out->dtype != DT_NONE && entry_shape(out, &rank, dims)) {
        size_t need;
        ToolError why;
        if (!tensor_size(out->dtype, rank, dims, &elements, &need, &why))
            return tool_fail(error, "%s: tensor '%.80s': %s", path, name, why.text);
        if (need != out->bytes)
            return tool_fail(error, "%s: tensor '%.80s' has %zu bytes, its shape needs %zu", path,
                             name, out->bytes, need);
    }
    out->name = strdup(name);
    if (!out->name)
        return tool_fail(error, "out of memory");
    json_incref(shape);
    return true;
}

static int entry_order(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static bool parse_entries(SafeTensors *set, const char *data, size_t data_size, ToolError *error) {
    set->entries = calloc(json_object_size(set->header) + 1, sizeof *set->entries);
    if (!set->entries)
        return tool_fail(error, "out of memory");
    const char *name;
    json_t *value;
    json_object_foreach(set->header, name, value) {
        if (strcmp(name, metadata_key) == 0)
            continue;
        if (!parse_entry(set->path, name, value, data_size, &set->entries[set->count], error))
            return false;
        set->entries[set->count].data = data + set->entries[set->count].begin;
        set->count++;
    }
    qsort(set->entries, set->count, sizeof *set->entries, entry_order);
    size_t at = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->entries[i].begin != at)
            return tool_fail(error, "%s: tensor '%.80s' overlaps another or leaves a hole",
                             set->path, set->entries[i].name);
        at += set->entries[i].bytes;
    }
    return at == data_size ||
           tool_fail(error, "%s: %zu bytes belong to no tensor", set->path, data_size - at);
}

static bool parse_file(SafeTensors *set, const char *bytes, size_t size, ToolError *error) {
    if (size < LENGTH_SIZE)
        return tool_fail(error, "%s: is not a .safetensors file", set->path);
    uint64_t length = 0;
    for (int i = LENGTH_SIZE; i-- > 0;)
        length = length << 8 | (unsigned char)bytes[i];
    if (length > MAX_HEADER || length > size - LENGTH_SIZE)
        return tool_fail(error, "%s: is truncated, or not a .safetensors file", set->path);
    json_error_t why;
    set->header = json_loadb(bytes + LENGTH_SIZE, (size_t)length, JSON_REJECT_DUPLICATES, &why);
    if (!set->header)
        return tool_fail(error, "%s: malformed header: %s", set->path, why.text);
    if (!json_is_object(set->header))
        return tool_fail(error, "%s: malformed header: no object", set->path);
    size_t start = LENGTH_SIZE + (size_t)length;
    return parse_entries(set, bytes + start, size - start, error);
}

SafeTensors *safetensors_new(void) {
    return calloc(1, sizeof(SafeTensors));
}

SafeTensors *safetensors_parse(const char *name, const char *bytes, size_t size, ToolError *error) {
    SafeTensors *set = safetensors_new();
    if (!set) {
        tool_fail(error, "out of memory");
        return NULL;
    }
    set->path = name;
    if (!parse_file(set, bytes, size, error)) {
        safetensors_close(set);
        return NULL;
    }
    return set;
}

SafeTensors *safetensors_open(const char *path, ToolError *error) {
    FileView view;
    if (!file_view_open(&view, path, (FileMark){"{", LENGTH_SIZE}, error))
        return NULL;
    SafeTensors *set = safetensors_parse(path, view.data, view.size, error);
    if (!set)
        file_view_close(&view);
    else
        set->view = view;
    return set;
}

void safetensors_close(SafeTensors *set) {
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++) {
        free(set->entries[i].name);
        json_decref(set->entries[i].shape);
    }
    free(set->entries);
    json_decref(set->header);
    if (set->view.data)
        file_view_close(&set->view);
    free(set);
}

size_t safetensors_count(const SafeTensors *set) {
    return set->count;
}

const char *safetensors_name(const SafeTensors *set, size_t i) {
    return set->entries[i].name;
}

static Entry *find_entry(const SafeTensors *set, const char *name) {
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->entries[i].name, name) == 0)
            return &set->entries[i];
    return NULL;
}

static bool unknown_name(const SafeTensors *set, const char *name, ToolError *error) {
    char some[256] = "";
    size_t used = 0, shown = 0;
    while (shown < set->count && shown < 5 && used < sizeof some) {
        used += (size_t)snprintf(some + used, sizeof some - used, "%s%s", shown ? ", " : "",
                                 set->entries[shown].name);
        shown++;
    }
    return tool_fail(error, "%s: has no tensor '%.80s'; it has %s%s", set->path, name,
                     set->count ? some : "none", shown < set->count ? ", ..." : "");
}

bool safetensors_read(const SafeTensors *set, const char *name, HostTensor *out, ToolError *error) {
    *out = (HostTensor){0};
    const Entry *entry = find_entry(set, name);
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
    if (!entry)
        return unknown_name(set, name, error);
    if (entry->dtype == DT_NONE)
        return tool_fail(error,
                         "%s: tensor '%.80s' has elements of type %.20s, which are not "
                         "supported",
                         set->path, name, entry->type);
    if (!entry_shape(entry, &rank, dims))
        return tool_fail(error, "%s: tensor '%.80s' has more than %d dims", set->path, name,
                         TENSOR_MAX_RANK);
    if (!tensor_alloc(out, entry->dtype, rank, dims, error))
        return false;
    memcpy(out->data, entry->data, entry->bytes);
    return true;
}

// --- Writing ---

bool safetensors_put(SafeTensors *set, const char *name, const HostTensor *tensor,
                     ToolError *error) {
    const char *type = type_text(tensor->dtype);
    if (!type)
        return tool_fail(error, "tensor '%.80s': .safetensors has no type for %s", name,
                         dtype_name(tensor->dtype));
    if (strcmp(name, metadata_key) == 0 || !*name)
        return tool_fail(error, "'%s' cannot name a tensor", name);
    Entry *entry = find_entry(set, name);
    if (!entry) {
        Entry *more = realloc(set->entries, (set->count + 1) * sizeof *more);
        char *copy = strdup(name);
        if (more)
            set->entries = more;
        if (!more || !copy) {
            free(copy);
            return tool_fail(error, "out of memory");
        }
        entry = &set->entries[set->count++];
        *entry = (Entry){.name = copy};
    }
    json_decref(entry->shape);
    entry->shape = json_array();
    for (int i = 0; i < tensor->rank; i++)
        json_array_append_new(entry->shape, json_integer(tensor->dims[i]));
    entry->type = type;
    entry->dtype = tensor->dtype;
    entry->data = tensor->data;
    entry->bytes = tensor->bytes;
    return true;
}

static json_t *make_header(const SafeTensors *set) {
    json_t *header = json_object();
    json_t *metadata = json_object_get(set->header, metadata_key);
    if (metadata)
        json_object_set(header, metadata_key, metadata);
    size_t at = 0;
    for (size_t i = 0; i < set->count; i++) {
        const Entry *entry = &set->entries[i];
        size_t end = at + entry->bytes;
        json_t *value = json_pack("{s:s, s:O, s:[I, I]}", "dtype", entry->type, "shape",
                                  entry->shape, "data_offsets", (json_int_t)at, (json_int_t)end);
        if (!value || json_object_set_new(header, entry->name, value) != 0) {
            json_decref(header);
            return NULL;
        }
        at = end;
    }
    return header;
}

static bool write_all(const SafeTensors *set, OutFile *file, const char *text, size_t length) {
    // Spaces after the header align the elements.
    size_t used = LENGTH_SIZE + length;
    size_t padding = (DATA_ALIGNMENT - used % DATA_ALIGNMENT) % DATA_ALIGNMENT;
    uint64_t stored = length + padding;
    unsigned char size[LENGTH_SIZE];
    for (int i = 0; i < LENGTH_SIZE; i++)
        size[i] = (unsigned char)(stored >> 8 * i);
    char spaces[DATA_ALIGNMENT];
    memset(spaces, ' ', sizeof spaces);
    if (!outfile_write(file, size, sizeof size) || !outfile_write(file, text, length) ||
        !outfile_write(file, spaces, padding))
        return false;
    for (size_t i = 0; i < set->count; i++)
        if (!outfile_write(file, set->entries[i].data, set->entries[i].bytes))
            return false;
    return true;
}

bool safetensors_write(const SafeTensors *set, const char *path, ToolError *error) {
    json_t *header = make_header(set);
    char *text = header ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    if (!text)
        return tool_fail(error, "%s: the header could not be made (a name that is not UTF-8?)",
                         path);
    OutFile file;
    bool ok = outfile_open(&file, path, error);
    if (ok && !write_all(set, &file, text, strlen(text))) {
        ok = tool_fail(error, "%s: %s", path, strerror(errno));
        outfile_discard(&file);
    } else if (ok) {
        ok = outfile_commit(&file, error);
    }
    free(text);
    return ok;
}
