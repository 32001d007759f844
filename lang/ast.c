/* Tables of the operators of the tree: see ast.h and operators.def. */
#include "lang/ast.h"

const char *unary_op_text(UnaryOp op) {
    static const char *const texts[] = {
#define UNARY(id, text, word) [UNARY_##id] = text,
#include "lang/operators.def"
    };
    return texts[op];
}

const char *binary_op_text(BinaryOp op) {
    static const char *const texts[] = {
        [BINARY_NONE] = "",
#define BINARY(id, text, precedence, word) [BINARY_##id] = text,
#include "lang/operators.def"
    };
    return texts[op];
}

int binary_op_precedence(BinaryOp op) {
    static const int precedences[] = {
        [BINARY_NONE] = 0,
#define BINARY(id, text, precedence, word) [BINARY_##id] = precedence,
#include "lang/operators.def"
    };
    return precedences[op];
}

const char *assign_op_text(AssignOp op) {
    static const char *const texts[] = {
#define ASSIGN(id, text, binary) [ASSIGN_##id] = text,
#include "lang/operators.def"
    };
    return texts[op];
}

BinaryOp assign_op_binary(AssignOp op) {
    static const BinaryOp binaries[] = {
#define ASSIGN(id, text, binary) [ASSIGN_##id] = BINARY_##binary,
#include "lang/operators.def"
    };
    return binaries[op];
}
