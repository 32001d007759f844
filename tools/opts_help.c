// `--help` and the manual page, printed from the rows of opts.def.
// Invariant: everything that the parser accepts is shown, in the order of the table; what it
// refuses as not supported yet is not.
#include "tools/opts_table.h"

#include <string.h>

enum { HELP_COLUMN = 28, HELP_WIDTH = 96 };

// Prints text in lines of at most HELP_WIDTH, each starting at `indent`; the cursor is at `column`.
static void print_wrapped(FILE *to, const char *text, int column, int indent) {
    if (column > indent - 2) {
        fputc('\n', to);
        column = 0;
    }
    fprintf(to, "%*s", indent - column, "");
    column = indent;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (column > indent && column + 1 + word > HELP_WIDTH) {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', to);
            column++;
        }
        fprintf(to, "%.*s", word, text);
        column += word;
        text += word;
        text += *text == ' ';
    }
    fputc('\n', to);
}

// "-o, --output=FILE" into `out`.
static void spell_option(const OptionRow *row, char *out, size_t size) {
    const char *equals = "";
    const char *value = row->value;
    char maybe[64];
    if (row->kind == MAYBE) {
        snprintf(maybe, sizeof maybe, *row->long_name ? "[=%s]" : "[%s]", row->value);
        value = maybe;
    } else if (*row->long_name && *value) {
        equals = "=";
    } else if (row->kind == VALUE || row->kind == CHOICE) {
        equals = " ";
    }
    snprintf(out, size, "%s%s%s%s%s%s%s", *row->short_name ? "-" : "", row->short_name,
             *row->short_name && *row->long_name ? ", " : "", *row->long_name ? "--" : "",
             row->long_name, equals, value);
}

static void print_option(FILE *to, const OptionRow *row) {
    char spelt[128], help[512];
    spell_option(row, spelt, sizeof spelt);
    int used = snprintf(help, sizeof help, "%s", row->help);
    if (*row->standard)
        snprintf(help + used, sizeof help - (size_t)used, " (default %s)", row->standard);
    int column = fprintf(to, "  %s%s", *row->short_name ? "" : "    ", spelt);
    print_wrapped(to, help, column, HELP_COLUMN);
}

void opts_print_help(FILE *to, CommandId command) {
    const char *lead = "usage: ";
    for (CommandId id = 0; id < CMD_COUNT; id++) {
        const CommandRow *row = &command_rows[id];
        if (row->status == LATER || (command != CMD_COMPILE && id != command))
            continue;
        fprintf(to, "%sfusec%s%s %s\n", lead, *row->word ? " " : "", row->word, row->usage);
        fprintf(to, "           %s\n", row->summary);
        lead = "       ";
    }
    fprintf(to, "\noptions:\n");
    for (OptId id = 0; id < OPT_COUNT; id++)
        if (option_is_on(id, command) && option_rows[id].status == READY)
            print_option(to, &option_rows[id]);
    if (command == CMD_RUN)
        fprintf(to, "\narguments:\n"
                    "  NAME=FILE.npy               a tensor: read if it is an input, written if it "
                    "is an output\n"
                    "  NAME=FILE.safetensors:KEY   the same, one tensor of a safetensors file\n"
                    "  NAME=NUMBER                 a scalar\n");
    fprintf(to, "\nexit status:\n");
    for (size_t i = 0; i < exit_row_count; i++)
        fprintf(to, "  %d  %s\n", exit_rows[i].code, exit_rows[i].meaning);
}

// --- Manual page ---

// roff: a leading dot or quote and every backslash and hyphen are special.
static void print_roff(FILE *to, const char *text) {
    if (*text == '.' || *text == '\'')
        fputs("\\&", to);
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", to);
        else if (*text == '\\')
            fputs("\\e", to);
        else
            fputc(*text, to);
    }
}

static void print_man_options(FILE *to, CommandId command) {
    for (OptId id = 0; id < OPT_COUNT; id++) {
        const OptionRow *row = &option_rows[id];
        // What all commands share is described once, under the first.
        if (!option_is_on(id, command) || row->status == LATER ||
            (command != CMD_COMPILE && row->commands == ON_ALL))
            continue;
        char spelt[128];
        spell_option(row, spelt, sizeof spelt);
        fputs(".TP\n.B ", to);
        print_roff(to, spelt);
        fputc('\n', to);
        print_roff(to, row->help);
        if (*row->standard)
            fprintf(to, " (default %s)", row->standard);
        fputs(".\n", to);
    }
}

void opts_print_man(FILE *to, const char *version) {
    fprintf(to, ".TH FUSEC 1 \"\" \"fusec %s\" \"User Commands\"\n", version);
    fputs(".SH NAME\nfusec \\- compile and run block\\-level tensor kernels\n.SH SYNOPSIS\n", to);
    for (CommandId id = 0; id < CMD_COUNT; id++) {
        if (command_rows[id].status == LATER)
            continue;
        fprintf(to, ".B fusec%s%s\n", *command_rows[id].word ? " " : "", command_rows[id].word);
        print_roff(to, command_rows[id].usage);
        fputs("\n.br\n", to);
    }
    fputs(".SH DESCRIPTION\n"
          "fusec compiles kernels written in the .fk language, in which the axes of tensors have\n"
          "names, to PTX for NVIDIA GPUs and to code for the host. It fuses the statements of a\n"
          "kernel into as few launches as it can.\n"
          ".PP\n.B fusec run\ncompiles one kernel and runs it on .npy and .safetensors files.\n"
          "An operand NAME=FILE gives a tensor: it is read where NAME is an input of the kernel\n"
          "and written where it is an output; FILE.safetensors:KEY is one tensor of that file;\n"
          "NAME=NUMBER gives a scalar. Elements are converted to the declared type, rounding to\n"
          "nearest even. Outputs of type bf16 and fp8 are written to .npy files as f32.\n"
          ".SH OPTIONS\n",
          to);
    print_man_options(to, CMD_COMPILE);
    fputs(".SH OPTIONS OF FUSEC RUN\n", to);
    print_man_options(to, CMD_RUN);
    fputs(".SH EXIT STATUS\n", to);
    for (size_t i = 0; i < exit_row_count; i++) {
        fprintf(to, ".TP\n.B %d\n", exit_rows[i].code);
        print_roff(to, exit_rows[i].meaning);
        fputs(".\n", to);
    }
}
