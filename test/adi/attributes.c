/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes: keys, callbacks and their order, duplicates, predefined attributes, MPI_COMM_SELF at the end. */
#include "test/adi/check_mpi.h"

#include <string.h>

static int extra, copies, deletes, order[8], n_order, self_deleted;

static int copy(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
	(void)keyval;
	CHECK(comm == MPI_COMM_WORLD && state == &extra);
	copies++;
	*(void **)out = (char *)in + 1;
	*flag = 1;
	return MPI_SUCCESS;
}

static int copy_not(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
	(void)comm, (void)keyval, (void)state, (void)in, (void)out;
	*flag = 0;
	return MPI_SUCCESS;
}

static int copy_fails(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
	(void)comm, (void)keyval, (void)state, (void)in, (void)out, (void)flag;
	return MPI_ERR_OTHER;
}

static int delete(MPI_Comm comm, int keyval, void *value, void *state)
{
	(void)comm, (void)keyval, (void)state;
	deletes++;
	if (n_order < 8)
		order[n_order++] = *(int *)value;
	return MPI_SUCCESS;
}

static int delete_fails(MPI_Comm comm, int keyval, void *value, void *state)
{
	(void)comm, (void)keyval, (void)value;
	return *(int *)state ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static bool has(MPI_Comm comm, int keyval, void *wanted)
{
	void *value = NULL;
	int flag = 0;
	CHECK(MPI_Comm_get_attr(comm, keyval, &value, &flag) == MPI_SUCCESS);
	return flag && value == wanted;
}

static void values_come_back_and_go(void)
{
	int key, other, value[2] = { 1, 2 }, flag;
	void *found;
	CHECK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &key, NULL) == MPI_SUCCESS);
	CHECK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL) == MPI_SUCCESS);
	CHECK(key != other && key != MPI_KEYVAL_INVALID);
	CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &found, &flag) == MPI_SUCCESS && !flag);
	CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value[0]) == MPI_SUCCESS);
	CHECK(has(MPI_COMM_WORLD, key, &value[0]) && !has(MPI_COMM_SELF, key, &value[0]));
	CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value[1]) == MPI_SUCCESS);
	CHECK(deletes == 1 && order[0] == 1 && has(MPI_COMM_WORLD, key, &value[1]));
	CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, other) == MPI_ERR_KEYVAL);
	int freed = key;
	CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key) == MPI_SUCCESS && deletes == 2);
	CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
	CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, freed, &value[0]) == MPI_ERR_KEYVAL);
	CHECK(MPI_Type_set_attr(MPI_INT, other, &value[0]) == MPI_ERR_KEYVAL);
	CHECK(MPI_Comm_free_keyval(&other) == MPI_SUCCESS);
	CHECK(MPI_Comm_free_keyval(&freed) == MPI_ERR_KEYVAL);
}

static void duplicates_get_what_callbacks_say(void)
{
	static int value[4]; /* deleted with MPI_COMM_WORLD */
	int copied, kept, dropped;
	MPI_Comm dup;
	deletes = 0;
	CHECK(MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &copied, &extra) == MPI_SUCCESS);
	CHECK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete, &kept, NULL) == MPI_SUCCESS);
	CHECK(MPI_Comm_create_keyval(copy_not, delete, &dropped, NULL) == MPI_SUCCESS);
	MPI_Comm_set_attr(MPI_COMM_WORLD, copied, (char *)&value[0]);
	MPI_Comm_set_attr(MPI_COMM_WORLD, kept, &value[1]);
	MPI_Comm_set_attr(MPI_COMM_WORLD, dropped, &value[2]);
	CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &dup) == MPI_SUCCESS);
	CHECK(copies == 1 && has(dup, copied, (char *)&value[0] + 1) && has(dup, kept, &value[1]));
	CHECK(!has(dup, dropped, &value[2]));
	/* A key that was freed works for the attributes that exist. */
	int still = kept;
	CHECK(MPI_Comm_free_keyval(&kept) == MPI_SUCCESS);
	CHECK(MPI_Comm_free(&dup) == MPI_SUCCESS && deletes == 1);
	(void)still;
	CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, copied) == MPI_SUCCESS);
	CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, dropped) == MPI_SUCCESS && deletes == 2);
	MPI_Comm_free_keyval(&copied);
	MPI_Comm_free_keyval(&dropped);
}

static void failing_callbacks_fail_the_call(void)
{
	int key, refuses = 1;
	MPI_Comm dup = MPI_COMM_NULL;
	CHECK(MPI_Comm_create_keyval(copy_fails, delete_fails, &key, &refuses) == MPI_SUCCESS);
	CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL) == MPI_SUCCESS);
	CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &dup) == MPI_ERR_OTHER);
	CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key) == MPI_ERR_OTHER);
	CHECK(has(MPI_COMM_WORLD, key, NULL));
	refuses = 0;
	CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key) == MPI_SUCCESS);
	CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS);
}

