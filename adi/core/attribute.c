/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys and attributes. A key is an index of a table plus FIRST_KEY. A key that was freed exists until its last attribute is
 * deleted, and so do its callbacks.
 */
#include "adi/core/attribute.h"

#include "adi/comm/comm.h"
#include "adi/core/predefined_attribute.h"
#include "adi/datatype/type.h"
#include "adi/window/window.h"

#include <stdlib.h>

#define FIRST_KEY 0x1000

struct keyval {
	int number;
	enum adi_kind of;
	void (*copy)(void), (*delete)(void); /* 0: no copy, nothing to do; 1: copy the value */
	void *extra_state;
	int references; /* of the program, and one for each attribute */
	bool freed;
};

struct adi_attribute {
	struct adi_attribute *next;
	struct keyval *keyval;
	void *value;
};

static struct keyval **table; /* [slots]; NULL: free */
static int slots;

/* A key that was freed while objects have attributes of it still serves to get and delete these. */
static struct keyval *keyval_find(int number, enum adi_kind of)
{
	struct keyval *found = number >= FIRST_KEY && number - FIRST_KEY < slots ? table[number - FIRST_KEY] : NULL;
	return found && found->of == of ? found : NULL;
}

static int slot_find(void)
{
	for (int i = 0; i < slots; i++)
		if (!table[i])
			return i;
	int more = slots ? 2 * slots : 16;
	struct keyval **grown = realloc(table, (size_t)more * sizeof(struct keyval *));
	if (!grown)
		return -1;
	table = grown;
	int first = slots;
	for (; slots < more; slots++)
		table[slots] = NULL;
	return first;
}

static void keyval_release(struct keyval *keyval)
{
	if (--keyval->references)
		return;
	table[keyval->number - FIRST_KEY] = NULL;
	free(keyval);
}

int adi_keyval_create(enum adi_kind of, void (*copy)(void), void (*delete)(void), void *extra_state, int *keyval)
{
	int slot = slot_find();
	struct keyval *new = slot >= 0 ? malloc(sizeof *new) : NULL;
	if (!new)
		return adi_error(MPI_ERR_NO_MEM, "no memory for an attribute key");
	*new = (struct keyval){ .number = slot + FIRST_KEY, .of = of, .copy = copy, .delete = delete,
				.extra_state = extra_state, .references = 1 };
	table[slot] = new;
	*keyval = new->number;
	return MPI_SUCCESS;
}

static int no_such_key(int keyval, enum adi_kind of)
{
	return adi_error(MPI_ERR_KEYVAL, "%s_keyval is %d, no attribute key of %s",
			 of == ADI_COMM ? "comm" : of == ADI_TYPE ? "type" : "win", keyval,
			 of == ADI_COMM ? "communicators" : of == ADI_TYPE ? "datatypes" : "windows");
}

int adi_keyval_free(enum adi_kind of, int *keyval)
{
	struct keyval *found = keyval_find(*keyval, of);
	if (!found)
		return no_such_key(*keyval, of);
	/* Programs free a key from its own delete callback, and again. */
	if (!found->freed) {
		found->freed = true;
		keyval_release(found);
	}
	*keyval = MPI_KEYVAL_INVALID;
	return MPI_SUCCESS;
}

void adi_attributes_end(void)
{
	for (int i = 0; i < slots; i++)
		if (table[i])
			return;
	free(table);
	table = NULL;
	slots = 0;
}

static enum adi_kind kind_of(const struct adi_object *object)
{
	return (enum adi_kind)(object->magic - ADI_MAGIC);
}

static struct adi_attributes *attributes_of(struct adi_object *object)
{
	switch (kind_of(object)) {
	case ADI_COMM: return &((struct adi_comm *)object)->attributes;
	case ADI_TYPE: return &((struct adi_type *)object)->attributes;
	default: return &((struct adi_win *)object)->attributes;
	}
}

static int code_of_callback(int code, const char *what, int keyval)
{
	if (code == MPI_SUCCESS)
		return MPI_SUCCESS;
	adi_error(MPI_ERR_OTHER, "the %s callback of attribute key %d returned %d", what, keyval, code);
	return adi_class_of_code(code) > 0 ? code : MPI_ERR_OTHER;
}

static int call_copy(struct adi_object *object, struct adi_attribute *old, void **out, int *flag)
{
	const struct keyval *keyval = old->keyval;
	int code, key = keyval->number;
	void *handle = adi_object_handle(object), *extra = keyval->extra_state;
	if (keyval->of == ADI_COMM)
		code = ((MPI_Comm_copy_attr_function *)keyval->copy)(handle, key, extra, old->value, out, flag);
	else if (keyval->of == ADI_TYPE)
		code = ((MPI_Type_copy_attr_function *)keyval->copy)(handle, key, extra, old->value, out, flag);
	else
		code = ((MPI_Win_copy_attr_function *)keyval->copy)(handle, key, extra, old->value, out, flag);
	return code_of_callback(code, "copy", key);
}

