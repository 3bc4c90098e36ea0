# SPDX-License-Identifier: BSD-3-Clause
"""wrong_arguments.py SOURCE OUTPUT: writes calls of all MPI functions, each with one wrong argument, for wrong_arguments.c.

The signatures are those of adi/bindings/*.table. Every argument has a valid value (VALUES, ARRAYS, GIVEN), and wrong ones
with the error classes that are right (wrong_values). A case is left out only if SKIP or EXCEPT names it, with the reason.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
source = sys.argv[1]
sys.path.insert(0, os.path.join(source, "adi", "bindings"))
import table  # noqa: E402

# Functions without cases: a pattern of their names, and the reason.
SKIP = {
    r"Init|Init_thread|Finalize|Abort": "they start or end MPI; arguments.c and errors.c call them",
    r"Pcontrol|Wtime|Wtick|Aint_.*|.*_(from|to)int": "they return no error code",
    r"T_enum_.*|T_event_.*|T_source_.*": "this library has no enumerations, events and sources; tool.c calls them",
    r"T_(init_thread|finalize)": "they start or end the tool interface",
    r"T_pvar_(start|stop|reset|readreset|write)": "no variable of this library can be started, stopped or written; tool.c",
}
# (functions, argument, wrong value): reason. Patterns.
EXCEPT = {
    ("I?(ex|Ex)scan.*", "recvbuf", "NULL"): "the buffer of rank 0 is not used",
    ("Type_commit", "datatype", "&MPI_INT"): "MPI allows to commit a predefined datatype",
    ("Free_mem|Win_attach|Win_detach", "base", "NULL"): "a null pointer is memory of 0 bytes, or refused as not attached",
    ("Get_address", "location", "NULL"): "MPI_BOTTOM has an address",
    ("Status_set_(tag|source)", ".*", "-?[0-9]+"): "MPI allows all values",
    ("Parrived", "request", "MPI_REQUEST_NULL"): "MPI says that all partitions have arrived",
    ("Dist_graph_neighbors", ".*weights", "NULL"): "the graph has no weights, so that nothing is stored",
    ("Type_get_contents(_c)?", "array_of_addresses", "NULL"): "the datatype has no addresses",
    ("T_category_get_.*", "indices", "NULL"): "the length is 0",
    ("Abi_set_fortran_booleans", "logical_.*", "NULL"): "the function fails always, as the values are built in",
    ("Type_(create_)?indexed(_block)?(_c)?", "array_of_displacements", "{.*"): "displacements may be negative",
    ("Type_create_(hindexed|hindexed_block|struct)(_c)?", "array_of_displacements", "{.*"): "displacements may be negative",
}
# What messages call an argument whose name in the table is another one: (functions, argument): word.
CALLED = {
    ("Graph_.*", "indx"): "index",
    (".*some", "incount"): "count",
    ("Precv_init(_c)?", "dest"): "source",
    ("Pready_range", "partition_.*"): "partition",
    (".*", ".*displs"): "displs",
}
# The values of valid arguments by name; in wrong_arguments.c these are variables.
VALUES = {
    "comm_cart": "cart", "comm_old": "comm", "comm1": "comm", "comm2": "comm", "local_comm": "comm", "peer_comm": "comm",
    "group1": "group", "group2": "group", "local_group": "group", "remote_group": "group", "intercomm": "inter",
    "oldtype": "MPI_INT", "value_type": "MPI_DOUBLE", "index_type": "MPI_INT", "op": "MPI_SUM", "stringtag": '"tag"',
    "assert": "0", "lock_type": "MPI_LOCK_SHARED", "target_disp": "0", "disp_unit": "1", "datarep": '"external32"',
    "order": "MPI_ORDER_C", "split_type": "MPI_COMM_TYPE_SHARED", "typeclass": "MPI_TYPECLASS_INTEGER", "ndims": "1",
    "key": "0", "string": '"text"', "comm_keyval": "comm_key", "type_keyval": "type_key", "win_keyval": "win_key",
    "keyval": "comm_key", "maxdims": "1", "nnodes": "1", "insize": "64", "outsize": "64", "required": "0", "partitions": "1",
    "errorcode": "code", "errorclass": "class", "pset_name": '"mpi://SELF"', "extent": "8", "logical_size": "4",
    "peer": "0", "direction": "0", "valuelen": "8", "name": '"none"', "nneighbors": "1", "maxneighbors": "1",
    "comm_name": '"name"', "win_name": '"name"', "type_name": '"name"', "stride": "1", "color": "0",
    "comm_errhandler_fn": "on_comm", "win_errhandler_fn": "on_win", "session_errhandler_fn": "on_session",
    "query_fn": "on_query", "free_fn": "on_free", "cancel_fn": "on_cancel", 
    "request": "request", "max_integers": "4", "max_addresses": "4", "max_large_counts": "4", "max_datatypes": "4",
}
KINDS = {
    "comm": "comm", "anycomm": "comm", "group": "group", "type": "type", "ctype": "MPI_INT",
    "otype": "MPI_INT", "anytype": "MPI_INT",
    "errhandler": "handler", "info": "info", "info!": "info", "win": "win", "anywin": "win", "session": "session",
    "request": "request", "message": "found", "count": "1", "amount": "1", "unit": "1", "aint": "8",
    "int": "0", "bool": "0", "disp": "0",
    "address": "8", "string": '"text"', "in": "bytes", "out": "more_bytes", "data": "NULL", "state": "NULL",
    "attribute": "NULL", "statusin": "&status", "weights": "MPI_UNWEIGHTED", "argv": "NULL", "Count": "1",
}
ARRAYS = {"amounts": "1", "displs": "0", "aints": "0", "addresses": "0", "ints": "0", "bools": "0", "types": "MPI_INT",
          "requests": "request", "ranges": "{ 0, 0, 1 }"}
# Functions (patterns) that need other values.
GIVEN = {
    r"Neighbor_.*|Ineighbor_.*|Cart_(coords|get|rank|shift|sub)|Cartdim_get": {"comm": "cart"},
    r"Graph_(get|neighbors.*)|Graphdims_get": {"comm": "graph"},
    r"Dist_graph_neighbors.*": {"comm": "dist"},
    r"Comm_remote_.*": {"comm": "inter"},
    r"Win_(attach|detach)": {"win": "dynamic", "base": "bytes"},
    r"Win_(complete|fence|flush.*|lock.*|post|start|sync|test|unlock.*|wait)": {"win": "closed"},
    r"Win_(flush.*|unlock.*|sync)": {"win": "win"},
    r"Win_shared_query": {"win": "shared"},
    r"Pready.*": {"request": "partitioned"}, r"Pready_list": {"request": "partitioned", "length": "1"},
    r"Parrived": {"request": "partitioned_in"},
    r"Type_create_subarray|Type_create_darray": {"array_of_sizes": "4", "array_of_gsizes": "4", "array_of_subsizes": "2",
                                                 "array_of_distribs": "MPI_DISTRIBUTE_BLOCK", "array_of_psizes": "1",
                                                 "array_of_dargs": "MPI_DISTRIBUTE_DFLT_DARG", "size": "1"},
    r"Type_get_contents": {"datatype": "type"}, r"Type_match_size": {"size": "4"},
    r"Cart_(create|map)|Dims_create": {"dims": "1"}, r"Graph_(create|map)": {"indx": "1"},
    r"Dims_create": {"ndims": "1", "nnodes": "1"},
    r"Dist_graph_create": {"n": "1", "degrees": "1"}, r"Dist_graph_create_adjacent": {"indegree": "1", "outdegree": "1"},
    r"Dist_graph_neighbors": {"maxindegree": "1", "maxoutdegree": "1"},
    r"Group_(incl|excl|translate_ranks|range_.*)": {"n": "1"},
    r"Graph_get": {"maxindex": "1", "maxedges": "1"},
    r"Win_detach": {"base": "attached"}, r"Comm_split": {"color": "0"}, r"Free_mem": {"base": "NULL"},
    r"Win_(delete|get|set)_attr": {}, r"Remove_error_string|Add_error_string": {"errorcode": "code"},
    r"(Comm|Session)_attach_buffer|Buffer_attach": {"size": "1024"},
    r"Compare_and_swap|Fetch_and_op|.*[aA]ccumulate|Put|Get|Rput|Rget": {"origin_datatype": "MPI_INT",
     "target_datatype": "MPI_INT", "result_datatype": "MPI_INT", "datatype": "MPI_INT", "op": "MPI_SUM"},
    r".*([rR]educe|[sS]can).*": {"datatype": "MPI_INT"},
    r"T_cvar_handle_alloc": {"cvar_index": "0"}, r"T_category_.*": {"len": "0"},
    r"Info_(get|get_string|get_valuelen|delete)": {"key": '"key"'}, r"Info_set": {"key": '"key"', "value": '"value"'},
    r"Info_create_env": {"argc": "0"},
    r"Error_(class|string)": {"errorcode": "MPI_ERR_TAG"},
    r"(Comm|Win|Session)_call_errhandler": {"errorcode": "MPI_ERR_TAG"},
    r"T_(cvar|pvar|category)_get_index": {"var_class": "0"}, r"T_cvar_(read|write)": {"handle": "cvar"},
    r"(Wait|Test|Start)(all|any)|Request_get_status_(all|any)": {"count": "2"},
    r"(Wait|Test)some|Request_get_status_some": {"incount": "2"},
    r"Error_.*": {}, r"Grequest_complete": {"request": "generalized"}, r"Imrecv|Mrecv": {"message": "found"},
    r"T_pvar_read": {"session": "pvar_session", "handle": "pvar"},
    r"T_pvar_handle_(alloc|free)": {"session": "pvar_session", "handle": "&pvar"},
    r"Op_create": {"user_fn": "on_op"}, r"Op_create_c": {"user_fn": "on_op_large"},
}
NULLS = {"comm": "MPI_COMM_NULL", "group": "MPI_GROUP_NULL", "type": "MPI_DATATYPE_NULL", "op": "MPI_OP_NULL",
         "errhandler": "MPI_ERRHANDLER_NULL", "info": "MPI_INFO_NULL", "win": "MPI_WIN_NULL", "session": "MPI_SESSION_NULL",
         "request": "MPI_REQUEST_NULL", "message": "MPI_MESSAGE_NULL"}
CLASSES = {"comm": "COMM", "group": "GROUP", "type": "TYPE", "op": "OP", "errhandler": "ERRHANDLER", "info": "INFO",
           "win": "WIN", "session": "SESSION", "request": "REQUEST", "message": "REQUEST"}
PREDEFINED = {"comm": "MPI_COMM_WORLD", "type": "MPI_INT", "op": "MPI_SUM"}
# ints by name: [(wrong value, classes)].
RANK = [("1000", "RANK ROOT"), ("-7", "RANK ROOT")]
NUMBER = [("-1", "ARG COUNT DIMS TOPOLOGY SIZE RANK")]
KEY = [("-1", "KEYVAL"), ("0x5eed", "KEYVAL")]
INTS = {
    "dest": RANK, "source": RANK, "root": RANK, "rank": RANK, "target_rank": RANK,
    "local_leader": RANK, "remote_leader": RANK,
    "tag": [("-5", "TAG")], "sendtag": [("-5", "TAG")], "recvtag": [("-5", "TAG")],
    "n": NUMBER, "ndims": NUMBER, "nnodes": NUMBER, "maxdims": NUMBER, "indegree": NUMBER, "outdegree": NUMBER,
    "maxindegree": NUMBER, "maxoutdegree": NUMBER, "maxneighbors": NUMBER, "maxindex": NUMBER, "maxedges": NUMBER,
    "count": NUMBER, "incount": NUMBER, "length": NUMBER, "argc": NUMBER, "partitions": NUMBER, "size": NUMBER,
    "comm_keyval": KEY, "type_keyval": KEY, "win_keyval": KEY, "keyval": KEY,
    "errorcode": [("-1", "ARG"), ("123456", "ARG")], "errorclass": [("-1", "ARG"), ("123456", "ARG")],
    "assert": [("1 << 20", "ASSERT")], "lock_type": [("99", "LOCKTYPE")], "order": [("99", "ARG")], "color": [("-5", "ARG")],
    "split_type": [("99", "ARG")], "typeclass": [("99", "ARG")], "direction": [("7", "ARG DIMS"), ("-1", "ARG DIMS")],
    "partition": [("99", "ARG"), ("-1", "ARG")], "partition_low": [("-1", "ARG")], "partition_high": [("99", "ARG")],
    "valuelen": [("-1", "ARG")], "cat_index": [("-1", "T_INVALID_INDEX"), ("999", "T_INVALID_INDEX")],
    "cvar_index": [("-1", "T_INVALID_INDEX"), ("9999", "T_INVALID_INDEX")],
    "pvar_index": [("-1", "T_INVALID_INDEX"), ("9999", "T_INVALID_INDEX")], "logical_size": [("3", "ARG")],
    "disp_unit": [("-1", "DISP ARG")],
}
# Every value is valid, or none is read.
ANY_INT = {"key", "level", "disp", "error", "nodes", "var_class", "len", "comm", "type"}


def text(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def wrong_handles(kind, name, by_reference):
    """[(expression, classes, part of the message)] for a handle."""
    base = re.sub(r"^(any|c$|o$)", "", kind.rstrip("!&*")) or "type"
    base = {"ctype": "type", "otype": "type"}.get(base, base)
    if base not in NULLS:
        return []
    class_ = CLASSES[base]
    other = "MPI_INT" if base != "type" else "MPI_COMM_WORLD"
    c_type = "MPI_" + {"type": "Datatype"}.get(base, base.capitalize())
    values = [(f"({c_type}){other}", class_), (f"({c_type})bytes", class_), (f"({c_type})0x1234567", class_)]
    if base not in ("info",) or kind.endswith("!") or by_reference:
        values.insert(0, (NULLS[base], class_))
    if base in ("comm", "group", "type", "op", "errhandler", "info", "win", "session", "request"):
        values.append((f"freed_{base}", class_))
    if kind == "ctype":
        values.append(("uncommitted", class_))
    if by_reference and base in PREDEFINED:
        values.append((PREDEFINED[base], class_))
    return values


def wrong_values(function, p, large):
    """[(expression, classes)] of wrong values of a parameter that is passed by value or is an array or buffer."""
    kind = p.kind
    if p.is_function:
        return [("NULL", "ARG")] if "errhandler" in kind or "Grequest" in kind or "User" in kind else []
    if kind in table.HANDLES or kind in table.PLAIN_HANDLES:
        values = wrong_handles(kind, p.name, False)
        if function.name == "Request_get_status" or kind in ("anycomm", "anytype", "anywin") and "get_name" in function.name:
            values = [v for v in values if not v[0].endswith("_NULL")]
        if kind == "op" and function.chapter == "collective" and "datatype" in [q.name for q in function.parameters]:
            values += [("MPI_REPLACE", "OP"), ("MPI_NO_OP", "OP")]
        return values
    if kind in ("count", "amount"):
        return [] if p.name in ("stride",) else [("-1", "COUNT ARG SIZE")]
    if kind == "unit":
        return INTS.get(p.name, [])
    if kind == "int":
        return [] if p.name in ANY_INT else INTS.get(p.name, [])
    if kind == "disp":
        return [("-1", "DISP RMA_RANGE"), ("1 << 20", "RMA_RANGE")]
    if kind == "address" and p.name == "size":
        return [("-1", "SIZE ARG")]
    if kind in ("in", "out"):
        return [("NULL", "T_INVALID" if "silent" in function.flags else "BUFFER ARG BASE")]
    if kind == "string" and not p.optional:
        return [("NULL", "T_INVALID T_INVALID_NAME" if "silent" in function.flags else "ARG")]
    if kind == "statusin" or kind == "status*" and function.name.startswith("Status_set"):
        return [("NULL", "ARG")]
    if kind == "amounts":
        return [("NULL", "ARG COUNT"), ("{ -1, -1, -1, -1 }", "COUNT ARG")]
    if kind == "types":
        return [("NULL", "ARG TYPE"), ("{ MPI_DATATYPE_NULL, MPI_INT, MPI_INT, MPI_INT }", "TYPE")]
    if kind in ("request[]", "requests"):
        return [("NULL", "ARG REQUEST"), ("{ (MPI_Request)MPI_INT, MPI_REQUEST_NULL }", "REQUEST"),
                ("{ freed_request, MPI_REQUEST_NULL }", "REQUEST")]
    if kind in ("displs", "aints", "addresses", "ints", "bools", "ranges", "int[]", "bool[]", "index[]", "address[]",
                "type[]"):
        return [("NULL", "ARG BUFFER COUNT DIMS TOPOLOGY RANK")]
    if kind.endswith("&"):
        values = wrong_handles(kind, p.name, True)
        if function.name in ("Wait", "Test"):
            values = [v for v in values if not v[0].endswith("_NULL")]
        return [("NULL", "ARG")] + [("&" + v, c) for v, c in values]
    if p.checked and "unchecked" not in function.flags:
        return [("NULL", "ARG")]
    return []


def given(function):
    values = {}
    for pattern, more in GIVEN.items():
        if re.fullmatch(pattern, function.name):
            values.update(more)
    return values


def base_type(c_type):
    return re.sub(r"\s*(\*|\[\]|\[\]\[3\])$", "", c_type.replace("const ", "")).strip()


def valid(function, p, large, values):
    """(locals, expression) of a valid argument."""
    c_type, kind = p.types[large], p.kind
    if p.is_function:
        return [], values.get(p.name) or VALUES.get(p.name, "NULL")
    if kind in ARRAYS:
        value = values.get(p.name, ARRAYS[kind])
        suffix = "[4][3]" if kind == "ranges" else "[4]"
        element = base_type(c_type.replace("[][3]", "[]"))
        return [f"{element} {p.name}_at{suffix} = {{ {', '.join([value] * 4)} }};"], p.name + "_at"
    if kind == "request[]":
        return [f"MPI_Request {p.name}_at[2] = {{ MPI_REQUEST_NULL, MPI_REQUEST_NULL }};"], p.name + "_at"
    if kind == "int[]" and p.name in values:
        return [f"int {p.name}_at[4] = {{ {values[p.name]} }};"], p.name + "_at"
    if kind.endswith("&"):
        base = kind[:-1]
        return [f"{base_type(c_type)} {p.name}_at = {VALUES.get(p.name) or KINDS.get(base, 'NULL')};"], f"&{p.name}_at"
    if p.name in values:
        return [], values[p.name]
    if kind in table.HANDLES or kind in table.PLAIN_HANDLES or not (c_type.endswith("*") or "[" in c_type) or kind in KINDS:
        if kind == "string":
            return [], VALUES.get(p.name, '"text"')
        by_name = p.name in VALUES and kind not in ("info", "in", "out")
        return [], VALUES[p.name] if by_name else KINDS.get(kind, "0")
    if kind == "chars":
        return [], "chars"
    if kind == "status*" or kind == "status[]":
        return [], "statuses"
    if kind in ("place*", "aplace*"):
        return [f"{base_type(c_type)} {p.name}_at = 0;"], f"&{p.name}_at"
    if kind == "base*":
        return ["void *base_at = NULL;"], "&base_at"
    if kind == "attribute*":
        return ["void *attribute_at = NULL;"], "&attribute_at"
    if kind == "char***" or p.name in ("argc",):
        return [], "NULL"
    return [f"{base_type(c_type)} {p.name}_at[64] = {{ 0 }};"], p.name + "_at"


def excepted(function, p, value):
    for (functions, argument, wrong), reason in EXCEPT.items():
        if re.fullmatch(functions, function) and re.fullmatch(argument, p.name) and re.fullmatch(wrong, value):
            return reason
    return None


def mask(classes):
    names = ["MPI_T_ERR_" + c[2:] if c.startswith("T_") else "MPI_ERR_" + c for c in classes.split()]
    return "{ " + ", ".join(names) + " }"


def said(p, value):
    """What the message must contain beside the names of function and argument."""
    number = re.fullmatch(r"&?(-?\d+)", value)
    if number:
        return number.group(1)
    if value == "1 << 20":
        return "1048576"
    if value == "0x5eed":
        return "24301"
    if re.fullmatch(r"&?MPI_\w+_NULL", value):
        return value.lstrip("&")
    if value == "NULL":
        return "NULL"
    return ""


def cases(functions, sources):
    bodies, rows = [], []
    for function in functions:
        if any(re.fullmatch(pattern, function.name) for pattern in SKIP):
            continue
        values = given(function)
        for name, large in function.variants():
            if not sources.covers(function, name) or function.result != "int":
                continue
            parameters = function.c_parameters(large)
            for p in parameters:
                for wrong, classes in wrong_values(function, p, large):
                    if excepted(name, p, wrong):
                        continue
                    number = len(rows)
                    bodies.append(body(number, function, name, large, parameters, p, wrong, values))
                    inter = "inter" in values.values() or "intercomm" in [q.name for q in parameters]
                    silent = "silent" in function.flags
                    called = next((word for (pattern, argument), word in CALLED.items() if re.fullmatch(pattern, name) and
                                   re.fullmatch(argument, p.name)), p.name)
                    rows.append(f"\t{{ case_{number}, {text(name)}, {text(called)}, {text(wrong)}, {text(said(p, wrong))}, "
                                f"{str(silent).lower()}, {str(inter).lower()}, {mask(classes)} }},")
    return bodies, rows


def body(number, function, name, large, parameters, wrong_one, wrong, values):
    lines, arguments = [f"static int case_{number}(void)", "{"], []
    for p in parameters:
        before, value = valid(function, p, large, values)
        if p is wrong_one and wrong.startswith("{"):
            before = [f"{base_type(p.types[large])} {p.name}_at[] = {wrong};"]
        elif p is wrong_one and wrong.startswith("&"):
            before, value = [f"{base_type(p.types[large])} {p.name}_at = {wrong[1:]};"], f"&{p.name}_at"
        elif p is wrong_one:
            before, value = [], wrong
        lines += ["\t" + line for line in before]
        arguments.append(value)
    return "\n".join(lines + [f"\treturn MPI_{name}({', '.join(arguments)});", "}", ""])


def main():
    functions = table.read_tables(os.path.join(source, "adi", "bindings"))
    bodies, rows = cases(functions, table.Sources(source))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("/* Generated by wrong_arguments.py: do not edit. */\n")
        file.write("\n".join(bodies))
        file.write("\nstatic const struct wrong wrongs[] = {\n" + "\n".join(rows) + "\n};\n")


if __name__ == "__main__":
    main()
