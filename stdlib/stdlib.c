/* Finds embedded modules. Input: a dotted name. Output: the text, from the generated table. */
#include "stdlib/stdlib.h"
#include "stdlib_table.h"

#include <string.h>

bool stdlib_find(const char *dotted, const char **text, size_t *len) {
    for (size_t i = 0; i < sizeof stdlib_table / sizeof *stdlib_table; i++)
        if (!strcmp(stdlib_table[i].name, dotted)) {
            *text = (const char *)stdlib_table[i].text;
            *len = stdlib_table[i].len;
            return true;
        }
    return false;
}
