/* Finds embedded modules. Input: a dotted name. Output: the text, from the generated table. */
#include "stdlib/library.h"
#include "library_table.h"

#include <string.h>

bool library_find(const char *dotted, const char **text, size_t *len) {
    for (size_t i = 0; i < sizeof library_table / sizeof *library_table; i++)
        if (!strcmp(library_table[i].name, dotted)) {
            *text = (const char *)library_table[i].text;
            *len = library_table[i].len;
            return true;
        }
    return false;
}

bool library_at(size_t i, const char **dotted, const char **text, size_t *len) {
    if (i >= sizeof library_table / sizeof *library_table)
        return false;
    *dotted = library_table[i].name;
    *text = (const char *)library_table[i].text;
    *len = library_table[i].len;
    return true;
}