static int type_deletes;

static int type_delete(MPI_Datatype type, int keyval, void *value, void *state)
{
	(void)type, (void)keyval, (void)value, (void)state;
	type_deletes++;
	return MPI_SUCCESS;
}

static void datatypes_have_attributes(void)
{
	int key, value, flag;
	void *found;
	MPI_Datatype type, dup;
	CHECK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, type_delete, &key, NULL) == MPI_SUCCESS);
	CHECK(MPI_Type_contiguous(3, MPI_INT, &type) == MPI_SUCCESS);
	CHECK(MPI_Type_set_attr(type, key, &value) == MPI_SUCCESS);
	CHECK(MPI_Type_dup(type, &dup) == MPI_SUCCESS);
	CHECK(MPI_Type_get_attr(dup, key, &found, &flag) == MPI_SUCCESS && flag && found == &value);
	CHECK(MPI_Type_free(&type) == MPI_SUCCESS && type_deletes == 1);
	CHECK(MPI_Type_free(&dup) == MPI_SUCCESS && type_deletes == 2);
	CHECK(MPI_Type_set_attr(MPI_INT, key, &value) == MPI_SUCCESS);
	CHECK(MPI_Type_delete_attr(MPI_INT, key) == MPI_SUCCESS && type_deletes == 3);
	CHECK(MPI_Type_free_keyval(&key) == MPI_SUCCESS);
}

static int type_copy_fails(MPI_Datatype type, int keyval, void *state, void *in, void *out, int *flag)
{
	(void)type, (void)keyval, (void)state, (void)in, (void)out, (void)flag;
	return MPI_ERR_OTHER;
}

static void failed_duplicate_is_null(void)
{
	int key, value;
	MPI_Datatype type, dup = MPI_INT;
	CHECK(MPI_Type_create_keyval(type_copy_fails, MPI_TYPE_NULL_DELETE_FN, &key, NULL) == MPI_SUCCESS);
	CHECK(MPI_Type_contiguous(3, MPI_INT, &type) == MPI_SUCCESS);
	CHECK(MPI_Type_set_attr(type, key, &value) == MPI_SUCCESS);
	CHECK(MPI_Type_dup(type, &dup) == MPI_ERR_OTHER && dup == MPI_DATATYPE_NULL);
	CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
	CHECK(MPI_Type_free_keyval(&key) == MPI_SUCCESS);
}

static void predefined_attributes_are_there(void)
{
	int *value, flag, size;
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag) == MPI_SUCCESS && flag && *value >= 32767);
	CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag) == MPI_SUCCESS && flag && *value >= size);
	CHECK(MPI_Comm_get_attr(MPI_COMM_SELF, MPI_IO, &value, &flag) == MPI_SUCCESS && flag);
	CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag) == MPI_SUCCESS && flag && *value == 0);
	CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag) == MPI_SUCCESS && flag &&
	      *value >= MPI_ERR_LASTCODE);
	CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, value) == MPI_ERR_KEYVAL);
	CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_IO) == MPI_ERR_KEYVAL);
	CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &value, &flag) == MPI_ERR_KEYVAL);
}

static int old_delete(MPI_Comm comm, int keyval, void *value, void *state)
{
	(void)comm, (void)keyval, (void)value;
	++*(int *)state;
	return MPI_SUCCESS;
}

static void deprecated_functions_work(void)
{
	int key, count = 0, value, flag;
	void *found;
	CHECK(MPI_Keyval_create(MPI_DUP_FN, old_delete, &key, &count) == MPI_SUCCESS);
	CHECK(MPI_Attr_put(MPI_COMM_SELF, key, &value) == MPI_SUCCESS);
	CHECK(MPI_Attr_get(MPI_COMM_SELF, key, &found, &flag) == MPI_SUCCESS && flag && found == &value);
	CHECK(MPI_Attr_delete(MPI_COMM_SELF, key) == MPI_SUCCESS && count == 1);
	CHECK(MPI_Keyval_free(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
}

static int at_the_end(MPI_Comm comm, int keyval, void *value, void *state)
{
	int flag, size;
	(void)keyval, (void)state;
	CHECK(comm == MPI_COMM_SELF && *(int *)value == 3 - ++self_deleted);
	CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && !flag);
	CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS);
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	static int value[3] = { 0, 1, 2 };
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	values_come_back_and_go();
	duplicates_get_what_callbacks_say();
	failing_callbacks_fail_the_call();
	datatypes_have_attributes();
	failed_duplicate_is_null();
	predefined_attributes_are_there();
	deprecated_functions_work();
	for (int i = 0; i < 3; i++) {
		int key;
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
		MPI_Comm_set_attr(MPI_COMM_SELF, key, &value[i]);
		MPI_Comm_free_keyval(&key);
	}
	MPI_Finalize();
	return self_deleted == 3 ? 0 : 1;
}