static int call_delete(struct adi_object *object, struct adi_attribute *attribute)
{
	const struct keyval *keyval = attribute->keyval;
	int code, key = keyval->number;
	void *handle = adi_object_handle(object), *extra = keyval->extra_state;
	if (!keyval->delete)
		return MPI_SUCCESS;
	if (keyval->of == ADI_COMM)
		code = ((MPI_Comm_delete_attr_function *)keyval->delete)(handle, key, attribute->value, extra);
	else if (keyval->of == ADI_TYPE)
		code = ((MPI_Type_delete_attr_function *)keyval->delete)(handle, key, attribute->value, extra);
	else
		code = ((MPI_Win_delete_attr_function *)keyval->delete)(handle, key, attribute->value, extra);
	return code_of_callback(code, "delete", key);
}

static struct adi_attribute *attribute_new(struct keyval *keyval, void *value)
{
	struct adi_attribute *new = malloc(sizeof *new);
	if (!new) {
		adi_error(MPI_ERR_NO_MEM, "no memory for an attribute");
		return NULL;
	}
	*new = (struct adi_attribute){ .keyval = keyval, .value = value };
	keyval->references++;
	return new;
}

static void attribute_free(struct adi_attribute *attribute)
{
	keyval_release(attribute->keyval);
	free(attribute);
}

static int copy_one(struct adi_object *from, struct adi_attribute *old, struct adi_attribute **new)
{
	struct keyval *keyval = old->keyval;
	void *value = old->value;
	int flag = 1;
	if (!keyval->copy)
		return MPI_SUCCESS;
	if (keyval->copy != (void (*)(void))1) {
		value = NULL;
		flag = 0;
		int code = call_copy(from, old, &value, &flag);
		if (code)
			return code;
	}
	if (!flag)
		return MPI_SUCCESS;
	*new = attribute_new(keyval, value);
	return *new ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int adi_attributes_copy(struct adi_object *from, struct adi_attributes *old, struct adi_attributes *new)
{
	struct adi_attribute **end = &new->first;
	int code = MPI_SUCCESS;
	new->first = NULL;
	for (struct adi_attribute *each = old->first; each && !code; each = each->next) {
		code = copy_one(from, each, end);
		if (*end)
			end = &(*end)->next;
	}
	while (code && new->first) {
		struct adi_attribute *first = new->first;
		new->first = first->next;
		attribute_free(first);
	}
	return code;
}

/* Removes *link from its list and calls its delete callback. If that fails, the attribute stays: it becomes the first. */
static int attribute_delete(struct adi_object *object, struct adi_attributes *attributes, struct adi_attribute **link)
{
	struct adi_attribute *attribute = *link;
	*link = attribute->next;
	int code = call_delete(object, attribute);
	if (code) {
		attribute->next = attributes->first;
		attributes->first = attribute;
		return code;
	}
	attribute_free(attribute);
	return MPI_SUCCESS;
}

int adi_attributes_delete(struct adi_object *object, struct adi_attributes *attributes)
{
	int code = MPI_SUCCESS;
	while (attributes->first && !code)
		code = attribute_delete(object, attributes, &attributes->first);
	return code;
}

static struct adi_attribute **attribute_find(struct adi_attributes *attributes, const struct keyval *keyval)
{
	struct adi_attribute **link = &attributes->first;
	while (*link && (*link)->keyval != keyval)
		link = &(*link)->next;
	return link;
}

int adi_attribute_set(struct adi_object *object, int number, void *value)
{
	struct adi_attributes *attributes = attributes_of(object);
	struct keyval *keyval = keyval_find(number, kind_of(object));
	if (!keyval || keyval->freed)
		return no_such_key(number, kind_of(object));
	struct adi_attribute *new = attribute_new(keyval, value);
	if (!new)
		return MPI_ERR_NO_MEM;
	struct adi_attribute **old = attribute_find(attributes, keyval);
	int code = *old ? attribute_delete(object, attributes, old) : MPI_SUCCESS;
	if (code) {
		attribute_free(new);
		return code;
	}
	new->next = attributes->first;
	attributes->first = new;
	return MPI_SUCCESS;
}

int adi_attribute_get(struct adi_object *object, int number, void **value, int *flag)
{
	if (adi_predefined_attribute_is(number, kind_of(object)))
		return adi_predefined_attribute(object, number, value, flag);
	struct keyval *keyval = keyval_find(number, kind_of(object));
	if (!keyval)
		return no_such_key(number, kind_of(object));
	struct adi_attribute *found = *attribute_find(attributes_of(object), keyval);
	if (found)
		*value = found->value;
	*flag = found != NULL;
	return MPI_SUCCESS;
}

int adi_attribute_remove(struct adi_object *object, int number)
{
	struct adi_attributes *attributes = attributes_of(object);
	struct keyval *keyval = keyval_find(number, kind_of(object));
	if (!keyval)
		return no_such_key(number, kind_of(object));
	struct adi_attribute **found = attribute_find(attributes, keyval);
	if (!*found)
		return adi_error(MPI_ERR_KEYVAL, "keyval is %d, of which the object has no attribute", number);
	return attribute_delete(object, attributes, found);
}
