/* The syntax tree beside the IR: lang/ast.h and ir/ir.h both have a Param, a Binder and a Schedule.
 * Here the tree's are called AstParam, AstBinder, AstSchedule and AstEntry. Include this first.
 */
#ifndef FUSE_FRONTEND_TREE_H
#define FUSE_FRONTEND_TREE_H

#define Param            AstParam
#define Binder           AstBinder
#define Schedule         AstSchedule
#define ScheduleEntry    AstEntry
#define ScheduleEntryVec AstEntryVec
#define ScheduleVec      AstScheduleVec
#include "lang/ast.h"
#undef Param
#undef Binder
#undef Schedule
#undef ScheduleEntry
#undef ScheduleEntryVec
#undef ScheduleVec

#include "ir/ir.h"
#include "ir/pass.h"

#endif
